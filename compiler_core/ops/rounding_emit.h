#ifndef NPUC_COMPILER_CORE_OPS_ROUNDING_EMIT_H_
#define NPUC_COMPILER_CORE_OPS_ROUNDING_EMIT_H_

#include <cstdint>

#include "compiler_core/ops/lower_context.h"

namespace npuc {

// Steps as chains of element-wise commands, which round each result to fp16, ties to even. Exact
// for every finite operand.

// d = 1 where a > 0, else 0, over n elements. d may be a.
void EmitIsPositive(LowerContext& context, Operand a, Operand d, int64_t n);
// d = a to the nearest whole number, ties to even. d must not be a.
void EmitRound(LowerContext& context, Operand a, Operand d, int64_t n);
// d = the largest whole number that is not above a. d must not be a.
void EmitFloor(LowerContext& context, Operand a, Operand d, int64_t n);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_OPS_ROUNDING_EMIT_H_
