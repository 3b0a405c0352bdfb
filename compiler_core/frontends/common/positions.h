#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_POSITIONS_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_POSITIONS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/evaluator.h"
#include "compiler_core/ir/graph/types.h"

namespace npuc {

// Lists of positions, of which converters make shapes at compile time. Pure. Errors as in
// evaluator.h.

// The positions of the elements that are not zero, in their order: i64[count, rank].
absl::StatusOr<Tensor> EvaluateNonZero(const Tensor& x);
// `otherwise` all over `shape` but at the positions, a scalar, [count] or [count, rank]; `values`
// has one element or one for each of them, and the type of `otherwise`.
absl::StatusOr<Tensor> EvaluateSparseToDense(const Tensor& positions, const Shape& shape,
                                             const Tensor& values, const Tensor& otherwise);

namespace frontend {

// The positions of a constant's elements that are not zero, [count, rank].
template <typename Node>
absl::Status ImportNonZero(Node& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const Tensor condition, node.Constant(0, "condition"));
  return node.SetConstant(EvaluateNonZero(condition));
}

// Operands: positions, shape, values, the value elsewhere.
template <typename Node>
absl::Status ImportSparseToDense(Node& node) {
  RETURN_IF_ERROR(node.ExpectInputs(4, 4));
  ASSIGN_OR_RETURN(const Tensor positions, node.Constant(0, "positions"));
  ASSIGN_OR_RETURN(const Shape shape, node.ConstantInts(1, "shape"));
  ASSIGN_OR_RETURN(const Tensor values, node.Constant(2, "values"));
  ASSIGN_OR_RETURN(const Tensor otherwise, node.Constant(3, "value elsewhere"));
  RETURN_IF_ERROR(CheckShape(shape));
  return node.SetConstant(EvaluateSparseToDense(positions, shape, values, otherwise));
}

}  // namespace frontend
}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_POSITIONS_H_
