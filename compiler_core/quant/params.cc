#include "compiler_core/quant/params.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "compiler_core/base/status.h"
#include "compiler_core/ops/layers.h"

namespace npuc {
namespace {

DType StorageOf(int bits, bool is_signed) {
  if (bits <= 8) return is_signed ? DType::kInt8 : DType::kUint8;
  if (bits <= 16) return is_signed ? DType::kInt16 : DType::kUint16;
  return DType::kInt32;
}

bool IsRestricted(QuantMethod method) {
  return method == QuantMethod::kPerTensorSymmetricRestricted ||
         method == QuantMethod::kPerChannelSymmetricRestricted;
}

double SafeScale(double scale) {
  // A subnormal scale has no finite reciprocal; such a tensor is zero for every purpose.
  constexpr double kLeast = 1e-30;
  return std::isfinite(scale) && scale > kLeast ? scale : kScaleOfZeros;
}

void SetSymmetric(QuantMethod method, int bits, QuantParams& params) {
  params.dtype = StorageOf(bits, true);
  params.qmax = (int64_t{1} << (bits - 1)) - 1;
  params.qmin = IsRestricted(method) ? -params.qmax : -params.qmax - 1;
}

double SymmetricScale(QuantMethod method, const QuantParams& params, double magnitude) {
  return SafeScale(magnitude /
                   (static_cast<double>(params.qmax) + (IsRestricted(method) ? 0.0 : 0.5)));
}

template <typename T>
void StoreAs(std::vector<uint8_t>& bytes, int64_t i, int64_t value) {
  const T narrow = static_cast<T>(value);
  std::memcpy(bytes.data() + i * static_cast<int64_t>(sizeof(T)), &narrow, sizeof(T));
}

void Store(DType dtype, std::vector<uint8_t>& bytes, int64_t i, int64_t value) {
  switch (SizeOf(dtype)) {
    case 1:
      return StoreAs<uint8_t>(bytes, i, value);
    case 2:
      return StoreAs<uint16_t>(bytes, i, value);
    case 4:
      return StoreAs<uint32_t>(bytes, i, value);
    default:
      return StoreAs<uint64_t>(bytes, i, value);
  }
}

}  // namespace

QuantParams ActivationParams(QuantMethod method, int bits, ValueRange range, bool force_signed) {
  QuantParams params;
  const int64_t levels = int64_t{1} << bits;
  const bool is_unsigned = range.min >= 0 && !force_signed;
  if (is_unsigned) {
    params.dtype = StorageOf(bits, false);
    params.qmin = 0;
    params.qmax = levels - 1;
    params.scale = {SafeScale(range.max / static_cast<double>(params.qmax))};
    params.zero_point = {0};
    return params;
  }
  SetSymmetric(method, bits, params);
  if (method != QuantMethod::kPerTensorAsymmetric) {
    params.scale = {
        SymmetricScale(method, params, std::max(std::fabs(range.min), std::fabs(range.max)))};
    params.zero_point = {0};
    return params;
  }
  params.scale = {SafeScale((range.max - range.min) / static_cast<double>(levels - 1))};
  const double at_min = std::nearbyint(range.min / params.scale[0]);
  params.zero_point = {
      std::clamp(params.qmin - static_cast<int64_t>(at_min), params.qmin, params.qmax)};
  return params;
}

QuantParams WeightParams(QuantMethod method, int bits, absl::Span<const double> magnitudes,
                         int axis) {
  QuantParams params;
  SetSymmetric(method, bits, params);
  params.axis = axis;
  for (const double magnitude : magnitudes) {
    params.scale.push_back(SymmetricScale(method, params, magnitude));
  }
  params.zero_point.assign(params.scale.size(), 0);
  return params;
}

void RoundScalesUp(QuantParams& params) {
  for (double& scale : params.scale) {
    int exponent = 0;
    const double part = std::frexp(scale, &exponent);  // in [0.5, 1)
    scale = std::ldexp(1.0, part == 0.5 ? exponent - 1 : exponent);
  }
}

void MakeWholeNumbersExact(QuantParams& params) {
  for (double& scale : params.scale) {
    scale = scale > 1 ? std::ceil(scale) : 1 / std::max(std::floor(1 / scale), 1.0);
  }
}

ChannelWalk WalkOf(const Shape& shape, int axis) {
  ChannelWalk walk;
  if (axis < 0) return walk;
  walk.channels = shape[axis];
  for (size_t i = axis + 1; i < shape.size(); ++i) walk.inner *= shape[i];
  return walk;
}

int64_t QuantizeValue(const QuantParams& params, int64_t channel, double x) {
  // No number counts as 0, as the operator Quantize has it: a table of Log has a place for -1.
  // Rounding is to nearest, ties to even: the default mode, which nothing here changes.
  const double steps = std::isnan(x) ? 0.0 : std::nearbyint(x / params.scale[channel]);
  const int64_t zero = params.zero_point[channel];
  const double low = static_cast<double>(params.qmin - zero);
  const double high = static_cast<double>(params.qmax - zero);
  return static_cast<int64_t>(std::clamp(steps, low, high)) + zero;
}

Tensor QuantizeTensor(const QuantParams& params, absl::Span<const float> values,
                      const Shape& shape) {
  const ChannelWalk walk = WalkOf(shape, params.axis);
  std::vector<uint8_t> bytes(values.size() * SizeOf(params.dtype));
  for (size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    Store(params.dtype, bytes, at, QuantizeValue(params, walk.ChannelOf(at), values[i]));
  }
  return {TensorType{params.dtype, shape}, std::move(bytes)};
}

Tensor DequantizeTensor(const QuantParams& params, const Tensor& integers) {
  const ChannelWalk walk = WalkOf(integers.shape(), params.axis);
  const int64_t count = integers.element_count();
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t channel = walk.ChannelOf(i);
    values[i] =
        static_cast<float>(static_cast<double>(integers.int_at(i) - params.zero_point[channel]) *
                           params.scale[channel]);
  }
  return Tensor::FromFloats(integers.shape(), values);
}

FakeQuant::FakeQuant(const QuantParams& params) {
  NPUC_CHECK(params.scale.size() == 1);
  scale_ = static_cast<float>(params.scale[0]);
  inverse_ = static_cast<float>(1 / params.scale[0]);
  low_ = static_cast<float>(params.qmin - params.zero_point[0]);
  high_ = static_cast<float>(params.qmax - params.zero_point[0]);
}

void FakeQuant::Apply(absl::Span<float> values) const {
  if (!active()) return;
  // Adding and taking away 1.5 * 2^23 rounds to an integer, ties to even, for |t| < 2^22.
  constexpr float kRounder = 12582912.0f;
  const float scale = scale_;
  const float inverse = inverse_;
  const float low = low_;
  const float high = high_;
  float* const data = values.data();
  const size_t count = values.size();
  for (size_t i = 0; i < count; ++i) {
    float t = data[i] * inverse;
    t = t > low ? t : low;
    t = t < high ? t : high;
    data[i] = ((t + kRounder) - kRounder) * scale;
  }
}

}  // namespace npuc
