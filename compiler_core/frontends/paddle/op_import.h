#ifndef NPUC_COMPILER_CORE_FRONTENDS_PADDLE_OP_IMPORT_H_
#define NPUC_COMPILER_CORE_FRONTENDS_PADDLE_OP_IMPORT_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/frontends/common/attribute_node.h"
#include "compiler_core/frontends/common/rule_table.h"
#include "compiler_core/frontends/common/term.h"
#include "compiler_core/frontends/paddle/program_file.h"

namespace npuc::paddle {

using frontend::ImportState;
using frontend::Term;
using frontend::ValueRef;

// An operator as its rule sees it: operands and results have parameters for names, beside
// what all front ends share. The operands stand in the order of the file.
class OpImporter : public frontend::AttributeNode<OpView> {
 public:
  OpImporter(ImportState* state, const OpView* op, std::vector<ValueRef> operands)
      : AttributeNode(state, op, std::move(operands)) {}

  // The number of a parameter's first operand; -1 where it has none.
  int At(absl::string_view parameter) const;
  bool Takes(absl::string_view parameter) const { return At(parameter) >= 0; }
  // All operands of a parameter.
  std::vector<ValueRef> All(absl::string_view parameter) const;
  // The one operand of a parameter, or a report that it is missing.
  absl::StatusOr<ValueRef> In(absl::string_view parameter);
  // The operand, or null where it is left out.
  ValueRef Optional(absl::string_view parameter) const;

  // Integers that an operand gives, each of several ones, or the attribute; `list` is the parameter
  // that has an operand for each number. Empty where there is none of these.
  absl::StatusOr<std::vector<int64_t>> IntsAt(absl::string_view parameter, absl::string_view list,
                                              absl::string_view attribute);
  // A number that an operand gives, or the attribute.
  absl::StatusOr<double> FloatAt(absl::string_view parameter, absl::string_view attribute,
                                 double fallback);

  absl::Status Give(absl::string_view parameter, ValueRef value);
  absl::Status Give(absl::string_view parameter, absl::StatusOr<ValueRef> value);
  absl::Status Give(absl::string_view parameter, std::vector<ValueRef> values);
  const std::map<std::string, std::vector<ValueRef>, std::less<>>& results() const {
    return results_;
  }
  // The number of a parameter's results.
  size_t ResultCount(absl::string_view parameter) const;

  // A report where Paddle has fused other operators into this one.
  absl::Status RefuseFused();

 private:
  std::map<std::string, std::vector<ValueRef>, std::less<>> results_;
};

// True where the attribute says that channels come last; a report for a format that is unknown.
absl::StatusOr<bool> IsChannelsLast(OpImporter& node, absl::string_view attribute);

// The rule for one operator: gives its results.
struct ImportRule {
  absl::string_view op;
  absl::Status (*import)(OpImporter& node);
};

// The rules of each family, in import_<family>.cc.
absl::Span<const ImportRule> ActivationRules();
absl::Span<const ImportRule> ElementwiseRules();
absl::Span<const ImportRule> WindowRules();
absl::Span<const ImportRule> NormRules();
absl::Span<const ImportRule> LinearRules();
absl::Span<const ImportRule> ShapeRules();
absl::Span<const ImportRule> PickRules();
absl::Span<const ImportRule> ConstantRules();
absl::Span<const ImportRule> QuantizedRules();
absl::Span<const ImportRule> RecurrentRules();
frontend::RuleTable<ImportRule> AllRules();

// True for operators that decode boxes or choose among them: the program ends in front of them.
bool DecodesBoxes(absl::string_view op);

}  // namespace npuc::paddle

#endif  // NPUC_COMPILER_CORE_FRONTENDS_PADDLE_OP_IMPORT_H_
