#include "compiler_core/frontends/common/front_end.h"

#include "compiler_core/frontends/tflite/import.h"

namespace npuc {
namespace {

bool IsTfLiteModel(absl::string_view bytes) {
  return bytes.size() >= 8 && bytes.substr(4, 4) == "TFL3";
}

absl::StatusOr<Graph> Import(const ModelFiles& files, const CompileOptions& options,
                             Diagnostics& diagnostics) {
  return ImportTfLite(files.model, options, diagnostics, files.plugins, files.boxes);
}

}  // namespace

const FrontEnd kTfLiteFrontEnd = {.sniff = IsTfLiteModel,
                                  .import = Import,
                                  .outline = OutlineOfModel<OutlineTfLite>,
                                  .operators = ImportedTfLiteOps,
                                  .has_plugins = true};

}  // namespace npuc
