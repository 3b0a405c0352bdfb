#include "compiler_core/frontends/common/front_end.h"

#include "compiler_core/frontends/darknet/cfg_file.h"
#include "compiler_core/frontends/darknet/import.h"

namespace npuc {
namespace {

absl::StatusOr<Graph> Import(const ModelFiles& files, const CompileOptions& options,
                             Diagnostics& diagnostics) {
  return ImportDarknet(files.model, files.data, options, diagnostics, files.boxes);
}

}  // namespace

const FrontEnd kDarknetFrontEnd = {.sniff = darknet::IsDarknetCfg,
                                   .import = Import,
                                   .outline = OutlineOfModel<OutlineDarknet>,
                                   .operators = ImportedDarknetLayers,
                                   .has_plugins = false};

}  // namespace npuc
