#include "compiler_core/frontends/darknet/import.h"

#include <algorithm>
#include <optional>

#include "compiler_core/frontends/common/run_import.h"
#include "compiler_core/frontends/darknet/cfg_file.h"
#include "compiler_core/frontends/darknet/importer.h"

namespace npuc {

absl::StatusOr<Graph> ImportDarknet(absl::string_view cfg, const ByteSource* weights,
                                    const CompileOptions& options, Diagnostics& diagnostics,
                                    std::optional<BoxSettings>* boxes) {
  return frontend::RunImport(
      "Darknet", options, diagnostics, [&](Graph* graph, Diagnostics* found) {
        const std::optional<darknet::CfgFile> file =
            darknet::ParseCfg(cfg, options.model_name, *found);
        if (file.has_value()) darknet::Importer(*file, weights, options, graph, found).Run(boxes);
      });
}

std::vector<std::string> ImportedDarknetLayers() { return darknet::AllLayerTypes().Ops(); }

}  // namespace npuc
