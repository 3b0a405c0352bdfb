#include "compiler_core/frontends/compass/import.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/finish_import.h"
#include "compiler_core/frontends/compass/importer.h"
#include "compiler_core/ir/compass/check.h"

namespace npuc {

absl::StatusOr<Graph> ImportCompass(absl::string_view text, const ByteSource& bin,
                                    const CompileOptions& options, Diagnostics& diagnostics) {
  ASSIGN_OR_RETURN(const compass::Document document,
                   compass::ParseDocument(text, options.model_name, diagnostics));
  RETURN_IF_ERROR(compass::CheckDocument(document, bin.size(), options.model_name, diagnostics));
  Diagnostics found;
  Graph graph;
  graph.set_name(options.model_name);
  compass::Importer(document, bin, options, &graph, &found).Run();
  return frontend::FinishImport(std::move(graph), "IR", std::move(found), diagnostics);
}

std::vector<std::string> ImportedCompassLayers() {
  std::vector<std::string> names = {"Constant", "Input"};
  for (const compass::ImportRule& rule : compass::AllRules()) names.emplace_back(rule.type);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace npuc
