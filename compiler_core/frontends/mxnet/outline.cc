#include <memory>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/mxnet/import.h"
#include "compiler_core/frontends/mxnet/importer.h"

namespace npuc {

absl::StatusOr<ModelOutline> OutlineMxNet(absl::string_view symbol_bytes, absl::string_view file,
                                          Diagnostics& diagnostics) {
  Diagnostics found;
  const std::unique_ptr<mxnet::Symbol> symbol = mxnet::Symbol::Parse(symbol_bytes, file, found);
  diagnostics.Append(found);
  RETURN_IF_ERROR(found.ToStatus());
  ModelOutline outline;
  if (!symbol->version().empty()) outline.producer = absl::StrCat("MXNet ", symbol->version());
  const frontend::RuleTable<mxnet::ImportRule> rules = mxnet::AllRules();
  absl::flat_hash_set<int> inputs;
  for (const mxnet::NodeView& node : symbol->nodes()) {
    if (node.is_variable()) continue;
    ++outline.operators[Printable(node.op())];
    const mxnet::ImportRule* const rule = rules.Find(node.op());
    for (size_t i = 0; i < OperandsAtInference(rule, node); ++i) {
      const bool is_data = rule == nullptr || !rule->IsParameter(i);
      if (is_data) inputs.insert(node.inputs()[i].node);
    }
  }
  for (int i = 0; i < static_cast<int>(symbol->nodes().size()); ++i) {
    const mxnet::NodeView& node = symbol->node(i);
    if (!node.is_variable() || !inputs.contains(i)) continue;
    ModelOutline::Port port{.key = std::string(node.name()), .name = std::string(node.name())};
    const auto dims = node.Ints("__shape__");
    if (dims.ok() && !dims->empty()) {
      port.dims = *dims;
      for (int64_t& dim : *port.dims) dim = dim <= 0 ? -1 : dim;
    }
    outline.inputs.push_back(std::move(port));
  }
  for (const mxnet::Entry& head : symbol->heads()) {
    const std::string name = symbol->NameOf(head);
    outline.outputs.push_back({.key = name, .name = name});
  }
  absl::string_view stem = file;
  if (absl::ConsumeSuffix(&stem, "-symbol.json")) {
    outline.data_file = absl::StrCat(stem, "-0000.params");
  }
  outline.notes.push_back("a symbol states no weights: they are in the .params file");
  return outline;
}

}  // namespace npuc
