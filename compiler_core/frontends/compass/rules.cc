// What each layer type becomes.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/fixed_point.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/term.h"
#include "compiler_core/frontends/compass/layer_import.h"
#include "compiler_core/ir/compass/stored_factor.h"
#include "compiler_core/ops/quantize.h"

namespace npuc::compass {

absl::StatusOr<std::string> MethodOf(LayerImporter& node, absl::Span<const Names> methods) {
  const std::string method = node.Text("method");
  for (const auto& [name, op] : methods) {
    if (name == method) return std::string(op);
  }
  return node.FailAt("method", DiagnosticKind::kUnsupportedOperatorMode,
                     absl::StrCat("'", Printable(method), "' is not supported"),
                     "cut the model around the layer with INPUT_OPS or OUTPUT_OPS");
}

absl::StatusOr<ValueRef> Activated(LayerImporter& node, ValueRef value) {
  const std::string activation = node.Text("with_activation");
  if (activation.empty() || activation == "NONE") return value;
  if (activation == "RELU") return node.Emit("Relu", {value});
  if (activation == "RELU6") return node.Emit("Relu6", {value});
  return node.FailAt("with_activation", DiagnosticKind::kUnsupportedOperatorMode,
                     absl::StrCat("'", Printable(activation), "' is none of NONE, RELU, RELU6"),
                     "write the activation as a layer of its own");
}

namespace {

// The scales of integer weights [out, ...]: one, or one a result channel.
absl::StatusOr<QuantParams> WeightParams(LayerImporter& node, const Tensor& weights) {
  const int64_t outputs = weights.shape()[0];
  const DType dtype = weights.dtype();
  QuantParams params{dtype, LowestOf(dtype), HighestOf(dtype), -1, {}, {}};
  if (!node.Has("weights_scale_offset")) {
    return node.FailInvalid("weights_type", "integer weights without weights_scale");
  }
  ASSIGN_OR_RETURN(const Tensor scales, node.ReadConstant("weights_scale"));
  const int64_t count = scales.element_count();
  if (!IsFloat(scales.dtype()) || scales.shape().size() != 1 || (count != 1 && count != outputs)) {
    return node.FailInvalid("weights_scale_shape",
                            absl::StrCat(TypeToString(scales.type()), " is neither [1] nor [",
                                         outputs, "] of a float type"));
  }
  if (count > 1) params.axis = 0;
  for (int64_t i = 0; i < count; ++i) {
    params.scale.push_back(ScaleFromReciprocal(scales.at(i)));
    if (params.scale.back() > 0) continue;
    return node.FailInvalid("weights_scale_offset",
                            absl::StrCat("number ", i, " is ", scales.at(i),
                                         ", which is not above 0 with a finite reciprocal"));
  }
  params.zero_point.assign(static_cast<size_t>(count), 0);
  if (!node.Has("weights_zp_offset")) return params;
  ASSIGN_OR_RETURN(const Tensor zeros, node.ReadConstant("weights_zp"));
  if (!IsInteger(zeros.dtype()) || zeros.shape().size() != 1 ||
      (zeros.element_count() != 1 && zeros.element_count() != count)) {
    return node.FailInvalid("weights_zp_shape", absl::StrCat(TypeToString(zeros.type()),
                                                             " does not fit ", count, " scales"));
  }
  for (int64_t i = 0; i < count; ++i) {
    const int64_t zero = zeros.int_at(zeros.element_count() == 1 ? 0 : i);
    if (zero < -params.qmax || zero > -params.qmin) {
      return node.FailInvalid("weights_zp_offset", absl::StrCat("number ", i, " is ", zero,
                                                                ", which the type cannot hold"));
    }
    params.zero_point[static_cast<size_t>(i)] = -zero;
  }
  return params;
}

// A bias has the scale of the sums: the operand's times the weight's.
absl::StatusOr<ValueRef> BiasOf(LayerImporter& node, const std::optional<QuantParams>& weight) {
  ASSIGN_OR_RETURN(Tensor biases, node.ReadConstant("biases"));
  if (!IsInteger(biases.dtype())) return node.MakeWeight(std::move(biases), std::nullopt, "biases");
  const std::optional<QuantParams>& input = node.bottom(0).quant;
  if (!weight.has_value() || !input.has_value()) {
    return node.FailInvalid("biases_type", "integer biases where operand or weights are float");
  }
  const DType dtype = biases.dtype();
  QuantParams params{dtype, LowestOf(dtype), HighestOf(dtype), weight->axis, {}, {}};
  for (const double scale : weight->scale) params.scale.push_back(input->scale[0] * scale);
  params.zero_point.assign(params.scale.size(), 0);
  if (!std::all_of(params.scale.begin(), params.scale.end(),
                   [](double scale) { return std::isfinite(scale) && scale > 0; })) {
    return node.FailInvalid("weights_scale_offset",
                            "times the operand's scale is outside what doubles hold");
  }
  return node.MakeWeight(std::move(biases), std::move(params), "biases");
}

// Stored multipliers and right shifts as factors.
absl::StatusOr<std::vector<Factor>> StoredFactors(LayerImporter& node, int64_t outputs) {
  ASSIGN_OR_RETURN(const Tensor multipliers, node.ReadConstant("scale"));
  ASSIGN_OR_RETURN(const Tensor shifts, node.ReadConstant("shift"));
  const int64_t count = multipliers.element_count();
  if (!IsInteger(multipliers.dtype()) || !IsInteger(shifts.dtype()) ||
      shifts.element_count() != count || (count != 1 && count != outputs)) {
    return node.FailInvalid(
        "scale_shape",
        absl::StrCat(TypeToString(multipliers.type()), " and ", TypeToString(shifts.type()),
                     " of shift are not 1 or ", outputs, " factors of integers"));
  }
  std::vector<Factor> factors;
  for (int64_t i = 0; i < count; ++i) {
    constexpr int64_t kMost = INT16_MAX;
    const int64_t multiplier = multipliers.int_at(i);
    const int64_t shift = shifts.int_at(i);
    // A left shift goes into the multiplier.
    const int64_t whole = shift >= 0 ? multiplier : multiplier << std::min<int64_t>(-shift, 31);
    if (multiplier < 0 || multiplier > kMost || shift > kMostStoredShift || shift < -31 ||
        whole > INT32_MAX) {
      return node.FailInvalid("scale_offset",
                              absl::StrCat("factor ", i, " is ", multiplier, " * 2^", -shift,
                                           "; multipliers have 15 bits, right shifts 31"));
    }
    factors.push_back(
        {static_cast<int32_t>(whole), static_cast<int32_t>(std::max<int64_t>(shift, 0))});
  }
  return factors;
}

// Keeps the requantization of the file, where it is another than its scales give.
absl::Status TakeFactors(LayerImporter& node, const std::optional<QuantParams>& weight,
                         int64_t outputs) {
  if (!node.Has("scale_offset") && !node.Has("shift_offset")) return absl::OkStatus();
  const std::optional<QuantParams>& input = node.bottom(0).quant;
  const std::optional<QuantParams>& output = node.top().quant;
  if (!output.has_value() && IsInteger(node.top().type.dtype)) return node.FailWithoutScale(0);
  if (!weight.has_value() || !input.has_value() || !output.has_value()) {
    return node.FailInvalid("scale_offset", "requantization of a layer that is not quantized");
  }
  ASSIGN_OR_RETURN(std::vector<Factor> stored, StoredFactors(node, outputs));
  if (node.multiplier_bits() > kStoredMultiplierBits) return absl::OkStatus();
  bool follows = stored.size() == weight->scale.size();
  for (size_t i = 0; follows && i < stored.size(); ++i) {
    const double value = input->scale[0] * weight->scale[i] / output->scale[0];
    follows = stored[i] == AsStored(MakeFactor(value, node.multiplier_bits()));
  }
  if (!follows) node.SetFactors(std::move(stored));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Operands> WeightsOf(LayerImporter& node) {
  ASSIGN_OR_RETURN(Tensor weights, node.ReadConstant("weights"));
  std::optional<QuantParams> params;
  if (IsInteger(weights.dtype())) {
    ASSIGN_OR_RETURN(params, WeightParams(node, weights));
  }
  const int64_t outputs = weights.shape()[0];
  Operands operands;
  ASSIGN_OR_RETURN(operands.bias, BiasOf(node, params));
  RETURN_IF_ERROR(TakeFactors(node, params, outputs));
  operands.weight = node.MakeWeight(std::move(weights), std::move(params), "weights");
  return operands;
}

namespace {

AttrMap WindowAttrs(const LayerImporter& node) {
  const auto number = [&](absl::string_view key) { return node.NumberOr(key, 0); };
  return {{"strides", Shape{number("stride_y"), number("stride_x")}},
          {"dilations", Shape{number("dilation_y"), number("dilation_x")}},
          {"pads", Shape{number("pad_top"), number("pad_bottom"), number("pad_left"),
                         number("pad_right")}}};
}

absl::StatusOr<ValueRef> WithBias(LayerImporter& node, const ValueRef& sums, ValueRef bias) {
  ASSIGN_OR_RETURN(ValueRef value, node.Emit("Add", {sums, std::move(bias)}));
  return Activated(node, std::move(value));
}

// Weights [O,H,W,I] -> [H,W,I,O].
absl::StatusOr<ValueRef> ImportConvolution(LayerImporter& node) {
  ASSIGN_OR_RETURN(const Operands operands, WeightsOf(node));
  ASSIGN_OR_RETURN(const ValueRef weight, node.Transposed(operands.weight, {1, 2, 3, 0}));
  ASSIGN_OR_RETURN(const ValueRef sums,
                   node.Emit("Conv2D", {node.input(0), weight}, WindowAttrs(node)));
  return WithBias(node, sums, operands.bias);
}

// Weights [C*M,H,W,1] -> [H,W,C,M]. Scales for each of C*M results fit no axis of that where both
// are more than one: then it is a convolution in C groups, whose weight is [H,W,1,C*M].
absl::StatusOr<ValueRef> ImportDepthwise(LayerImporter& node) {
  const int64_t channels = node.shape(0)[3];
  if (node.NumberOr("group", 0) != channels) {
    return node.FailInvalid("group", absl::StrCat("is not the bottom's ", channels, " channels"));
  }
  ASSIGN_OR_RETURN(const Operands operands, WeightsOf(node));
  ASSIGN_OR_RETURN(ValueRef weight, node.Transposed(operands.weight, {1, 2, 3, 0}));
  const Shape shape = weight->type.shape;
  const int64_t multiplier = shape[3] / channels;
  const bool by_result = weight->stored.has_value() && weight->stored->params.axis >= 0;
  const bool in_groups = by_result && multiplier > 1 && channels > 1;
  if (!in_groups) {
    ASSIGN_OR_RETURN(weight, node.Reshaped(weight, {shape[0], shape[1], channels, multiplier}));
  }
  ASSIGN_OR_RETURN(const ValueRef sums, node.Emit(in_groups ? "Conv2D" : "DepthwiseConv2D",
                                                  {node.input(0), weight}, WindowAttrs(node)));
  return WithBias(node, sums, operands.bias);
}

absl::StatusOr<ValueRef> ImportFullyConnected(LayerImporter& node) {
  ASSIGN_OR_RETURN(const Operands operands, WeightsOf(node));
  ASSIGN_OR_RETURN(const ValueRef weight, node.Transposed(operands.weight, {1, 0}));
  ASSIGN_OR_RETURN(const ValueRef sums, node.Emit("MatMul", {node.input(0), weight}));
  return WithBias(node, sums, operands.bias);
}

absl::StatusOr<ValueRef> ImportPooling(LayerImporter& node) {
  constexpr Names kMethods[] = {{"AVG", "AvgPool"}, {"MAX", "MaxPool"}};
  ASSIGN_OR_RETURN(const std::string op, MethodOf(node, kMethods));
  AttrMap attrs = WindowAttrs(node);
  if (std::get<Shape>(attrs["dilations"]) != Shape{1, 1}) {
    return node.FailAt("dilation_y", DiagnosticKind::kUnsupportedOperatorMode, "pooling is dilated",
                       "use dilation 1");
  }
  attrs.erase("dilations");
  const Shape kernel = {node.NumberOr("kernel_y", 1), node.NumberOr("kernel_x", 1)};
  attrs["kernel"] = kernel;
  Shape& pads = std::get<Shape>(attrs["pads"]);
  if (op == "AvgPool" && node.Text("count_include_pad") == "true" &&
      std::any_of(pads.begin(), pads.end(), [](int64_t pad) { return pad != 0; })) {
    return node.FailAt("count_include_pad", DiagnosticKind::kUnsupportedOperatorMode,
                       "means of windows that count their pads", "pad with a layer of its own");
  }
  // ceil_mode: as many rows behind the image as the last window needs.
  const Shape& strides = std::get<Shape>(attrs["strides"]);
  for (size_t d = 0; d < 2; ++d) {
    const int64_t reach = (node.top().type.shape[d + 1] - 1) * strides[d] + kernel[d];
    const int64_t missing = reach - (node.shape(0)[d + 1] + pads[2 * d] + pads[2 * d + 1]);
    pads[2 * d + 1] += std::max<int64_t>(missing, 0);
  }
  ASSIGN_OR_RETURN(ValueRef value, node.Emit(op, {node.input(0)}, std::move(attrs)));
  return Activated(node, std::move(value));
}

absl::StatusOr<ValueRef> ImportReshape(LayerImporter& node) {
  return node.Reshaped(node.input(0), node.top().type.shape);
}

absl::StatusOr<ValueRef> ImportSoftmax(LayerImporter& node) {
  ASSIGN_OR_RETURN(const int64_t axis, node.Axis(node.NumberOr("axis", 0), node.rank(0)));
  return node.Emit("Softmax", {node.input(0)}, {{"axis", axis}});
}

absl::StatusOr<ValueRef> ImportEltwise(LayerImporter& node) {
  constexpr Names kMethods[] = {
      {"ADD", "Add"}, {"SUB", "Sub"}, {"MUL", "Mul"}, {"MAX", "Maximum"}, {"MIN", "Minimum"}};
  ASSIGN_OR_RETURN(const std::string op, MethodOf(node, kMethods));
  ASSIGN_OR_RETURN(ValueRef value, node.Emit(op, {node.input(0), node.input(1)}));
  return Activated(node, std::move(value));
}

absl::StatusOr<ValueRef> ImportConcat(LayerImporter& node) {
  ASSIGN_OR_RETURN(const int64_t axis, node.Axis(node.NumberOr("axis", 0), node.rank(0)));
  std::vector<ValueRef> values;
  for (int i = 0; i < node.input_count(); ++i) values.push_back(node.input(i));
  return node.Joined(values, axis);
}

absl::StatusOr<ValueRef> ImportTranspose(LayerImporter& node) {
  return node.Transposed(node.input(0), ParseInts(node.Text("perm")).value_or(Shape()));
}

absl::StatusOr<ValueRef> ImportReduce(LayerImporter& node) {
  constexpr Names kMethods[] = {
      {"MEAN", "ReduceMean"}, {"SUM", "ReduceSum"}, {"MAX", "ReduceMax"}, {"MIN", "Min"}};
  ASSIGN_OR_RETURN(const std::string op, MethodOf(node, kMethods));
  const std::optional<Shape> list = ParseInts(node.Text("axis"));
  if (!list.has_value()) return node.FailInvalid("axis", "is no list of dimensions");
  ASSIGN_OR_RETURN(std::vector<int64_t> axes, node.Axes(*list, node.rank(0)));
  const bool keep_dims = node.top().type.shape.size() == node.shape(0).size();
  if (op != "Min") return node.Reduced(op, node.input(0), std::move(axes), keep_dims);
  const frontend::Term x(node, node.input(0));
  return (-frontend::Reduced("ReduceMax", -x, axes, keep_dims)).value;
}

constexpr ImportRule kLayerRules[] = {
    {"Concat", ImportConcat},
    {"Convolution", ImportConvolution},
    {"DepthwiseConv", ImportDepthwise},
    {"Eltwise", ImportEltwise},
    {"FullyConnected", ImportFullyConnected},
    {"Pooling", ImportPooling},
    {"Reduce", ImportReduce},
    {"Reshape", ImportReshape},
    {"Softmax", ImportSoftmax},
    {"Transpose", ImportTranspose},
};

}  // namespace

frontend::RuleTable<ImportRule> AllRules() {
  return {kLayerRules, MathRules(), RecurrentRules(), ShapeRules()};
}

}  // namespace npuc::compass
