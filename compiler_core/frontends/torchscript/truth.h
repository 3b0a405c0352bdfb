#ifndef NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_TRUTH_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_TRUTH_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/frontends/torchscript/op_call.h"

namespace npuc::pt {

// Every value of a TorchScript graph is f32, so torch's booleans and integers that are computed at
// run time are floats here, too: a Cast of what the IR computes.

// The value as a boolean of the IR: what it was cast from, or whether it is not 0.
absl::StatusOr<ValueRef> Truth(OpCall& call, const ValueRef& value);
// The value as indices, i64: what it was cast from, or a cast of floats that are whole numbers.
absl::StatusOr<ValueRef> Indices(OpCall& call, const ValueRef& value);
// Booleans or integers of the IR as the floats that torch's operators compute with; constants as
// they are. The result knows its type in torch.
absl::StatusOr<ValueRef> AsFloats(OpCall& call, absl::StatusOr<ValueRef> value);

// The value as torch's conversion to the type of that number gives it; itself where it has the
// type. A constant changes its elements, run-time data stay f32 and lose their fraction on the way
// to integers.
absl::StatusOr<ValueRef> ConvertedTo(OpCall& call, const ValueRef& value, int64_t type);

// Operators of constants that have a form at run time: comparisons, roundings, divisions that drop
// fractions. b may be null. Null where there is none.
absl::StatusOr<ValueRef> ComputedAtRunTime(OpCall& call, absl::string_view op, const ValueRef& a,
                                           const ValueRef& b);
// Computes these, sin and cos of constants, in float32 or int64; they broadcast. Errors are the
// shared evaluator's.
absl::StatusOr<Tensor> EvaluatedNow(absl::string_view op, const Tensor& a, const Tensor* b);

}  // namespace npuc::pt

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_TRUTH_H_
