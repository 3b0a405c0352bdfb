#include "compiler_core/frontends/onnx/import.h"

#include <memory>

#include "compiler_core/frontends/common/run_import.h"
#include "compiler_core/frontends/onnx/importer.h"
#include "compiler_core/frontends/onnx/model_file.h"

namespace npuc {

absl::StatusOr<Graph> ImportOnnx(absl::string_view model_bytes, const CompileOptions& options,
                                 Diagnostics& diagnostics, const OnnxDataFile& data,
                                 const frontend::Plugins& plugins) {
  return frontend::RunImport("ONNX", options, diagnostics, [&](Graph* graph, Diagnostics* found) {
    const std::unique_ptr<onnx::ModelFile> file =
        onnx::ModelFile::Parse(model_bytes, options.model_name, *found);
    if (file != nullptr)
      onnx::Importer(*file, options, {data.name, data.bytes}, plugins, graph, found).Run();
  });
}

std::vector<std::string> ImportedOnnxOps() { return onnx::GraphImport::Ops(); }

}  // namespace npuc
