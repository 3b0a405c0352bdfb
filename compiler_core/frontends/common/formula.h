#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_FORMULA_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_FORMULA_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/frontends/common/emitter.h"

namespace npuc::frontend {

// Limits on a formula; more is an error. Steps count what the operators that it calls become.
inline constexpr size_t kMaxFormulaBytes = size_t{1} << 14;
inline constexpr size_t kMaxFormulaSteps = 1024;
inline constexpr int kMaxFormulaDepth = 32;

// A number, or a list of them, as an attribute of a node has it.
struct FormulaNumbers {
  std::vector<double> numbers;
  bool is_list = false;
};

struct FormulaFunction;  // an operator that formulas may call; formula.cc has the table

// The computation of an operator that a config declares, as text of statements, one a line:
//
//   size = Abs(x)                       # an operator of the IR
//   y = size * alpha - 1                # + - * / ^ of tensors and numbers
//   low, high = Split(y, axis=-1, parts=2)
//
// Names are those of operands (tensors), of attributes (numbers or lists of numbers) and of earlier
// statements; none is set twice. It has no loops and calls nothing but the table's functions and
// operators declared before; their steps are copied into it, so kMaxFormulaSteps bounds its work.
// Immutable once parsed, so thread-safe.
class Formula {
 public:
  struct Attribute {
    std::string name;
    bool is_list = false;
  };
  // An operator that the formula may call by its name; attributes that a call leaves out have
  // their default, or are an error where there is none.
  struct Callee {
    std::string name;
    const Formula* formula = nullptr;
    std::vector<const FormulaNumbers*> defaults;  // by attribute; null: none
  };
  struct Names {
    std::vector<std::string> operands = {};
    std::vector<Attribute> attributes = {};
    std::vector<std::string> results = {};
    std::vector<Callee> callees = {};
  };
  // `line`: of the text, from 1.
  using Report = std::function<void(int line, std::string message, std::string fix)>;

  // Reads the text. Every statement that is wrong is reported; false where there was one.
  bool Parse(absl::string_view text, const Names& names, const Report& report);

  size_t step_count() const { return steps_.size(); }
  size_t result_count() const { return results_.size(); }

  // Emits the nodes that compute the results, in the order of names.results, from one value for
  // each operand and attribute. A status that the emitter did not report says what is wrong.
  absl::StatusOr<std::vector<ValueRef>> Run(Emitter& node, absl::Span<const ValueRef> operands,
                                            absl::Span<const FormulaNumbers> attributes) const;

 private:
  friend class FormulaParser;
  friend class FormulaRun;

  enum class StepKind : uint8_t { kOperand, kAttribute, kNumber, kList, kCall, kResult };
  struct Step {
    StepKind kind = StepKind::kNumber;
    int index = 0;      // the number of the operand, attribute or result
    double number = 0;  // kNumber
    size_t count = 0;   // kResult: of all results of the call
    const FormulaFunction* function = nullptr;
    std::vector<int> args = {};   // earlier steps: operands of a call, items of a list, the call
    std::vector<int> named = {};  // of a call, by parameter; -1: left out
  };

  Names names_;
  std::vector<Step> steps_;
  std::vector<int> results_;  // steps
};

// The names of the functions that formulas may call, sorted.
std::vector<std::string> FormulaFunctionNames();
// "Softmax(x, axis=-1)": how each of them is called, for the documentation.
std::vector<std::string> FormulaFunctionUses();

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_FORMULA_H_
