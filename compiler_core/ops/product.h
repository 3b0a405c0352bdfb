#ifndef NPUC_COMPILER_CORE_OPS_PRODUCT_H_
#define NPUC_COMPILER_CORE_OPS_PRODUCT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc {

// The matrices of a MatMul, after transposition: a [rows, inner], b [inner, columns].
struct ProductGeometry {
  bool transpose_a = false;
  bool transpose_b = false;
  int64_t rows = 0;
  int64_t inner = 0;
  int64_t columns = 0;
  Shape batch;  // broadcast of both operands' leading dimensions
};

// INVALID_ARGUMENT where operands of these shapes do not multiply.
absl::StatusOr<ProductGeometry> MakeProductGeometry(const Node& node, const Shape& a,
                                                    const Shape& b);

// The strides, in elements, of an operand's matrices along the batch; 0 where they are repeated.
Shape BatchStrides(const Shape& operand, const Shape& batch);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_OPS_PRODUCT_H_
