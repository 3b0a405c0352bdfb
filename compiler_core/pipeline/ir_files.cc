#include "compiler_core/pipeline/ir_files.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/backends/integer/integer_model.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/import_state.h"
#include "compiler_core/ir/compass/check.h"
#include "compiler_core/ops/layers.h"
#include "compiler_core/pipeline/file_limits.h"
#include "compiler_core/pipeline/import.h"
#include "compiler_core/quant/kept/float_form.h"
#include "compiler_core/target/core_spec.h"

namespace npuc {
namespace {

// A layer of one node, a clamp.
Layer ClampLayer(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const ValueId operand = ClampOf(graph, node)->operand;
  Layer layer;
  layer.name = node.source.name;
  layer.type = std::string(LayerTypeOf(graph, node));
  layer.nodes = {id};
  layer.root = id;
  layer.inputs = {operand};
  for (const ValueId input : node.inputs) {
    if (input != operand) layer.weight = input;
  }
  layer.outputs = node.outputs;
  return layer;
}

// A float layer of the IR has RELU and RELU6 alone: other clamps become layers of their own.
std::vector<Layer> SplitClamps(const Graph& graph, std::vector<Layer> layers) {
  std::vector<Layer> split;
  for (Layer& layer : layers) {
    const ClampRange clamps = ClampsOf(graph, layer);
    const std::vector<NodeId> nodes = layer.nodes;
    size_t kept = nodes.size();
    if (clamps != ClampRange() && clamps != kReluRange && clamps != kRelu6Range) {
      while (kept > 1 && ClampOf(graph, graph.node(nodes[kept - 1])).has_value()) --kept;
    }
    layer.nodes.resize(kept);
    layer.outputs = graph.node(layer.nodes.back()).outputs;
    split.push_back(std::move(layer));
    for (size_t i = kept; i < nodes.size(); ++i) split.push_back(ClampLayer(graph, nodes[i]));
  }
  return split;
}

absl::StatusOr<IrFiles> WriteFloat(const Graph& graph, const std::string& model_name,
                                   Diagnostics& diagnostics) {
  ASSIGN_OR_RETURN(const FloatForm form, MakeFloatForm(graph));
  QuantPlan plan;
  plan.layers = SplitClamps(form.graph, GroupLayers(form.graph));
  ASSIGN_OR_RETURN(IrFiles files, WriteIr(form.graph, plan, model_name, diagnostics));
  files.document.head.Set("precision", "float32");
  return files;
}

}  // namespace

absl::StatusOr<IrFiles> MakeIrFiles(const CompileRequest& request, bool as_float,
                                    Diagnostics& diagnostics) {
  const CompileOptions& options = request.options;
  ASSIGN_OR_RETURN(Graph imported, ImportModel(request, diagnostics));
  ASSIGN_OR_RETURN(const Graph graph, IntegerGraph(request, std::move(imported), diagnostics));
  const CoreSpec* core = FindCore(options.core);
  absl::StatusOr<IrFiles> files;
  if (as_float || core == nullptr || core->integer == nullptr) {
    files = WriteFloat(graph, options.model_name, diagnostics);
  } else {
    ASSIGN_OR_RETURN(const IntegerModel model, MakeIntegerModel(request, graph, diagnostics));
    files = WriteIr(model.graph, model.plan, options.model_name, diagnostics);
  }
  RETURN_IF_ERROR(files.status());
  RETURN_IF_ERROR(CheckFileSize("the IR's text", compass::PrintDocument(files->document).size(),
                                compass::kMaxTextBytes, options.model_name, diagnostics));
  RETURN_IF_ERROR(CheckFileSize("the IR's .bin", files->bin.size(),
                                static_cast<size_t>(frontend::kMaxConstantBytes),
                                options.model_name, diagnostics));
  Diagnostics ours;
  const absl::Status sound = compass::CheckDocument(
      files->document, static_cast<int64_t>(files->bin.size()), options.model_name, ours);
  if (!sound.ok()) {
    diagnostics.Add(
        {.kind = DiagnosticKind::kInternalError,
         .message = absl::StrCat("the IR files written break their own rules: ", sound.message()),
         .file = options.model_name});
    return diagnostics.ToStatus();
  }
  return files;
}

}  // namespace npuc
