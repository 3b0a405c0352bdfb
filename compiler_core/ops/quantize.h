#ifndef NPUC_COMPILER_CORE_OPS_QUANTIZE_H_
#define NPUC_COMPILER_CORE_OPS_QUANTIZE_H_

#include <optional>

#include "absl/status/statusor.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/ir/graph/quantization.h"
#include "compiler_core/ir/graph/types.h"

namespace npuc {

// Quantize and Dequantize carry a tensor's integer parameters as attributes:
//   scale       floats, finite and > 0: one, or one for each index of `axis`
//   zero_point  as many integers, each in qmin..qmax
//   axis        -1 (the default): one scale for all; else the dimension that they run along
//   dtype       Quantize: of the integers, "i8"; Dequantize: of the floats, "f32" if left out
//   qmin, qmax  Quantize: the range used, within the type's, which is the default
//   multiplier_bits, lut_bits, bias_effective_bits
//               Quantize: settings of the layer whose result it stores (LayerQuant), where the
//               model states them; all three or none. Its factors as two lists beside them:
//   multipliers, shifts
//   inside      Quantize: true where the value lies between the parts of one operator of the model.
//               It says how integer cores store it; what computes in float ignores it
// A quantized model is float operators between pairs of the two (the QDQ form): every activation
// that it stores as integers goes through Quantize and Dequantize, its integer constants stay
// integers behind a Dequantize, which constant folding leaves alone. Graph inputs and outputs are
// float.

inline constexpr char kInsideOperator[] = "inside";

// The smallest and largest value of an integer type (CHECKed).
int64_t LowestOf(DType dtype);
int64_t HighestOf(DType dtype);

// The parameters of a Quantize or Dequantize node; `integers` is the type of its integer side.
// INVALID_ARGUMENT where they break a rule above.
absl::StatusOr<QuantParams> QuantParamsOf(const Node& node, const TensorType& integers);

// INVALID_ARGUMENT where a Quantize with these parameters and a result of that type breaks a rule
// above.
absl::Status CheckQuantParams(const QuantParams& params, const TensorType& integers);

// Whether a Quantize and a Dequantize, both valid, have the same scales and zero points over that
// integer type.
bool AreInverse(const Node& quantize, const Node& dequantize, const TensorType& integers);

// The attributes that say the same. float_dtype: of the float side.
AttrMap QuantizeAttrs(const QuantParams& params);
// Adds a layer's settings to those of its Quantize; in_float is none of them.
void AddLayerQuantAttrs(const LayerQuant& settings, AttrMap& attrs);
// nullopt where the node states none; INVALID_ARGUMENT where they are out of range.
absl::StatusOr<std::optional<LayerQuant>> LayerQuantOf(const Node& node);
AttrMap DequantizeAttrs(const QuantParams& params, DType float_dtype = DType::kFloat32);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_OPS_QUANTIZE_H_
