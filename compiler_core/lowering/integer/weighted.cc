#include "compiler_core/lowering/integer/weighted.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/integer/access.h"
#include "compiler_core/lowering/integer/context.h"
#include "compiler_core/ops/facts.h"
#include "compiler_core/ops/layers.h"
#include "compiler_core/ops/window.h"

namespace npuc {
namespace {

// How the elements of an operator's weight are laid: the strides of a LayerKernel's dimensions in
// it.
struct Layout {
  int64_t out_stride, tap_stride, group_stride;
};

absl::StatusOr<Layout> LayoutOf(const Node& root, const Shape& weight, LayerKernel& kernel) {
  if (root.op == Op::kMatMul) {
    const bool transposed = BoolAttrOr(root, "transpose_b", false);
    kernel.taps = 1;
    kernel.group = weight[transposed ? 1 : 0];
    kernel.out = weight[transposed ? 0 : 1];
    return transposed ? Layout{kernel.group, 0, 1} : Layout{1, 0, kernel.out};
  }
  kernel.taps = weight[0] * weight[1];
  if (root.op == Op::kDepthwiseConv2D) {
    kernel.group = 1;
    kernel.out = weight[2] * weight[3];
    return Layout{1, kernel.out, 0};
  }
  kernel.group = weight[2];
  kernel.out = weight[3];
  return Layout{1, weight[2] * weight[3], weight[3]};
}

// True where the scales' dimension is of result channels. A depthwise weight [h,w,c,m] has two
// such: scales run along one of them, or along the last over both.
bool ScalesResults(const IntegerContext& context, const QuantParams& params) {
  if (context.root().op == Op::kDepthwiseConv2D) return params.axis == 2 || params.axis == 3;
  return params.axis == ChannelAxis(context.graph(), context.layer());
}

// The scale of each result channel, from scales along the weight's axis.
absl::Status SpreadScales(const IntegerContext& context, const Shape& weight,
                          const QuantParams& params, LayerKernel& kernel) {
  const int64_t count = static_cast<int64_t>(params.scale.size());
  const bool are_results = ScalesResults(context, params);
  if (count == 1 || (are_results && count == kernel.out)) {
    kernel.scales = params.scale;
    return absl::OkStatus();
  }
  if (context.root().op != Op::kDepthwiseConv2D || !are_results ||
      count != weight[static_cast<size_t>(params.axis)]) {
    return absl::UnimplementedError(absl::StrCat(count, " weight scales along axis ", params.axis,
                                                 " for ", kernel.out, " result channels"));
  }
  for (int64_t o = 0; o < kernel.out; ++o) {
    const int64_t channel = params.axis == 2 ? o / weight[3] : o % weight[3];
    kernel.scales.push_back(params.scale[static_cast<size_t>(channel)]);
  }
  return absl::OkStatus();
}

}  // namespace

int64_t LayerKernel::Sum(int64_t o) const {
  int64_t sum = 0;
  for (int64_t i = 0; i < taps * group; ++i) {
    sum += values[static_cast<size_t>(o * taps * group + i)];
  }
  return sum;
}

absl::StatusOr<LayerKernel> TakeKernel(IntegerContext& context) {
  const Layer& layer = context.layer();
  const QuantParams* params = context.FindParams(layer.weight);
  if (params == nullptr) return absl::FailedPreconditionError("its weight has no scale");
  if (params->dtype != DType::kInt8 && params->dtype != DType::kInt16) {
    return absl::UnimplementedError(absl::StrCat("its weight is stored as ",
                                                 std::string(NameOf(params->dtype)),
                                                 "; i8 and i16 are computed"));
  }
  if (std::any_of(params->zero_point.begin(), params->zero_point.end(),
                  [](int64_t zero) { return zero != 0; })) {
    return absl::UnimplementedError("its weight is asymmetric");
  }
  ASSIGN_OR_RETURN(const Tensor stored, context.Integers(layer.weight, *params));
  const Shape& shape = context.graph().type(layer.weight).shape;
  LayerKernel kernel;
  kernel.dtype = params->dtype;
  ASSIGN_OR_RETURN(const Layout layout, LayoutOf(context.root(), shape, kernel));
  RETURN_IF_ERROR(SpreadScales(context, shape, *params, kernel));
  kernel.values.reserve(static_cast<size_t>(kernel.out * kernel.taps * kernel.group));
  for (int64_t o = 0; o < kernel.out; ++o) {
    for (int64_t tap = 0; tap < kernel.taps; ++tap) {
      for (int64_t i = 0; i < kernel.group; ++i) {
        kernel.values.push_back(stored.int_at(o * layout.out_stride + tap * layout.tap_stride +
                                              i * layout.group_stride));
      }
    }
  }
  return kernel;
}

namespace {

// Sums have 48 bits at most. A bias takes half of that.
constexpr int64_t kLargestBias = int64_t{1} << 46;

}  // namespace

absl::StatusOr<std::vector<int64_t>> StoredBiases(IntegerContext& context, const QuantParams& input,
                                                  const LayerKernel& kernel) {
  std::vector<int64_t> biases(static_cast<size_t>(kernel.out), 0);
  const ValueId bias = context.layer().bias;
  const Tensor* given = bias.valid() ? context.FindIntegers(bias) : nullptr;
  const Tensor* real = bias.valid() ? context.graph().ConstantOf(bias) : nullptr;
  if (real != nullptr && real->element_count() != kernel.out) {
    return absl::UnimplementedError("a bias that is not one number a result channel");
  }
  const QuantParams* stored = given != nullptr ? context.FindParams(bias) : nullptr;
  if (stored != nullptr && std::any_of(stored->zero_point.begin(), stored->zero_point.end(),
                                       [](int64_t zero) { return zero != 0; })) {
    return absl::UnimplementedError("its bias is asymmetric");
  }
  bool any_cut = false;
  for (size_t o = 0; o < biases.size(); ++o) {
    const double scale = input.scale[0] * kernel.scales[kernel.scales.size() == 1 ? 0 : o];
    const int64_t index = static_cast<int64_t>(o);
    if (given != nullptr) {
      biases[o] = given->int_at(index);
    } else if (real != nullptr) {
      biases[o] = RoundHalfEven(real->at(index) / scale);
    }
    const int64_t cut = std::clamp(biases[o], -kLargestBias, kLargestBias);
    any_cut = any_cut || cut != biases[o];
    biases[o] = cut;
  }
  if (any_cut) {
    context.Warn(DiagnosticKind::kBiasTooWide,
                 "a bias needs more than 47 bits beside the scales of its sums and is cut",
                 "quantize its weight with a wider scale");
  }
  return biases;
}

absl::Status FitSums(const IntegerContext& context, const QuantParams& input,
                     absl::Span<const int64_t> biases, LayerKernel& kernel) {
  const double low = static_cast<double>(input.qmin - input.zero_point[0]);
  const double high = static_cast<double>(input.qmax - input.zero_point[0]);
  double largest = 0;
  double largest_bias = 0;
  for (int64_t o = 0; o < kernel.out; ++o) {
    const double bias = static_cast<double>(biases[static_cast<size_t>(o)]);
    double least = bias;
    double most = bias;
    for (int64_t i = 0; i < kernel.taps * kernel.group; ++i) {
      const double weight = static_cast<double>(
          kernel.values[static_cast<size_t>(o * kernel.taps * kernel.group + i)]);
      least += std::min(weight * low, weight * high);
      most += std::max(weight * low, weight * high);
    }
    largest = std::max({largest, -least - 1, most});
    largest_bias = std::max(largest_bias, std::fabs(bias));
  }
  const bool is_narrow = SizeOf(input.dtype) == 1 && kernel.dtype == DType::kInt8;
  // TFLite's sums wrap in 32 bits, and its biases have no more.
  const double reach = context.exact() ? largest_bias : largest;
  if (is_narrow && reach > INT32_MAX) {
    kernel.dtype = DType::kInt16;
    kernel.is_widened = true;
  }
  constexpr double kWidestSum = 0x1p47;
  if (context.exact() || largest < kWidestSum) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("its sums can reach ", largest,
                                               "; sums have 48 bits, up to ", kWidestSum - 1,
                                               "; with fewer weight_bits they are smaller"));
}

