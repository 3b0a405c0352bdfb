#ifndef NPUC_COMPILER_CORE_OPS_COMPARISON_H_
#define NPUC_COMPILER_CORE_OPS_COMPARISON_H_

#include <cstdint>
#include <vector>

#include "compiler_core/ops/op.h"

namespace npuc {

// Comparisons: a, b [...] of one type and of shapes that broadcast -> true where it holds.
// Attribute dtype: of the result, "bool" (the default), or a float that is 1 or 0.

absl::StatusOr<std::vector<TensorType>> InferComparison(const OpView& view);
// f compares floats, g integers and booleans.
absl::StatusOr<std::vector<Tensor>> RunComparison(const Node& node, const Tensor& a,
                                                  const Tensor& b, bool (*f)(double, double),
                                                  bool (*g)(int64_t, int64_t));

// A struct derived from it gives Holds, a template for both.
template <typename T>
struct ComparisonOp {
  static constexpr OpTraits kTraits = {.layout = LayoutRule::kFixed, .integer = IntegerRule::kNone};

  static absl::StatusOr<std::vector<TensorType>> InferShapes(const OpView& view) {
    return InferComparison(view);
  }
  static void Facts(const OpView& view, FactMap& facts) {}
  static absl::StatusOr<std::vector<Tensor>> Reference(const Node& node,
                                                       absl::Span<const Tensor> inputs) {
    return RunComparison(node, inputs[0], inputs[1], &T::template Holds<double>,
                         &T::template Holds<int64_t>);
  }
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_OPS_COMPARISON_H_
