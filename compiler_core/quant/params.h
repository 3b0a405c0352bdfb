#ifndef NPUC_COMPILER_CORE_QUANT_PARAMS_H_
#define NPUC_COMPILER_CORE_QUANT_PARAMS_H_

#include <vector>

#include "absl/types/span.h"
#include "compiler_core/base/quant_options.h"
#include "compiler_core/ir/graph/quantization.h"
#include "compiler_core/quant/ranges.h"

namespace npuc {

// The scale of a range in which all numbers are 0.
inline constexpr double kScaleOfZeros = 1;

// Parameters of an activation for a range: 8 bits and fewer are stored in a byte, more in two.
//   symmetric   zero_point 0; a range that is nowhere negative is unsigned (unless force_signed);
//               scale = max|x| / (2^(bits-1) - 1) restricted, / (2^(bits-1) - 0.5) full, and
//               max / (2^bits - 1) unsigned
//   asymmetric  scale = (max - min) / (2^bits - 1), min at qmin; unsigned as above
// An empty range gets kScaleOfZeros. Source: shared/spec/compass.md section 2, with its fixtures.
QuantParams ActivationParams(QuantMethod method, int bits, ValueRange range, bool force_signed);

// Symmetric parameters of a weight: its greatest magnitudes, one a channel along `axis`, or one in
// all (axis -1).
QuantParams WeightParams(QuantMethod method, int bits, absl::Span<const double> magnitudes,
                         int axis);

// Replaces each scale by the least power of two that is not below it: a fixed-point core's scales.
void RoundScalesUp(QuantParams& params);

// Widens each scale to a part of 1, or a multiple of it: integers stand for whole numbers exactly.
void MakeWholeNumbersExact(QuantParams& params);

// Which channel each element of a tensor belongs to: (index / inner) % channels.
struct ChannelWalk {
  int64_t channels = 1;
  int64_t inner = 1;
  int64_t ChannelOf(int64_t index) const { return index / inner % channels; }
};
ChannelWalk WalkOf(const Shape& shape, int axis);

// round_half_even(x / scale) + zero_point, clamped. NaN counts as 0.
int64_t QuantizeValue(const QuantParams& params, int64_t channel, double x);
// Every element; dtype params.dtype.
Tensor QuantizeTensor(const QuantParams& params, absl::Span<const float> values,
                      const Shape& shape);
// The real values of integers, as f32.
Tensor DequantizeTensor(const QuantParams& params, const Tensor& integers);

// Rounds values to those that the integers can stand for; the fast form of the two above for one
// scale. Differs from them only where x / scale is within float32 rounding of a tie.
class FakeQuant {
 public:
  FakeQuant() = default;  // leaves values as they are
  explicit FakeQuant(const QuantParams& params);
  bool active() const { return scale_ > 0; }
  void Apply(absl::Span<float> values) const;
  bool operator==(const FakeQuant&) const = default;

 private:
  float scale_ = 0;
  float inverse_ = 0;
  float low_ = 0;
  float high_ = 0;
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_PARAMS_H_
