#include "compiler_core/passes/remaining_transposes.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/passes/layout.h"
#include "compiler_core/passes/layout_rules.h"

namespace npuc {
namespace {

constexpr size_t kMaxUsersNamed = 3;

std::string NameOf(const Node& node) {
  return absl::StrCat(NameOf(node.op), " '", Printable(node.source.name), "'");
}

// Whether the node can compute where one of its values is stored by the layout.
bool Follows(const Graph& graph, const Node& node, ValueId value, const Layout& layout) {
  const LayoutNode n{graph, node, true};
  NodeLayouts layouts(n.value_count());
  for (size_t i = 0; i < layouts.size(); ++i) {
    if (n.value(i) == value) layouts[i] = layout;
  }
  return node.op != Op::kTranspose && CompleteLayouts(n, layouts);
}

std::string OperandReason(const Graph& graph, ValueId x, const std::optional<Layout>& layout) {
  const Node& def = graph.def(x);
  if (def.op == Op::kPlaceholder) {
    return absl::StrCat("input '", Printable(def.source.name), "' comes in this order");
  }
  if (def.op == Op::kConst) {
    return absl::StrCat("constant '", Printable(def.source.name), "' is too large to fold");
  }
  if (layout.has_value() && Follows(graph, def, x, *layout)) {
    return absl::StrCat("in front of ", NameOf(def), " it would move no less");
  }
  return absl::StrCat(NameOf(def), " gives its result in this order alone");
}

std::string ResultReason(const Graph& graph, ValueId y, const std::optional<Layout>& layout) {
  std::vector<std::string> reasons;
  for (const GraphOutput& output : graph.outputs()) {
    if (output.value != y) continue;
    reasons.push_back(absl::StrCat("output '", Printable(output.name), "' is wanted in that one"));
  }
  for (const Node& user : graph.nodes()) {
    if (std::find(user.inputs.begin(), user.inputs.end(), y) == user.inputs.end()) continue;
    reasons.push_back(layout.has_value() && Follows(graph, user, y, *layout)
                          ? absl::StrCat("behind ", NameOf(user), " it would move no less")
                          : absl::StrCat(NameOf(user), " reads its operand in that one alone"));
  }
  if (reasons.size() > kMaxUsersNamed) {
    const size_t more = reasons.size() - kMaxUsersNamed;
    reasons.resize(kMaxUsersNamed);
    reasons.push_back(absl::StrCat(more, " more users"));
  }
  return absl::StrJoin(reasons, "; ");
}

}  // namespace

std::vector<RemainingTranspose> RemainingTransposes(const Graph& graph) {
  std::vector<RemainingTranspose> found;
  for (const Node& node : graph.nodes()) {
    const bool hidden = HiddenTransposeElements(graph, node) > 0;
    if (node.op != Op::kTranspose && !hidden) continue;
    const ValueId x = node.inputs[0];
    RemainingTranspose entry{node.source.name, graph.type(x).shape, {}, ""};
    const Layout natural = NaturalLayout(ElementCount(entry.shape));
    if (hidden) {
      entry.perm.resize(entry.shape.size());
      std::iota(entry.perm.begin(), entry.perm.end(), 0);
      std::swap(entry.perm[entry.perm.size() - 1], entry.perm[entry.perm.size() - 2]);
    } else {
      entry.perm = std::get<std::vector<int64_t>>(node.attrs.find("perm")->second);
    }
    Shape result;
    for (const int64_t axis : entry.perm) result.push_back(entry.shape[axis]);
    entry.reason = absl::StrCat(
        OperandReason(graph, x, ThroughTranspose(natural, result, InversePermutation(entry.perm))),
        "; ",
        hidden ? "the product reads rows"
               : ResultReason(graph, node.outputs[0],
                              ThroughTranspose(natural, entry.shape, entry.perm)));
    found.push_back(std::move(entry));
  }
  return found;
}

}  // namespace npuc
