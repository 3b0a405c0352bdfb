#include "compiler_core/frontends/tflite/import.h"

#include <memory>

#include "compiler_core/frontends/common/run_import.h"
#include "compiler_core/frontends/tflite/importer.h"
#include "compiler_core/frontends/tflite/model_file.h"

namespace npuc {

absl::StatusOr<Graph> ImportTfLite(absl::string_view model_bytes, const CompileOptions& options,
                                   Diagnostics& diagnostics, const frontend::Plugins& plugins,
                                   std::optional<BoxSettings>* boxes) {
  return frontend::RunImport("TFLite", options, diagnostics, [&](Graph* graph, Diagnostics* found) {
    const std::unique_ptr<tflite::ModelFile> file =
        tflite::ModelFile::Parse(model_bytes, options.model_name, *found);
    if (file != nullptr) tflite::Importer(*file, options, plugins, graph, found).Run(boxes);
  });
}

std::vector<std::string> ImportedTfLiteOps() { return tflite::SubgraphImport::Ops(); }

}  // namespace npuc
