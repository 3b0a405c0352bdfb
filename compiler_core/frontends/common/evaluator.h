#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_EVALUATOR_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_EVALUATOR_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/ir/graph/types.h"

namespace npuc {

// Arithmetic that exists only at compile time: comparisons, logic, integer division and the like,
// which shape computations use and no operator of the IR expresses. Pure. Errors are
// INVALID_ARGUMENT for operands that do not fit, RESOURCE_EXHAUSTED for results above
// kMaxEvaluatedElements.
inline constexpr int64_t kMaxEvaluatedElements = int64_t{1} << 20;

// Numpy-style broadcasting of two shapes.
absl::StatusOr<Shape> BroadcastShape(absl::Span<const int64_t> a, absl::Span<const int64_t> b);

// Element-wise operators by TensorFlow's names; the Is functions tell whether there is one.
bool IsEvaluatedUnary(absl::string_view op);
bool IsEvaluatedBinary(absl::string_view op);
absl::StatusOr<Tensor> EvaluateUnary(absl::string_view op, const Tensor& x);
absl::StatusOr<Tensor> EvaluateBinary(absl::string_view op, const Tensor& a, const Tensor& b);

// Prod, All and Any over the axes (sorted, unique, in range).
absl::StatusOr<Tensor> EvaluateReduction(absl::string_view op, const Tensor& x,
                                         absl::Span<const int64_t> axes, bool keep_dims);

// condition, a and b broadcast against each other; a and b have one dtype.
absl::StatusOr<Tensor> EvaluateSelect(const Tensor& condition, const Tensor& a, const Tensor& b);
absl::StatusOr<Tensor> EvaluateBroadcast(const Tensor& x, const Shape& shape);
absl::StatusOr<Tensor> EvaluateRange(const Tensor& start, const Tensor& limit, const Tensor& delta);
// Gather along an axis by indices of any shape.
absl::StatusOr<Tensor> EvaluateGather(const Tensor& x, const Tensor& indices, int64_t axis);

// A tensor of integers of the given type; values are known to fit.
Tensor IntTensor(DType dtype, Shape shape, absl::Span<const int64_t> values);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_EVALUATOR_H_
