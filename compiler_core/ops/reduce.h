#ifndef NPUC_COMPILER_CORE_OPS_REDUCE_H_
#define NPUC_COMPILER_CORE_OPS_REDUCE_H_

#include <vector>

#include "compiler_core/ops/op.h"

namespace npuc {

// ReduceSum, ReduceMean, ReduceMax: attributes axes (ascending, >= 0; none: the values pass as they
// are) and keep_dims (false).

enum class Reduction { kSum, kMean, kMax };

absl::StatusOr<std::vector<TensorType>> InferReduce(const OpView& view);
// Elements are taken in row-major order. Floats accumulate in double; the mean of integers is the
// wrapped sum divided towards zero. An empty sum is 0, an empty mean NaN, an empty max the lowest
// value; INVALID_ARGUMENT for an empty mean of integers.
absl::StatusOr<std::vector<Tensor>> RunReduce(const Node& node, const Tensor& x,
                                              Reduction reduction);

// Axes are reduced group by group of adjacent ones, the last group first.
absl::Status LowerReduce(const OpView& view, LowerContext& context, Reduction reduction);

template <Reduction kReduction>
struct ReduceOp {
  static absl::StatusOr<std::vector<TensorType>> InferShapes(const OpView& view) {
    return InferReduce(view);
  }
  static void Facts(const OpView& view, FactMap& facts) {}
  static absl::StatusOr<std::vector<Tensor>> Reference(const Node& node,
                                                       absl::Span<const Tensor> inputs) {
    return RunReduce(node, inputs[0], kReduction);
  }
  static absl::Status Lower(const OpView& view, LowerContext& context) {
    return LowerReduce(view, context, kReduction);
  }
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_OPS_REDUCE_H_