absl::StatusOr<std::vector<Factor>> TakeFactors(IntegerContext& context, const QuantParams& input,
                                                const LayerKernel& kernel,
                                                const QuantParams& output, bool wide,
                                                Rounding& rounding) {
  std::vector<Factor> factors = context.settings().factors;
  if (!factors.empty()) {
    rounding = Rounding::kEven;
    if (factors.size() == 1 || static_cast<int64_t>(factors.size()) == kernel.out) return factors;
    return absl::UnimplementedError(
        absl::StrCat(factors.size(), " factors for ", kernel.out, " result channels"));
  }
  // TFLite's two roundings take 32 bits of a sum. So few bits reach factors down to 2^-48.
  constexpr int kWidenedFactorBits = 15;
  const bool is_svdf = BoolAttrOr(context.root(), kSvdfFact, false);
  for (const double scale : kernel.scales) {
    if (context.exact() && is_svdf) {
      const float factor = static_cast<float>(input.scale[0]) * static_cast<float>(scale) /
                           static_cast<float>(output.scale[0]);
      factors.push_back(MakeFactor(factor, 31));
      rounding = Rounding::kDouble;
      continue;
    }
    double product = input.scale[0] * scale;
    if (context.exact() && context.root().op == Op::kMatMul && kernel.scales.size() == 1) {
      // TFLite multiplies these two as floats, for matrix products alone.
      product = static_cast<float>(input.scale[0]) * static_cast<float>(scale);
    }
    if (kernel.is_widened) {
      factors.push_back(MakeFactor(product / output.scale[0], kWidenedFactorBits));
      rounding = Rounding::kEven;
      continue;
    }
    const auto [factor, its_rounding] = context.FactorFor(product / output.scale[0], wide);
    factors.push_back(factor);
    rounding = its_rounding;
  }
  return factors;
}

