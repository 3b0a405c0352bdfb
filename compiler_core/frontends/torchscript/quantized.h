#ifndef NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_QUANTIZED_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_QUANTIZED_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/frontends/torchscript/op_call.h"
#include "compiler_core/ir/graph/quantization.h"

namespace npuc::pt {

// A quantized tensor of torch is a value of floats that went through Quantize and Dequantize, or a
// constant of stored integers, which knows its parameters. Every rule computes on the floats.

// The prefix of the names of torch.ops.quantized among the rules.
inline constexpr absl::string_view kQuantizedPrefix = "quantized::";

// The parameters of a quantized tensor; null for any other.
const QuantParams* QuantizationOf(const ValueRef& value);
// Marks a value as a quantized tensor of the parameters that it was computed by.
ValueRef WithQuantization(const ValueRef& value, QuantParams params);
// The parameters with one scale for all; INVALID_ARGUMENT where they are none of an integer type.
absl::StatusOr<QuantParams> PerTensorParams(DType dtype, double scale, int64_t zero_point);
// Those with a scale for each index of `axis`, within a tensor of that shape.
absl::StatusOr<QuantParams> ByChannelParams(DType dtype, const Tensor& scales,
                                            const Tensor& zero_points, int64_t axis,
                                            const Shape& shape);
// INVALID_ARGUMENT where the parameters do not fit integers of this shape.
absl::Status CheckQuantization(const QuantParams& params, const Shape& shape);

// Gives the result of a rule whose operands are quantized tensors the parameters that torch gives
// it, in place; refuses operators that torch does not compute on such tensors, or not so that npuc
// knows its rounding. Of other calls nothing is changed.
absl::Status QuantizeResult(OpCall& call, absl::string_view op, const ScriptValue& result);

}  // namespace npuc::pt

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_QUANTIZED_H_
