#include "compiler_core/frontends/tensorflow/import.h"

#include <memory>

#include "compiler_core/frontends/common/run_import.h"
#include "compiler_core/frontends/tensorflow/graphdef.h"
#include "compiler_core/frontends/tensorflow/importer.h"

namespace npuc {

absl::StatusOr<Graph> ImportTensorFlow(absl::string_view model_bytes, const CompileOptions& options,
                                       Diagnostics& diagnostics, const frontend::Plugins& plugins) {
  return frontend::RunImport("TensorFlow", options, diagnostics,
                             [&](Graph* graph, Diagnostics* found) {
                               const std::unique_ptr<tf::GraphFile> file =
                                   tf::GraphFile::Parse(model_bytes, options.model_name, *found);
                               if (file != nullptr)
                                 tf::Importer(*file, options, plugins, graph, found).Run();
                             });
}

std::vector<std::string> ImportedTensorFlowOps() { return tf::AllRules().Ops(); }

}  // namespace npuc
