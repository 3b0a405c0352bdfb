#include "compiler_core/frontends/compass/import.h"

#include <algorithm>

#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/run_import.h"
#include "compiler_core/frontends/compass/importer.h"
#include "compiler_core/ir/compass/check.h"

namespace npuc {

absl::StatusOr<Graph> ImportCompass(absl::string_view text, const ByteSource& bin,
                                    const CompileOptions& options, Diagnostics& diagnostics) {
  ASSIGN_OR_RETURN(const compass::Document document,
                   compass::ParseDocument(text, options.model_name, diagnostics));
  RETURN_IF_ERROR(compass::CheckDocument(document, bin.size(), options.model_name, diagnostics));
  return frontend::RunImport("IR", options, diagnostics, [&](Graph* graph, Diagnostics* found) {
    compass::Importer(document, bin, options, graph, found).Run();
  });
}

std::vector<std::string> ImportedCompassLayers() {
  std::vector<std::string> names = compass::AllRules().Ops();
  names.insert(names.end(), {"Constant", "Input"});
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace npuc
