#include "compiler_core/frontends/paddle/import.h"

#include <memory>

#include "compiler_core/frontends/common/run_import.h"
#include "compiler_core/frontends/paddle/importer.h"
#include "compiler_core/frontends/paddle/program_file.h"

namespace npuc {

absl::StatusOr<Graph> ImportPaddle(absl::string_view program, const ByteSource* parameters,
                                   const CompileOptions& options, Diagnostics& diagnostics,
                                   const frontend::Plugins& plugins) {
  return frontend::RunImport("Paddle", options, diagnostics, [&](Graph* graph, Diagnostics* found) {
    const std::unique_ptr<paddle::ProgramFile> file =
        paddle::ProgramFile::Parse(program, options.model_name, *found);
    if (file != nullptr) paddle::Importer(*file, parameters, options, plugins, graph, found).Run();
  });
}

std::vector<std::string> ImportedPaddleOps() { return paddle::AllRules().Ops(); }

}  // namespace npuc
