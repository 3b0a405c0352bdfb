#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_FORMULA_FUNCTIONS_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_FORMULA_FUNCTIONS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/frontends/common/emitter.h"
#include "compiler_core/frontends/common/formula.h"

namespace npuc::frontend {

// An argument of a function that has a name.
struct FormulaParameter {
  enum class Kind : uint8_t { kNone, kInt, kFloat, kBool, kAxis, kInts, kAxes };
  absl::string_view name = "";
  Kind kind = Kind::kNone;
  absl::string_view default_value = "";  // as in a call; "": the argument must be given
};

// The arguments of a call, checked by the function's parameters; `named` in their order, nullopt
// where one is left out that has a default. Axes count from 0.
struct FormulaCall {
  const FormulaFunction& function;
  absl::Span<const ValueRef> operands;
  absl::Span<const std::optional<FormulaNumbers>> named;
};

struct FormulaFunction {
  // The code that runs the call: kEmit gives the operands and attributes to the IR's operator of
  // the name.
  enum class Runs : uint8_t { kEmit, kSize, kReshape, kSlice, kPad, kSplit };
  static constexpr int kMaxParameters = 4;

  absl::string_view name;
  int least_operands = 1;
  int most_operands = 1;
  FormulaParameter parameters[kMaxParameters] = {};
  Runs runs = Runs::kEmit;

  int parameter_count() const;
  // The place of a parameter; -1 where it has none of the name.
  int FindParameter(absl::string_view parameter) const;
};

// In alphabetical order.
absl::Span<const FormulaFunction> FormulaFunctions();
const FormulaFunction* FindFormulaFunction(absl::string_view name);  // or null

// The results of a call of any function but Size.
absl::StatusOr<std::vector<ValueRef>> RunFormulaCall(Emitter& node, const FormulaCall& call);
// One dimension of the only operand.
absl::StatusOr<double> RunFormulaSize(const FormulaCall& call);

// An argument by its parameter's kind: whole numbers are at most 2^31, axes of a tensor of `rank`
// become 0..rank-1. INVALID_ARGUMENT says what does not fit.
absl::StatusOr<FormulaNumbers> CheckFormulaArgument(const FormulaParameter& parameter,
                                                    const FormulaNumbers& given, int64_t rank);

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_FORMULA_FUNCTIONS_H_
