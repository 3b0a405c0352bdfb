#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_SPREAD_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_SPREAD_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/node_emitter.h"
#include "compiler_core/ir/graph/types.h"

namespace npuc::frontend {

// Zeros put between the elements of an axis, as a transposed convolution sees its operand: element
// i goes to i * stride, and n elements become (n - 1) * stride + 1. `Emitter` is what emits the
// nodes of an operator for a front end (NodeEmitter, pt::OpCall). stride >= 1. INVALID_ARGUMENT
// where the result is larger than a tensor may be.
template <typename Emitter>
absl::StatusOr<ValueRef> Spread(Emitter& node, ValueRef x, int64_t axis, int64_t stride) {
  if (stride == 1) return x;
  Shape shape = x->type.shape;
  int64_t rows = 1;
  for (int64_t i = 0; i <= axis; ++i) rows *= shape[i];
  const int64_t rest = x->type.element_count() / std::max<int64_t>(rows, 1);
  const int64_t size = std::max<int64_t>((shape[axis] - 1) * stride + 1, 0);
  shape[axis] *= stride;
  RETURN_IF_ERROR(CheckShape(shape));
  // A row for each element, then as many rows of zeros as lie between two.
  ASSIGN_OR_RETURN(x, node.Reshaped(x, {rows, 1, rest}));
  ASSIGN_OR_RETURN(x, node.Emit("Pad", {x},
                                {{"paddings", std::vector<int64_t>{0, 0, 0, stride - 1, 0, 0}},
                                 {"value", 0.0}}));
  ASSIGN_OR_RETURN(x, node.Reshaped(x, std::move(shape)));
  return node.Sliced(x, axis, 0, size);
}

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_SPREAD_H_
