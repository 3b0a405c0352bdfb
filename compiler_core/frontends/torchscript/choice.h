#ifndef NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_CHOICE_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_CHOICE_H_

#include "absl/status/statusor.h"
#include "compiler_core/frontends/torchscript/op_call.h"

namespace npuc::pt {

// a where the condition is not 0, else b; the three broadcast. What is not chosen may be infinite
// or NaN.
absl::StatusOr<ValueRef> Chosen(OpCall& call, const ValueRef& condition, const ValueRef& a,
                                const ValueRef& b);

}  // namespace npuc::pt

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_CHOICE_H_
