#include "compiler_core/frontends/common/front_end.h"

#include "absl/strings/match.h"
#include "compiler_core/frontends/common/saved_model_sniff.h"
#include "compiler_core/frontends/torchscript/import.h"

namespace npuc {
namespace {

bool IsOwnZip(absl::string_view bytes) {
  return absl::StartsWith(bytes, absl::string_view("PK\x03\x04", 4)) && !IsSavedModel(bytes);
}

absl::StatusOr<Graph> Import(const ModelFiles& files, const CompileOptions& options,
                             Diagnostics& diagnostics) {
  return ImportTorchScript(files.model, options, diagnostics, files.plugins);
}

}  // namespace

const FrontEnd kTorchScriptFrontEnd = {.sniff = IsOwnZip,
                                       .import = Import,
                                       .outline = OutlineOfModel<OutlineTorchScript>,
                                       .operators = ImportedTorchOps,
                                       .has_plugins = true};

}  // namespace npuc
