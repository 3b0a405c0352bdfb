#ifndef NPUC_COMPILER_CORE_OPS_SOFTMAX_H_
#define NPUC_COMPILER_CORE_OPS_SOFTMAX_H_

#include <vector>

#include "compiler_core/ops/op.h"

namespace npuc {

// Softmax and LogSoftmax along attribute axis (default: the last), stable for large values: the
// row's maximum is subtracted first.
absl::StatusOr<std::vector<TensorType>> InferSoftmax(const OpView& view);
absl::StatusOr<std::vector<Tensor>> RunSoftmax(const Node& node, const Tensor& x, bool log);

template <bool kLog>
struct SoftmaxOp {
  static absl::StatusOr<std::vector<TensorType>> InferShapes(const OpView& view) {
    return InferSoftmax(view);
  }
  static void Facts(const OpView& view, FactMap& facts) {}
  static absl::StatusOr<std::vector<Tensor>> Reference(const Node& node,
                                                       absl::Span<const Tensor> inputs) {
    return RunSoftmax(node, inputs[0], kLog);
  }
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_OPS_SOFTMAX_H_
