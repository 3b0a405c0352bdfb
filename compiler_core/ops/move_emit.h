#ifndef NPUC_COMPILER_CORE_OPS_MOVE_EMIT_H_
#define NPUC_COMPILER_CORE_OPS_MOVE_EMIT_H_

#include "absl/status/status.h"
#include "compiler_core/ir/cmd/command.h"
#include "compiler_core/ir/graph/types.h"
#include "compiler_core/ops/lower_context.h"
#include "compiler_core/ops/op.h"

namespace npuc {

// A walk over a dense tensor's memory: element offset of the first element, and a step per
// dimension (may be negative on the source side).
struct Walk {
  int64_t offset = 0;
  Shape strides;
};

// Copies shape's elements from a to d along the two walks, by copy commands whose inner extent is a
// run that is contiguous on both sides. FAILED_PRECONDITION over 2^16 commands.
absl::Status EmitMove(LowerContext& context, const Shape& shape, Operand a, const Walk& from,
                      Operand d, const Walk& to);

// d [columns,rows] = a [rows,columns] transposed: by the transpose unit where both sides fit it,
// else by copies.
absl::Status EmitTranspose(LowerContext& context, Operand a, Operand d, int64_t rows,
                           int64_t columns);

// True where a [rows,columns] and its transpose lie alike: one side is 1.
bool LiesTransposed(const LowerContext& context, int64_t rows, int64_t columns);

// a [rows,columns] transposed: `a` itself where it lies so, else in scratch memory.
absl::StatusOr<Operand> TransposedView(LowerContext& context, Operand a, int64_t rows,
                                       int64_t columns);

// d = the constant `value`, n times.
absl::Status EmitFill(LowerContext& context, float value, Operand d, int64_t n);

// Lowers Maximum, or Minimum as -max(-a, -b), with numpy broadcasting: both operands are laid side
// by side and the unit's max-pooling takes pairs. Exact.
absl::Status LowerExtremum(const OpView& view, LowerContext& context, bool minimum);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_OPS_MOVE_EMIT_H_
