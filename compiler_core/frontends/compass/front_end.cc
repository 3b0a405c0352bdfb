#include "compiler_core/frontends/common/front_end.h"

#include "absl/strings/match.h"
#include "compiler_core/frontends/common/sniff.h"
#include "compiler_core/frontends/compass/import.h"

namespace npuc {
namespace {

bool IsCompassText(absl::string_view bytes) {
  const absl::string_view head = bytes.substr(0, 4096);
  return IsMostlyText(bytes) && absl::StrContains(head, "model_name=") &&
         absl::StrContains(head, "layer_number=");
}

absl::StatusOr<Graph> Import(const ModelFiles& files, const CompileOptions& options,
                             Diagnostics& diagnostics) {
  const ViewSource nothing{absl::string_view()};
  return ImportCompass(files.model, files.data == nullptr ? nothing : *files.data, options,
                       diagnostics);
}

}  // namespace

const FrontEnd kCompassFrontEnd = {.sniff = IsCompassText,
                                   .import = Import,
                                   .outline = OutlineOfModel<OutlineCompass>,
                                   .operators = ImportedCompassLayers,
                                   .has_plugins = false};

}  // namespace npuc
