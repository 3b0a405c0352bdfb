#ifndef NPUC_COMPILER_CORE_FRONTENDS_MXNET_NODE_IMPORT_H_
#define NPUC_COMPILER_CORE_FRONTENDS_MXNET_NODE_IMPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/frontends/common/attribute_node.h"
#include "compiler_core/frontends/common/rule_table.h"
#include "compiler_core/frontends/common/term.h"
#include "compiler_core/frontends/mxnet/symbol.h"

namespace npuc::mxnet {

using frontend::Term;
using frontend::ValueRef;

// A node as the rule of its operator sees it, beside what all front ends share.
class NodeImporter : public frontend::AttributeNode<NodeView> {
 public:
  using AttributeNode::AttributeNode;

  absl::string_view op() const { return node().op(); }
  // The axes that attribute `name` states, made non-negative and sorted; `fallback` where it is
  // absent or empty.
  absl::StatusOr<std::vector<int64_t>> AxesOr(absl::string_view name,
                                              std::vector<int64_t> fallback);
  // One axis of operand 0, made non-negative.
  absl::StatusOr<int64_t> AxisOr(absl::string_view name, int64_t fallback);
  // A report that an attribute has a value that is not imported.
  absl::Status BadChoice(absl::string_view name, absl::string_view value,
                         absl::string_view allowed);
};

inline constexpr int kAnyOperand = 1 << 20;

// The rule for one operator: sets the importer's outputs.
struct ImportRule {
  absl::string_view op;
  absl::Status (*import)(NodeImporter& node);
  int parameters_from = kAnyOperand;  // operands from this on, before parameters_to, are parameters
  int labels_from = kAnyOperand;      // operands from this on matter to training alone
  int parameters_to = kAnyOperand;

  bool IsParameter(size_t operand) const {
    return static_cast<int>(operand) >= parameters_from &&
           static_cast<int>(operand) < parameters_to;
  }
};

// The rules of each family, in import_<family>.cc.
absl::Span<const ImportRule> ElementwiseRules();
absl::Span<const ImportRule> ActivationRules();
absl::Span<const ImportRule> LayerRules();
absl::Span<const ImportRule> NormRules();
absl::Span<const ImportRule> ShapeRules();
absl::Span<const ImportRule> ReduceRules();
absl::Span<const ImportRule> RecurrentRules();
absl::Span<const ImportRule> SelectionRules();
frontend::RuleTable<ImportRule> AllRules();

}  // namespace npuc::mxnet

#endif  // NPUC_COMPILER_CORE_FRONTENDS_MXNET_NODE_IMPORT_H_
