#ifndef NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_LAYERS_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_LAYERS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler_core/frontends/torchscript/op_call.h"

namespace npuc::pt {

// Layers that operators of torch have inside.

// x [..., I] times weight [O, I] transposed, plus bias [O], which may be null -> [..., O].
absl::StatusOr<ValueRef> Linear(OpCall& call, const ValueRef& x, const ValueRef& weight,
                                const ValueRef& bias);

// Mean 0 and variance 1 over the last `count` axes; weight and bias may be null.
absl::StatusOr<ValueRef> LayerNorm(OpCall& call, const ValueRef& x, int64_t count,
                                   const ValueRef& weight, const ValueRef& bias, double epsilon);

}  // namespace npuc::pt

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_LAYERS_H_
