#include "compiler_core/frontends/common/front_end.h"

#include "compiler_core/frontends/common/sniff.h"
#include "compiler_core/frontends/paddle/import.h"

namespace npuc {
namespace {

absl::StatusOr<Graph> Import(const ModelFiles& files, const CompileOptions& options,
                             Diagnostics& diagnostics) {
  return ImportPaddle(files.model, files.data, options, diagnostics, files.plugins);
}

}  // namespace

const FrontEnd kPaddleFrontEnd = {.sniff = IsPaddleProgram,
                                  .import = Import,
                                  .outline = OutlineOfModel<OutlinePaddle>,
                                  .operators = ImportedPaddleOps,
                                  .has_plugins = true};

}  // namespace npuc
