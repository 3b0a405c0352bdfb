#include "compiler_core/frontends/common/front_end.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "compiler_core/frontends/mxnet/import.h"

namespace npuc {
namespace {

// JSON whose first key is the list of nodes.
bool IsSymbol(absl::string_view bytes) {
  const absl::string_view text = absl::StripLeadingAsciiWhitespace(bytes.substr(0, 4096));
  return absl::StartsWith(text, "{") && absl::StrContains(text, "\"nodes\"") &&
         absl::StrContains(text, "\"op\"");
}

absl::StatusOr<Graph> Import(const ModelFiles& files, const CompileOptions& options,
                             Diagnostics& diagnostics) {
  return ImportMxNet(files.model, files.data_name, files.data, options, diagnostics, files.plugins);
}

}  // namespace

const FrontEnd kMxNetFrontEnd = {.sniff = IsSymbol,
                                 .import = Import,
                                 .outline = OutlineOfModel<OutlineMxNet>,
                                 .operators = ImportedMxNetOps,
                                 .has_plugins = true};

}  // namespace npuc
