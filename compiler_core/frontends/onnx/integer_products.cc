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

// True: a cast to that type keeps the sums' numbers.
bool HoldsSums(DType dtype) {
  return IsFloat(dtype) || dtype == DType::kInt32 || dtype == DType::kInt64;
}

// True: the value is known as numbers of its own type, and not as integers that stand for them.
bool IsPlain(const ValueRef& value) { return IsKnown(value) && !value->stored.has_value(); }

// True: `id` is the product of the two scales.
bool IsProductOf(const Graph& graph, ValueId id, ValueId computed, const Tensor& constant) {
  const Node& node = graph.def(id);
  if (node.op != Op::kMul) return false;
  for (const size_t i : {0, 1}) {
    const Tensor* const factor = graph.ConstantOf(node.inputs[1 - i]);
    if (node.inputs[i] == computed && factor != nullptr && *factor == constant) return true;
  }
  return false;
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
  if (it == sums_.end() || cast == value || !HoldsSums(cast->type.dtype)) return;
  Product product = it->second.value;
  SetSums(cast, std::move(product));
}

void IntegerProducts::SetSum(const ValueRef& a, const ValueRef& b, const ValueRef& result) {
  for (const auto& [sums, bias] : {std::pair(a, b), std::pair(b, a)}) {
    const auto it = sums_.find(sums.get());
    if (it == sums_.end() || it->second.value.bias != nullptr || result->type != sums->type) {
      continue;
    }
    Product product = it->second.value;
    product.bias = bias;
    return SetSums(result, std::move(product));
  }
}

void IntegerProducts::SetScales(const ValueRef& a, const ValueRef& b, const ValueRef& result) {
  if (IsKnown(a) == IsKnown(b) || (IsKnown(a) ? a : b)->stored.has_value()) return;
  scales_[result.get()] = {result, IsKnown(a) ? Scales{b, a} : Scales{a, b}};
}

ValueRef IntegerProducts::RealBias(Emitter& node, const Product& product, const Scales& scales) {
  if (IsKnown(product.bias)) return nullptr;
  const Graph& graph = node.state().builder.graph();
  const ValueId computed = scales.computed->id;
  ValueId id = product.bias->id;
  for (const Op op : {Op::kReshape, Op::kCast, Op::kFloor}) {
    const Node& step = graph.def(id);
    if (step.op == op) {
      if (op == Op::kCast && !HoldsSums(graph.type(id).dtype)) return nullptr;
      id = step.inputs[0];
    } else if (op != Op::kReshape) {
      return nullptr;
    }
  }
  const Node& quotient = graph.def(id);
  if (quotient.op != Op::kDiv) return nullptr;
  // Scales of channels lie along one dimension, and so must what they divide.
  const bool is_moved = product.bias->type.shape != graph.type(id).shape;
  if (is_moved && scales.constant->constant->element_count() != 1) return nullptr;
  const Tensor* const real = graph.ConstantOf(quotient.inputs[0]);
  const TensorType& type = product.bias->type;
  if (real == nullptr || real->element_count() != type.element_count() ||
      !IsProductOf(graph, quotient.inputs[1], computed, *scales.constant->constant)) {
    return nullptr;
  }
  return node.MakeConstant(real->WithShape(type.shape));
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

absl::StatusOr<ValueRef> IntegerProducts::Real(Emitter& node, const Product& product,
                                               const Tensor& factor, double divisor,
                                               const ValueRef& bias) const {
  ASSIGN_OR_RETURN(ValueRef weight, RealWeight(node, product, factor, divisor));
  ValueRef x = product.x.value;
  if (product.x.params.has_value()) {
    ASSIGN_OR_RETURN(x, node.Emit("Dequantize", {x}, DequantizeAttrs(*product.x.params)));
  }
  ASSIGN_OR_RETURN(ValueRef result, product.compute(std::move(x), std::move(weight)));
  if (bias == nullptr) return result;
  return node.Emit("Add", {result, bias});
}

std::optional<absl::StatusOr<ValueRef>> IntegerProducts::Finish(Emitter& node, const ValueRef& sums,
                                                                const Product& product,
                                                                const ValueRef& scale) const {
  // A scale of more dimensions gives them to the result.
  if (scale->type.shape.size() > sums->type.shape.size()) return std::nullopt;
  const Tensor* factor = nullptr;
  double divisor = 1;
  ValueRef bias;
  if (IsKnown(product.x.scale)) {
    if (!IsPlain(scale) || !IsPlain(product.x.scale)) return std::nullopt;
    factor = &*scale->constant;
    divisor = product.x.scale->constant->at(0);
    if (product.bias != nullptr && IsPlain(product.bias)) {
      absl::StatusOr<ValueRef> steps = node.Converted(product.bias, factor->dtype());
      if (steps.ok()) steps = node.Emit("Mul", {*steps, scale});
      if (!steps.ok()) return steps;
      bias = *steps;
    }
  } else {
    const auto it = scales_.find(scale.get());
    if (it == scales_.end() || it->second.value.computed != product.x.scale) return std::nullopt;
    factor = &*it->second.value.constant->constant;
    if (product.bias != nullptr) bias = RealBias(node, product, it->second.value);
  }
  if (product.bias != nullptr && bias == nullptr) return std::nullopt;
  const int64_t channels = product.weight->type.shape[static_cast<size_t>(product.channel_axis)];
  if (!IsFloat(factor->dtype()) || !IsPerChannel(*factor, channels, product.result_axis)) {
    return std::nullopt;
  }
  return Real(node, product, *factor, divisor, bias);
}

std::optional<absl::StatusOr<ValueRef>> IntegerProducts::Ended(Emitter& node, const ValueRef& a,
                                                               const ValueRef& b) const {
  for (const auto& [sums, scale] : {std::pair(a, b), std::pair(b, a)}) {
    const auto it = sums_.find(sums.get());
    if (it == sums_.end() || !IsFloat(sums->type.dtype)) continue;
    return Finish(node, sums, it->second.value, scale);
  }
  return std::nullopt;
}

}  // namespace npuc::onnx
