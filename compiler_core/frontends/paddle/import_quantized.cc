// Operators of a program that was trained for quantization: they round floats to the steps of
// integers, which integer cores keep.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/paddle/op_import.h"
#include "compiler_core/ir/graph/quantization.h"

namespace npuc::paddle {
namespace {

constexpr absl::string_view kScale = "InScale";

// The greatest magnitudes of a constant: of all, or of each place along `axis`.
absl::StatusOr<std::vector<double>> MagnitudesOf(OpImporter& node, int64_t axis) {
  ASSIGN_OR_RETURN(const Tensor tensor, node.Constant(node.At("X"), "X"));
  const std::vector<float> values = tensor.ToFloats();
  const Shape& shape = tensor.shape();
  int64_t inner = 1;
  for (size_t i = static_cast<size_t>(axis + 1); i < shape.size(); ++i) inner *= shape[i];
  const int64_t channels = axis < 0 ? 1 : shape[static_cast<size_t>(axis)];
  std::vector<double> most(static_cast<size_t>(channels), 0);
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t channel = axis < 0 ? 0 : static_cast<int64_t>(i) / inner % channels;
    double& found = most[static_cast<size_t>(channel)];
    found = std::max(found, std::abs(static_cast<double>(values[i])));
  }
  return most;
}

// A constant of which each number is moved to the multiple of scale / most next to it, halves away
// from 0, in the arithmetic of Paddle.
absl::StatusOr<ValueRef> MovedToSteps(OpImporter& node, int64_t axis,
                                      const std::vector<double>& scale, int64_t most) {
  ASSIGN_OR_RETURN(const Tensor tensor, node.Constant(node.At("X"), "X"));
  const Shape& shape = tensor.shape();
  std::vector<float> values = tensor.ToFloats();
  int64_t inner = 1;
  for (size_t i = static_cast<size_t>(axis + 1); i < shape.size(); ++i) inner *= shape[i];
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t channel = axis < 0 ? 0 : i / static_cast<size_t>(inner) % scale.size();
    const auto s = static_cast<float>(scale[channel]);
    if (s == 0) continue;
    const auto bins = static_cast<float>(most);
    values[i] = std::round(bins * (1 / s) * std::clamp(values[i], -s, s)) * s / bins;
  }
  return node.MakeConstant(Tensor::FromFloats(shape, values));
}

// round(x / scale * most) * scale / most, where most is 127 of 8 bits. By round_type 0, of 2.4 and
// later, halves go to even numbers and -most - 1 is the least; else halves go away from 0 and -most
// is the least. Integer cores decide halves of computed numbers as they do. Source:
// fake_quantize_op.cc, QuantTensorFunctor in phi/kernels/funcs/fake_quantize_functor.h.
absl::Status Rounded(OpImporter& node, int64_t axis, std::vector<double> magnitudes) {
  ASSIGN_OR_RETURN(ValueRef x, node.In("X"));
  ASSIGN_OR_RETURN(const int64_t round_type, node.IntOr("round_type", 1));
  ASSIGN_OR_RETURN(const int64_t bits, node.IntOr("bit_length", 8));
  if (bits < 2 || bits > 16) {
    return node.FailMode(absl::StrCat(bits, " bits"), "quantize to 2 to 16 bits");
  }
  QuantParams params;
  params.dtype = bits <= 8 ? DType::kInt8 : DType::kInt16;
  params.qmax = (int64_t{1} << (bits - 1)) - 1;
  params.qmin = round_type == 0 ? -params.qmax - 1 : -params.qmax;
  params.axis = static_cast<int>(axis);
  params.scale = magnitudes;
  params.zero_point.assign(params.scale.size(), 0);
  for (double& step : params.scale) {
    if (step == 0) step = 1;  // of zeros alone
    if (!(step > 0) || !std::isfinite(step)) {
      return absl::InvalidArgumentError("a scale that is not positive");
    }
    step /= static_cast<double>(params.qmax);
  }
  if (round_type != 0 && x->constant.has_value()) {
    ASSIGN_OR_RETURN(x, MovedToSteps(node, axis, magnitudes, params.qmax));
  }
  return node.Give("Out", node.Requantized(x, params));
}

// By a scale that training has found, or by the greatest magnitude of a weight.
absl::Status ImportFakeQuantize(OpImporter& node) {
  if (!node.Takes(kScale)) {
    ASSIGN_OR_RETURN(std::vector<double> most, MagnitudesOf(node, -1));
    return Rounded(node, -1, std::move(most));
  }
  ASSIGN_OR_RETURN(std::vector<double> scale, node.ConstantFloats(node.At(kScale), kScale));
  if (scale.size() != 1) return absl::InvalidArgumentError("InScale is not one number");
  return Rounded(node, -1, std::move(scale));
}

// A weight, by the greatest magnitude of each channel.
absl::Status ImportFakeQuantizeChannels(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef x, node.In("X"));
  ASSIGN_OR_RETURN(int64_t axis, node.IntOr("quant_axis", 0));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, static_cast<int64_t>(x->type.shape.size())));
  ASSIGN_OR_RETURN(std::vector<double> most, MagnitudesOf(node, axis));
  return Rounded(node, axis, std::move(most));
}

// It only watches its operand in training.
absl::Status ImportObserver(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef x, node.In("X"));
  return node.Give("Out", x);
}

constexpr ImportRule kQuantizedRules[] = {
    {"fake_channel_wise_quantize_dequantize_abs_max", ImportFakeQuantizeChannels},
    {"fake_quantize_dequantize_abs_max", ImportFakeQuantize},
    {"fake_quantize_dequantize_moving_average_abs_max", ImportFakeQuantize},
    {"moving_average_abs_max_scale", ImportObserver},
};

}  // namespace

absl::Span<const ImportRule> QuantizedRules() { return kQuantizedRules; }

}  // namespace npuc::paddle
