#include "compiler_core/frontends/common/branches.h"

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/selection.h"

namespace npuc::frontend {

absl::StatusOr<std::vector<ValueRef>> ChosenResults(Emitter& node, const ValueRef& condition,
                                                    absl::Span<const ValueRef> if_true,
                                                    absl::Span<const ValueRef> if_false) {
  if (ElementCount(condition->type.shape) != 1 || if_true.size() != if_false.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the condition is ", TypeToString(condition->type), "; the branches give ",
                     if_true.size(), " and ", if_false.size(), " results"));
  }
  ASSIGN_OR_RETURN(ValueRef choice, CastTo(node, condition, DType::kBool));
  ASSIGN_OR_RETURN(choice, node.Reshaped(choice, {}));
  std::vector<ValueRef> chosen;
  for (size_t i = 0; i < if_true.size(); ++i) {
    const ValueRef& a = if_true[i];
    const ValueRef& b = if_false[i];
    if (a->type.shape != b->type.shape || a->type.dtype != b->type.dtype) {
      return node.Fail(
          DiagnosticKind::kOperandNotConstant,
          absl::StrCat("its condition ('", Printable(condition->source.name),
                       "') depends on a model input, and result ", i, " is ", TypeToString(a->type),
                       " by one branch and ", TypeToString(b->type),
                       " by the other; both must be of one type"),
          "reshape the results to one shape inside of the branches, or make the condition a "
          "constant");
    }
    chosen.push_back(a);
    if (a == b) continue;
    ASSIGN_OR_RETURN(chosen.back(), Selected(node, choice, a, b));
  }
  return chosen;
}

}  // namespace npuc::frontend
