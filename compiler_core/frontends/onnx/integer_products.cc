#include "compiler_core/frontends/onnx/integer_products.h"

#include <utility>

#include "compiler_core/base/status.h"

namespace npuc::onnx {

using frontend::Emitter;
using frontend::IsKnown;
using frontend::ValueRef;

namespace {

// True: `scale` multiplies each channel of sums of that rank, or all of them, by one number.
bool IsPerChannel(const Tensor& scale, int64_t channels, int result_axis) {
  if (scale.element_count() == 1) return true;
  if (scale.element_count() != channels) return false;
  const Shape& shape = scale.shape();
  const int64_t axis = static_cast<int64_t>(shape.size()) + result_axis;
  return axis >= 0 && shape[static_cast<size_t>(axis)] == channels;
}

}  // namespace

void IntegerProducts::SetQuantized(const ValueRef& integers, Source source) {
  quantized_[integers.get()] = {integers, std::move(source)};
}

const IntegerProducts::Source* IntegerProducts::FindQuantized(const ValueRef& integers) const {
  const auto it = quantized_.find(integers.get());
  return it == quantized_.end() ? nullptr : &it->second.value;
}

void IntegerProducts::SetSums(const ValueRef& sums, Product product) {
  sums_[sums.get()] = {sums, std::move(product)};
}

void IntegerProducts::SetCast(const ValueRef& value, const ValueRef& cast) {
  const auto it = sums_.find(value.get());
  if (it == sums_.end() || cast == value) return;
  Product product = it->second.value;
  SetSums(cast, std::move(product));
}

void IntegerProducts::SetScales(const ValueRef& a, const ValueRef& b, const ValueRef& result) {
  if (IsKnown(a) == IsKnown(b)) return;
  scales_[result.get()] = {result, IsKnown(a) ? Scales{b, a} : Scales{a, b}};
}

absl::StatusOr<ValueRef> IntegerProducts::RealWeight(Emitter& node, const Product& product,
                                                     const Tensor& scale, double divisor) const {
  const Tensor& integers = *product.weight->constant;
  const int64_t channels = integers.shape()[static_cast<size_t>(product.channel_axis)];
  const bool is_per_channel = scale.element_count() > 1;
  QuantParams params;
  params.dtype = integers.dtype();
  params.qmin = LowestOf(params.dtype);
  params.qmax = HighestOf(params.dtype);
  if (is_per_channel) params.axis = product.channel_axis;
  for (int64_t i = 0; i < scale.element_count(); ++i) {
    params.scale.push_back(scale.at(i) / divisor);
  }
  params.zero_point.assign(params.scale.size(), 0);
  if (product.weight_zero != nullptr) {
    const Tensor& zero = *product.weight_zero->constant;
    if (zero.element_count() != 1 && (zero.element_count() != channels || !is_per_channel)) {
      return absl::InvalidArgumentError("zero points that do not fit the weight's scales");
    }
    for (size_t i = 0; i < params.zero_point.size(); ++i) {
      params.zero_point[i] = zero.int_at(zero.element_count() == 1 ? 0 : static_cast<int64_t>(i));
    }
  }
  return node.MakeStored({integers, std::move(params)}, product.weight->source);
}

std::optional<absl::StatusOr<ValueRef>> IntegerProducts::Finish(Emitter& node,
                                                                const Product& product,
                                                                const ValueRef& scale) const {
  const Tensor* factor = nullptr;
  double divisor = 1;
  if (IsKnown(product.x.scale)) {
    if (!IsKnown(scale)) return std::nullopt;
    factor = &*scale->constant;
    divisor = product.x.scale->constant->at(0);
  } else {
    const auto it = scales_.find(scale.get());
    if (it == scales_.end() || it->second.value.computed != product.x.scale) return std::nullopt;
    factor = &*it->second.value.constant->constant;
  }
  const int64_t channels = product.weight->type.shape[static_cast<size_t>(product.channel_axis)];
  if (!IsFloat(factor->dtype()) || !IsPerChannel(*factor, channels, product.result_axis)) {
    return std::nullopt;
  }
  absl::StatusOr<ValueRef> weight = RealWeight(node, product, *factor, divisor);
  if (!weight.ok()) return weight;
  if (!product.x.params.has_value()) return product.compute(product.x.value, *std::move(weight));
  absl::StatusOr<ValueRef> real =
      node.Emit("Dequantize", {product.x.value}, DequantizeAttrs(*product.x.params));
  if (!real.ok()) return real;
  return product.compute(*std::move(real), *std::move(weight));
}

std::optional<absl::StatusOr<ValueRef>> IntegerProducts::Ended(Emitter& node, const ValueRef& a,
                                                               const ValueRef& b) const {
  for (const auto& [sums, scale] : {std::pair(a, b), std::pair(b, a)}) {
    const auto it = sums_.find(sums.get());
    if (it == sums_.end() || !IsFloat(sums->type.dtype)) continue;
    return Finish(node, it->second.value, scale);
  }
  return std::nullopt;
}

}  // namespace npuc::onnx
