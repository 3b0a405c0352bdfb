#include "compiler_core/frontends/common/plugins.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace npuc::frontend {

bool PluginOp::IsFor(absl::string_view framework) const {
  return frameworks.empty() ||
         std::find(frameworks.begin(), frameworks.end(), framework) != frameworks.end();
}

Plugins Plugins::For(absl::string_view framework, std::vector<std::shared_ptr<const PluginOp>> ops,
                     absl::Span<const std::string> built_in, Diagnostics& diagnostics) {
  Plugins plugins;
  for (std::shared_ptr<const PluginOp>& op : ops) {
    if (!op->IsFor(framework)) continue;
    if (op->subgraph.has_value()) {
      plugins.subgraphs_.push_back(std::move(op));
      continue;
    }
    if (!op->overrides && std::binary_search(built_in.begin(), built_in.end(), op->op)) {
      diagnostics.Add({.kind = DiagnosticKind::kConfigConflict,
                       .message = absl::StrCat("npuc has an operator '", Printable(op->op), "' of ",
                                               framework, " of its own"),
                       .file = op->file,
                       .line = op->line,
                       .fix = "add a line overrides: true where this one is to take its place"});
    }
    plugins.by_name_.emplace(op->op, std::move(op));
  }
  return plugins;
}

const PluginOp* Plugins::Find(absl::string_view op) const {
  if (by_name_.empty()) return nullptr;
  const auto found = by_name_.find(std::string(op));
  return found == by_name_.end() ? nullptr : found->second.get();
}

}  // namespace npuc::frontend
