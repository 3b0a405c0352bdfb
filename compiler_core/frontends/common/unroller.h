#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_UNROLLER_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_UNROLLER_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "compiler_core/frontends/common/import_state.h"

namespace npuc::frontend {

// Turns that one loop may take, and operators that all loops of a model together may become.
inline constexpr int kMaxTurns = 4096;
inline constexpr int kMaxUnrolledOperators = 1 << 18;
// Loops, branches and functions inside of one another.
inline constexpr int kMaxNesting = 8;

// Bounds and decisions of loops and branches, for formats whose operators run further graphs of the
// model: a loop runs its body once a turn and a branch the one that is chosen, all while importing,
// so conditions must be known then. One object serves all of a model. Functions that say no have
// reported why at the given operator.
class Unroller {
 public:
  // `state` outlives it. `again`: "convert the model", what helps against a broken one.
  Unroller(ImportState* state, std::string again) : state_(*state), again_(std::move(again)) {}

  // True: a graph may run that deep, the main graph being 0.
  bool TakeNesting(const NodeSource& source, int nesting);
  // True: a graph of so many operators may run once more.
  bool TakeOperators(const NodeSource& source, int64_t count);
  // A condition's or a count's value, as `what` says, known now: 0, or 1 where it is another; -1:
  // reported. `fix`: what to do where it is not known.
  int Decided(const NodeSource& source, absl::string_view what, const ValueRef& condition,
              absl::FunctionRef<std::string()> fix);
  // Runs turns as long as goes_on(turn) is 1. False: one of the two was reported, or the turns are
  // too many.
  bool Repeat(const NodeSource& source, absl::FunctionRef<int(int turn)> goes_on,
              absl::FunctionRef<bool(int turn)> run);

  // The text " inside of the operator that gives 'X'"; for the main graph X and the text are empty.
  static std::string InsideOf(absl::string_view outer);

 private:
  ImportState& state_;
  const std::string again_;
  int64_t operators_left_ = kMaxUnrolledOperators;
};

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_UNROLLER_H_
