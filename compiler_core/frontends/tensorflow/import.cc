#include "compiler_core/frontends/tensorflow/import.h"

#include <memory>

#include "absl/container/flat_hash_set.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/run_import.h"
#include "compiler_core/frontends/tensorflow/graphdef.h"
#include "compiler_core/frontends/tensorflow/importer.h"

namespace npuc {

absl::StatusOr<Graph> ImportTensorFlow(absl::string_view model_bytes, const CompileOptions& options,
                                       Diagnostics& diagnostics) {
  return frontend::RunImport("TensorFlow", options, diagnostics,
                             [&](Graph* graph, Diagnostics* found) {
                               const std::unique_ptr<tf::GraphFile> file =
                                   tf::GraphFile::Parse(model_bytes, options.model_name, *found);
                               if (file != nullptr)
                                 tf::Importer(*file, options, graph, found).Run();
                             });
}

absl::StatusOr<TensorFlowOutline> OutlineTensorFlow(absl::string_view model_bytes,
                                                    absl::string_view file,
                                                    Diagnostics& diagnostics) {
  Diagnostics found;
  const std::unique_ptr<tf::GraphFile> graph = tf::GraphFile::Parse(model_bytes, file, found);
  diagnostics.Append(found);
  RETURN_IF_ERROR(found.ToStatus());
  TensorFlowOutline outline;
  absl::flat_hash_set<absl::string_view> used;
  for (int i = 0; i < graph->node_count(); ++i) {
    const tf::NodeView& node = graph->node(i);
    ++outline.op_counts[std::string(node.op())];
    for (int k = 0; k < node.input_count(); ++k) {
      const absl::StatusOr<tf::TensorName> name = tf::ParseTensorName(node.input(k));
      if (name.ok()) used.insert(name->node);
    }
    if (node.op() != "Placeholder" && node.op() != "PlaceholderWithDefault") continue;
    const absl::StatusOr<int> type = node.Type("dtype");
    const absl::StatusOr<tf::PartialShape> shape = node.ShapeOf("shape");
    outline.placeholders.push_back({std::string(node.name()),
                                    type.ok() ? tf::DataTypeName(*type) : "of unknown type",
                                    shape.ok() ? tf::ToString(*shape) : "of unknown rank"});
  }
  for (int i = 0; i < graph->node_count(); ++i) {
    const tf::NodeView& node = graph->node(i);
    if (node.op() == "Const" || node.op() == "NoOp" || used.contains(node.name())) continue;
    outline.outputs.emplace_back(node.name());
  }
  return outline;
}

std::vector<std::string> ImportedTensorFlowOps() { return tf::AllRules().Ops(); }

}  // namespace npuc
