#include "compiler_core/frontends/common/unroller.h"

#include "absl/strings/str_cat.h"

namespace npuc::frontend {
namespace {

constexpr absl::string_view kFewerTurns =
    "run the loop on fewer turns, or its body once an inference with its state as input and output";

}  // namespace

bool Unroller::TakeNesting(const NodeSource& source, int nesting) {
  if (nesting <= kMaxNesting) return true;
  state_.AddError(
      DiagnosticKind::kModelLimitExceeded, source,
      absl::StrCat("loops, branches and composites are nested more than ", kMaxNesting, " deep"),
      absl::StrCat(again_, " with fewer loops inside of one another"));
  return false;
}

bool Unroller::TakeOperators(const NodeSource& source, int64_t count) {
  if (operators_left_ < count) {
    state_.AddError(DiagnosticKind::kModelLimitExceeded, source,
                    absl::StrCat("the loops and composites of the model unroll to more than ",
                                 kMaxUnrolledOperators, " operators"),
                    std::string(kFewerTurns));
    return false;
  }
  operators_left_ -= count;
  return true;
}

int Unroller::Decided(const NodeSource& source, absl::string_view what, const ValueRef& condition,
                      absl::FunctionRef<std::string()> fix) {
  if (!condition->constant.has_value()) {
    state_.AddError(DiagnosticKind::kOperandNotConstant, source,
                    absl::StrCat("its ", what, " ('", Printable(condition->source.name),
                                 "') depends on a model input; it must be known at compile time"),
                    fix());
    return -1;
  }
  const Tensor& value = *condition->constant;
  if (value.element_count() != 1) {
    state_.AddError(
        DiagnosticKind::kOperandMismatch, source,
        absl::StrCat("its ", what, " is ", TypeToString(value.type()), "; it must be one value"),
        absl::StrCat(again_, " again"));
    return -1;
  }
  return value.at(0) != 0 ? 1 : 0;
}

bool Unroller::Repeat(const NodeSource& source, absl::FunctionRef<int(int turn)> goes_on,
                      absl::FunctionRef<bool(int turn)> run) {
  for (int turn = 0;; ++turn) {
    const int decided = goes_on(turn);
    if (decided <= 0) return decided == 0;
    if (turn == kMaxTurns) {
      state_.AddError(DiagnosticKind::kModelLimitExceeded, source,
                      absl::StrCat("the loop takes more than ", kMaxTurns, " turns"),
                      std::string(kFewerTurns));
      return false;
    }
    if (!run(turn)) return false;
  }
}

std::string Unroller::InsideOf(absl::string_view outer) {
  if (outer.empty()) return "";
  return absl::StrCat(" inside of the operator that gives '", Printable(outer), "'");
}

}  // namespace npuc::frontend