namespace {

// Makes biases of sums of (operand - zero point) * weight such of sums of operand * weight.
void AbsorbZeroPoint(const IntegerContext& context, const QuantParams& input,
                     const LayerKernel& kernel, std::vector<int64_t>& biases) {
  for (size_t o = 0; o < biases.size(); ++o) {
    biases[o] -= input.zero_point[0] * kernel.Sum(static_cast<int64_t>(o));
  }
  if (context.settings().bias_effective_bits < 32) {
    KeepHighBits(context.settings().bias_effective_bits, biases);
  }
}

// The operand, with its matrices as rows that are multiplied.
absl::StatusOr<Operand> TakeRows(IntegerContext& context, const QuantParams& input) {
  const ValueId operand = context.layer().inputs[0];
  if (!BoolAttrOr(context.root(), "transpose_a", false)) return context.Input(operand);
  const Shape& shape = context.graph().type(operand).shape;
  std::vector<int64_t> perm(shape.size());
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return PermutedInput(context, input, shape, perm);
}

absl::Status SetGeometry(IntegerContext& context, const LayerKernel& kernel, integer::Convolve& c) {
  const Node& root = context.root();
  const Shape& in = context.graph().type(root.inputs[0]).shape;
  if (kernel.group == 0) return absl::UnimplementedError("an operand has no elements");
  const auto number = [](int64_t value) { return static_cast<int32_t>(value); };
  c.out_c = number(kernel.out);
  if (root.op == Op::kMatMul) {
    c.in_c = number(kernel.group);
    c.in_h = c.out_h = number(ElementCount(in) / kernel.group);
    return absl::OkStatus();
  }
  const Shape& weight = context.graph().type(context.layer().weight).shape;
  ASSIGN_OR_RETURN(const WindowGeometry window, MakeConvWindow(root, in, weight));
  c.n = number(in[0]);
  c.in_h = number(in[1]);
  c.in_w = number(in[2]);
  c.in_c = number(in[3]);
  c.out_h = number(window.output[0]);
  c.out_w = number(window.output[1]);
  c.groups = number(in[3] / kernel.group);
  c.window = {number(window.kernel[0]),     number(window.kernel[1]),    number(window.stride[0]),
              number(window.stride[1]),     number(window.dilation[0]),  number(window.dilation[1]),
              number(window.pad_before[0]), number(window.pad_before[1])};
  return absl::OkStatus();
}

}  // namespace

absl::Status LowerWeighted(IntegerContext& context) {
  const Layer& layer = context.layer();
  const Node& root = context.root();
  if (root.op == Op::kMatMul && !MultipliesByMatrix(context.graph(), root)) {
    return LowerProduct(context);
  }
  if (!layer.weight.valid()) return absl::UnimplementedError("weights computed at run time");
  ASSIGN_OR_RETURN(const QuantParams input, context.ActivationParams(layer.inputs[0]));
  ASSIGN_OR_RETURN(const QuantParams output, context.ActivationParams(layer.outputs[0]));
  ASSIGN_OR_RETURN(LayerKernel kernel, TakeKernel(context));
  ASSIGN_OR_RETURN(std::vector<int64_t> biases, StoredBiases(context, input, kernel));
  RETURN_IF_ERROR(FitSums(context, input, biases, kernel));
  AbsorbZeroPoint(context, input, kernel, biases);
  integer::Convolve c;
  ASSIGN_OR_RETURN(c.a, TakeRows(context, input));
  c.a_type = input.dtype;
  c.weight_type = kernel.dtype;
  c.pad_value = static_cast<int32_t>(input.zero_point[0]);
  RETURN_IF_ERROR(SetGeometry(context, kernel, c));
  ASSIGN_OR_RETURN(const std::vector<Factor> factors,
                   TakeFactors(context, input, kernel, output, SizeOf(c.a_type) == 2, c.rounding));
  c.factor_count = static_cast<int32_t>(factors.size());
  c.weights = context.Constant(kernel.values, SizeOf(kernel.dtype));
  c.bias = context.Constant(biases, integer::BiasBytes(c));
  c.factors = context.Factors(factors);
  c.result = context.ResultFor(output, context.Output(layer.outputs[0], output));
  context.Emit(c);
  return absl::OkStatus();
}

}  // namespace npuc
