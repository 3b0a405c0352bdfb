// Operators of quantized models (torch.ops.quantized): the float operator on the floats that the
// integers stand for, stored by the parameters that the call states. Layers have their weights in
// objects, as the archive keeps them or as a prepack of its code makes them.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/torchscript/executor.h"
#include "compiler_core/frontends/torchscript/pickle.h"
#include "compiler_core/frontends/torchscript/quantized.h"
#include "compiler_core/ops/quantize.h"

namespace npuc::pt {
namespace {

// The rule of another operator, with these arguments.
absl::StatusOr<ScriptValue> RunFloat(OpCall& call, absl::string_view op,
                                     std::vector<ScriptValue> arguments) {
  static const auto* const kQuantizedRules = new frontend::RuleTable<OpRule>(TensorRules());
  const OpRule* const rule = kQuantizedRules->Find(op);
  NPUC_CHECK(rule != nullptr);
  OpCall inner(&call.state(), call.place(), call.source());
  inner.set_name(rule->op);
  if (!inner.Bind(rule->parameters, std::move(arguments), {})) {
    return call.AlreadyReported(absl::InvalidArgumentError("the arguments do not fit"));
  }
  absl::StatusOr<ScriptValue> result = rule->import(inner);
  if (!result.ok() && inner.has_reported()) return call.AlreadyReported(result.status());
  return result;
}

absl::StatusOr<ValueRef> RunFloatOne(OpCall& call, absl::string_view op,
                                     std::vector<ScriptValue> arguments) {
  ASSIGN_OR_RETURN(const ScriptValue result, RunFloat(call, op, std::move(arguments)));
  if (!result.Is(ScriptKind::kTensor)) {
    return absl::InvalidArgumentError(absl::StrCat(op, " of other than tensors"));
  }
  return call.Read(result.tensor);
}

absl::StatusOr<ScriptValue> QuantizedResult(OpCall& call, const ValueRef& value,
                                            const QuantParams& params) {
  ASSIGN_OR_RETURN(const ValueRef stored, call.Requantized(value, params));
  return call.Result(WithQuantization(stored, params));
}

// The parameters of a quantized operand; refuses a float tensor, which torch would, too.
absl::StatusOr<QuantParams> OperandParams(const ValueRef& value) {
  const QuantParams* const params = QuantizationOf(value);
  if (params == nullptr || params->axis >= 0) {
    return absl::InvalidArgumentError("the operand is no tensor that is quantized as a whole");
  }
  return *params;
}

// The parameters that the call states for its result, of the operand's type.
absl::StatusOr<QuantParams> ResultParams(OpCall& call, DType dtype, int scale) {
  ASSIGN_OR_RETURN(const double step, call.FloatOr(scale, 0));
  ASSIGN_OR_RETURN(const int64_t zero_point, call.Int(scale + 1));
  return PerTensorParams(dtype, step, zero_point);
}

absl::StatusOr<DType> QuantizedTypeArg(OpCall& call, int arg) {
  ASSIGN_OR_RETURN(const int64_t number, call.Int(arg));
  for (const ScalarType type : {ScalarType::kQInt8, ScalarType::kQUInt8, ScalarType::kQInt32}) {
    if (number == static_cast<int64_t>(type)) return DTypeOf(type);
  }
  return call.FailMode(absl::StrCat("integers of torch's type ", number),
                       "quantize to qint8 or quint8");
}

// self, scale, zero_point, dtype
absl::StatusOr<ScriptValue> ImportQuantize(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const DType dtype, QuantizedTypeArg(call, 3));
  ASSIGN_OR_RETURN(const QuantParams params, ResultParams(call, dtype, 1));
  return QuantizedResult(call, x, params);
}

// Parameters by channel: tensors of scales and zero points, and an axis.
absl::StatusOr<QuantParams> ChannelParams(OpCall& call, DType dtype, int scales,
                                          const Shape& shape) {
  ASSIGN_OR_RETURN(const Tensor steps, call.ConstantArg(scales));
  ASSIGN_OR_RETURN(const Tensor zeros, call.ConstantArg(scales + 1));
  ASSIGN_OR_RETURN(int64_t axis, call.Int(scales + 2));
  ASSIGN_OR_RETURN(axis, call.Axis(axis, static_cast<int64_t>(shape.size())));
  return ByChannelParams(dtype, steps, zeros, axis, shape);
}

// self, scales, zero_points, axis, dtype
absl::StatusOr<ScriptValue> ImportQuantizeByChannel(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const DType dtype, QuantizedTypeArg(call, 4));
  ASSIGN_OR_RETURN(const QuantParams params, ChannelParams(call, dtype, 1, x->type.shape));
  return QuantizedResult(call, x, params);
}

// Dequantizes one tensor, or each of a list.
absl::StatusOr<ScriptValue> ImportDequantize(OpCall& call) {
  const auto plain = [&](const ValueRef& value) {
    auto copy = std::make_shared<ImportValue>(*value);
    copy->facts = nullptr;
    return call.Result(std::move(copy));
  };
  if (!call.arg(0).IsSequence()) {
    ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
    return plain(x);
  }
  ASSIGN_OR_RETURN(const std::vector<ValueRef> values, call.Tensors(0));
  std::vector<ScriptValue> results;
  for (const ValueRef& value : values) results.push_back(plain(value));
  return call.state().heap.List(std::move(results));
}

// The range of a fake-quantized tensor within integers of 8 or 16 bits.
absl::StatusOr<QuantParams> NarrowTo(OpCall& call, QuantParams params, int lowest) {
  ASSIGN_OR_RETURN(params.qmin, call.Int(lowest));
  ASSIGN_OR_RETURN(params.qmax, call.Int(lowest + 1));
  for (const DType dtype : {DType::kInt8, DType::kUint8, DType::kInt16, DType::kUint16}) {
    if (params.qmin < LowestOf(dtype) || params.qmax > HighestOf(dtype)) continue;
    params.dtype = dtype;
    RETURN_IF_ERROR(CheckQuantization(params, {}));
    return params;
  }
  return call.FailMode(absl::StrCat("a range of ", params.qmin, " to ", params.qmax),
                       "quantize to at most 16 bits");
}

// Rounds a float tensor, as a model does that was trained for quantization. Arguments:
// self, scale, zero_point, quant_min, quant_max
absl::StatusOr<ScriptValue> ImportFakeQuantize(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(QuantParams params, ResultParams(call, DType::kInt32, 1));
  ASSIGN_OR_RETURN(params, NarrowTo(call, std::move(params), 3));
  return call.Result(call.Requantized(x, params));
}

absl::StatusOr<ScriptValue> ImportScale(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const QuantParams params, OperandParams(x));
  return ScriptValue::Float(params.scale[0]);
}
absl::StatusOr<ScriptValue> ImportZeroPoint(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const QuantParams params, OperandParams(x));
  return ScriptValue::Int(params.zero_point[0]);
}
absl::StatusOr<ScriptValue> ImportIsQuantized(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  return ScriptValue::Bool(QuantizationOf(x) != nullptr);
}

// The content of an object with packed weights, as the archive's newest form has it: the version 3,
// a list of settings, and [None, weight, bias]; of a linear layer (weight, bias) alone. Settings
// are the number of dimensions, then for each of them the strides, paddings, dilations and output
// paddings, then the groups and 1 for a transposed convolution.
struct QuantizedLayer {
  ScriptValue weight;
  ScriptValue bias;
  std::vector<int64_t> settings;
};

constexpr absl::string_view kNoLayer = "what it is given holds no weights of such a layer";
constexpr absl::string_view kPackedVersion = "3";

// Names a weight as the float layer has it: "features.0._packed_params" gives
// "features.0.weight".
ScriptValue NamedParameter(OpCall& call, const ScriptValue& value, absl::string_view name) {
  if (!value.Is(ScriptKind::kTensor)) return value;
  std::string path = call.source().name;
  path = path.substr(0, path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  const absl::string_view layer = absl::StripSuffix(path, "._packed_params");
  auto named = std::make_shared<ImportValue>(*value.tensor->value);
  named->source.name = absl::StrCat(layer, layer.empty() ? "" : ".", name);
  return call.state().heap.Tensor(std::move(named));
}

ScriptValue MakePacked(OpCall& call, std::vector<ScriptValue> items) {
  const ScriptValue object = call.state().heap.Object();
  object.object->class_name = "packed weights";
  object.object->attributes.emplace(kPackedState, call.state().heap.Tuple(std::move(items)));
  return object;
}

// weight, bias
absl::StatusOr<ScriptValue> ImportLinearPrepack(OpCall& call) {
  RETURN_IF_ERROR(call.TensorArg(0).status());
  return MakePacked(call, {NamedParameter(call, call.arg(0), "weight"),
                           NamedParameter(call, call.arg(1), "bias")});
}

// weight, bias, stride, padding, dilation, groups; of a transposed one with output_padding in front
// of the dilation.
absl::StatusOr<ScriptValue> ImportConvPrepack(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef weight, call.TensorArg(0));
  const bool transposed = absl::StrContains(call.name(), "transpose");
  const size_t dims = weight->type.shape.size() < 3 ? 0 : weight->type.shape.size() - 2;
  if (dims != 1 && dims != 2) {
    return call.FailMode("a quantized convolution over other than 1 or 2 dimensions",
                         "keep this layer in float");
  }
  std::vector<int64_t> settings = {static_cast<int64_t>(dims)};
  const std::vector<int> order =
      transposed ? std::vector<int>{2, 3, 5, 4} : std::vector<int>{2, 3, 4};
  for (const int arg : order) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> values,
                     call.IntsOf(arg, dims, {arg == 3 || (transposed && arg == 4) ? 0 : 1}));
    settings.insert(settings.end(), values.begin(), values.end());
  }
  if (!transposed) settings.insert(settings.end(), dims, 0);
  ASSIGN_OR_RETURN(settings.emplace_back(), call.IntOr(transposed ? 6 : 5, 1));
  settings.push_back(transposed ? 1 : 0);
  ScriptHeap& heap = call.state().heap;
  return MakePacked(call,
                    {heap.String(std::string(kPackedVersion)), heap.Ints(settings),
                     heap.List({ScriptValue::None(), NamedParameter(call, call.arg(0), "weight"),
                                NamedParameter(call, call.arg(1), "bias")})});
}

absl::StatusOr<const std::vector<ScriptValue>*> PackedState(const ScriptValue& packed) {
  if (packed.Is(ScriptKind::kObject)) {
    const auto state = packed.object->attributes.find(kPackedState);
    if (state != packed.object->attributes.end()) return &state->second.list->items;
  }
  return absl::InvalidArgumentError(kNoLayer);
}

// Integers of a list, or of a constant tensor.
absl::StatusOr<std::vector<int64_t>> Settings(OpCall& call, const ScriptValue& value) {
  std::vector<int64_t> settings;
  if (value.IsSequence()) {
    for (const ScriptValue& item : value.list->items) {
      if (!item.Is(ScriptKind::kInt)) return absl::InvalidArgumentError(kNoLayer);
      settings.push_back(item.integer);
    }
    return settings;
  }
  if (!value.Is(ScriptKind::kTensor)) return absl::InvalidArgumentError(kNoLayer);
  ASSIGN_OR_RETURN(const ValueRef tensor, call.Read(value.tensor));
  if (!tensor->constant.has_value() || IsFloat(tensor->type.dtype) ||
      tensor->type.element_count() > 64) {
    return absl::InvalidArgumentError(kNoLayer);
  }
  for (int64_t i = 0; i < tensor->type.element_count(); ++i) {
    settings.push_back(tensor->constant->int_at(i));
  }
  return settings;
}

absl::StatusOr<QuantizedLayer> PackedLinear(const ScriptValue& packed) {
  ASSIGN_OR_RETURN(const std::vector<ScriptValue>* const items, PackedState(packed));
  if (items->size() != 2 || !(*items)[0].Is(ScriptKind::kTensor)) {
    return absl::InvalidArgumentError(kNoLayer);
  }
  return QuantizedLayer{(*items)[0], (*items)[1], {}};
}

// Version 3, or 2: settings as a tensor in front of the weight, the bias in a list of its own.
absl::StatusOr<QuantizedLayer> PackedConv(OpCall& call, const ScriptValue& packed) {
  ASSIGN_OR_RETURN(const std::vector<ScriptValue>* const items, PackedState(packed));
  if (items->size() != 3) return absl::InvalidArgumentError(kNoLayer);
  const std::string version = ScriptText((*items)[0]);
  std::vector<ScriptValue> lists[2];
  QuantizedLayer layer;
  for (const size_t i : {1, 2}) {
    if (!(*items)[i].IsSequence()) return absl::InvalidArgumentError(kNoLayer);
    lists[i - 1] = (*items)[i].list->items;
  }
  ScriptValue settings;
  if (version == kPackedVersion && lists[1].size() == 3) {
    settings = (*items)[1];
    layer.weight = lists[1][1];
    layer.bias = lists[1][2];
  } else if (version == "2" && lists[0].size() == 2 && lists[1].size() == 1) {
    settings = lists[0][0];
    layer.weight = lists[0][1];
    layer.bias = lists[1][0];
  } else {
    return absl::InvalidArgumentError(kNoLayer);
  }
  ASSIGN_OR_RETURN(layer.settings, Settings(call, settings));
  const int64_t dims = layer.settings.empty() ? 0 : layer.settings[0];
  if (dims < 1 || dims > 3 || layer.settings.size() != static_cast<size_t>(4 * dims + 3) ||
      !layer.weight.Is(ScriptKind::kTensor)) {
    return absl::InvalidArgumentError(kNoLayer);
  }
  return layer;
}

// The bias as the 32-bit integers that are added to sums of products, by their scale; the floats
// where they do not fit.
absl::StatusOr<ScriptValue> SumsBias(OpCall& call, const ScriptValue& bias, const QuantParams& x,
                                     const ScriptValue& weight, int64_t weight_axis) {
  if (!bias.Is(ScriptKind::kTensor)) return bias;
  ASSIGN_OR_RETURN(const ValueRef floats, call.Read(bias.tensor));
  ASSIGN_OR_RETURN(const ValueRef w, call.Read(weight.tensor));
  const QuantParams* const by = QuantizationOf(w);
  if (by == nullptr || !floats->constant.has_value() || floats->type.shape.size() != 1 ||
      (by->axis >= 0 && by->axis != weight_axis)) {
    return bias;
  }
  const Tensor& constant = *floats->constant;
  const auto count = static_cast<size_t>(constant.element_count());
  if (by->axis >= 0 && by->scale.size() != count) return bias;
  QuantParams params;
  params.dtype = DType::kInt32;
  params.qmin = LowestOf(params.dtype);
  params.qmax = HighestOf(params.dtype);
  params.axis = by->axis >= 0 ? 0 : -1;
  for (const double scale : by->scale) params.scale.push_back(scale * x.scale[0]);
  params.zero_point.assign(params.scale.size(), 0);
  std::vector<int64_t> integers(count);
  for (size_t i = 0; i < count; ++i) {
    const double scaled =
        std::nearbyint(constant.at(static_cast<int64_t>(i)) / params.scale[by->axis >= 0 ? i : 0]);
    if (!(std::fabs(scaled) <= static_cast<double>(params.qmax))) return bias;
    integers[i] = static_cast<int64_t>(scaled);
  }
  RETURN_IF_ERROR(CheckQuantization(params, constant.shape()));
  return call.Result(call.MakeStored(
      {CastTensor(Tensor::FromInts(constant.shape(), integers), DType::kInt32), params},
      floats->source));
}

bool IsDynamic(absl::string_view op) { return absl::EndsWith(op, "_dynamic"); }
bool HasRelu(absl::string_view op) {
  op = absl::StripSuffix(op, "_dynamic");
  return absl::EndsWith(op, "_relu") && !absl::EndsWith(op, "leaky_relu");
}

// The result of a layer whose sums are floats: through the activation that is part of its name,
// stored where the call states how.
absl::StatusOr<ScriptValue> FinishLayer(OpCall& call, ValueRef y, const QuantParams* params) {
  if (HasRelu(call.name())) {
    ASSIGN_OR_RETURN(y, call.Emit("Relu", {y}));
  }
  if (params == nullptr) return call.Result(std::move(y));
  return QuantizedResult(call, y, *params);
}

// A layer with weights in half precision has floats alone.
absl::StatusOr<ScriptValue> ImportHalfLinear(OpCall& call) {
  ASSIGN_OR_RETURN(const QuantizedLayer layer, PackedLinear(call.arg(1)));
  return call.Result(RunFloatOne(call, "linear", {call.arg(0), layer.weight, layer.bias}));
}

// x, packed weights, then the scale and the zero point of the result. A dynamic layer states none:
// its operand and its result are floats, and it computes in float here.
absl::StatusOr<ScriptValue> ImportLinearLayer(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(QuantizedLayer layer, PackedLinear(call.arg(1)));
  std::optional<QuantParams> result;
  if (!IsDynamic(call.name())) {
    ASSIGN_OR_RETURN(const QuantParams operand, OperandParams(x));
    ASSIGN_OR_RETURN(result, ResultParams(call, operand.dtype, 2));
    ASSIGN_OR_RETURN(layer.bias, SumsBias(call, layer.bias, operand, layer.weight, 0));
  }
  ASSIGN_OR_RETURN(ValueRef y,
                   RunFloatOne(call, "linear", {call.arg(0), layer.weight, layer.bias}));
  return FinishLayer(call, std::move(y), result.has_value() ? &*result : nullptr);
}

// The layer of a signal that torch packed as one of an image of height 1, as one of a signal.
absl::Status UnpackSignal(OpCall& call, QuantizedLayer& layer) {
  ASSIGN_OR_RETURN(ValueRef weight,
                   RunFloatOne(call, "squeeze", {layer.weight, ScriptValue::Int(2)}));
  layer.weight = call.Result(std::move(weight));
  std::vector<int64_t> settings = {1};
  for (size_t i = 2; i + 2 < layer.settings.size(); i += 2) settings.push_back(layer.settings[i]);
  settings.insert(settings.end(), layer.settings.end() - 2, layer.settings.end());
  layer.settings = std::move(settings);
  return absl::OkStatus();
}

absl::StatusOr<ScriptValue> ImportConvLayer(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(QuantizedLayer layer, PackedConv(call, call.arg(1)));
  const bool transposed = layer.settings.back() == 1;
  std::optional<QuantParams> result;
  if (!IsDynamic(call.name())) {
    ASSIGN_OR_RETURN(const QuantParams operand, OperandParams(x));
    ASSIGN_OR_RETURN(result, ResultParams(call, operand.dtype, 2));
    ASSIGN_OR_RETURN(layer.bias,
                     SumsBias(call, layer.bias, operand, layer.weight, transposed ? 1 : 0));
  }
  if (layer.settings[0] == 2 && absl::StrContains(call.name(), "1d")) {
    RETURN_IF_ERROR(UnpackSignal(call, layer));
  }
  const int64_t dims = layer.settings[0];
  if (dims > 2) {
    return call.FailMode("a quantized convolution over 3 dimensions", "keep this layer in float");
  }
  const auto part = [&](int64_t i) {
    const auto begin = layer.settings.begin() + 1 + i * dims;
    return call.state().heap.Ints({begin, begin + dims});
  };
  const ScriptValue groups = ScriptValue::Int(layer.settings[static_cast<size_t>(4 * dims + 1)]);
  std::vector<ScriptValue> arguments = {call.arg(0), layer.weight, layer.bias, part(0), part(1)};
  if (transposed) {
    arguments.insert(arguments.end(), {part(3), groups, part(2)});
  } else {
    arguments.insert(arguments.end(), {part(2), groups});
  }
  ASSIGN_OR_RETURN(
      ValueRef y, RunFloatOne(call, absl::StrCat(transposed ? "conv_transpose" : "conv", dims, "d"),
                              std::move(arguments)));
  return FinishLayer(call, std::move(y), result.has_value() ? &*result : nullptr);
}

// The flat list of weights that the float operator takes, of objects of packed ones: for each layer
// and direction the type, the biases, and the two layers that hold weights and biases.
absl::StatusOr<ScriptValue> RecurrentWeights(OpCall& call, int arg, bool has_biases) {
  if (!call.arg(arg).IsSequence()) return absl::InvalidArgumentError(kNoLayer);
  std::vector<ScriptValue> flat;
  for (const ScriptValue& cell : call.arg(arg).list->items) {
    ASSIGN_OR_RETURN(const std::vector<ScriptValue>* const state, PackedState(cell));
    if (state->size() != 5 || !(*state)[4].IsSequence() || (*state)[4].list->items.size() != 2) {
      return absl::InvalidArgumentError(kNoLayer);
    }
    std::vector<QuantizedLayer> layers;
    for (const ScriptValue& packed : (*state)[4].list->items) {
      ASSIGN_OR_RETURN(layers.emplace_back(), PackedLinear(packed));
    }
    for (const QuantizedLayer& layer : layers) flat.push_back(layer.weight);
    for (const QuantizedLayer& layer : layers) {
      if (has_biases) flat.push_back(layer.bias);
    }
  }
  return call.state().heap.List(std::move(flat));
}

// input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first
absl::StatusOr<ScriptValue> ImportQuantizedRecurrent(OpCall& call) {
  ASSIGN_OR_RETURN(const bool has_biases, call.BoolOr(3, true));
  std::vector<ScriptValue> arguments;
  for (int i = 0; i < 9; ++i) arguments.push_back(call.arg(i));
  if (call.arg(3).IsSequence()) return RunFloat(call, "lstm", std::move(arguments));  // refused
  ASSIGN_OR_RETURN(arguments[2], RecurrentWeights(call, 2, has_biases));
  return RunFloat(call, absl::StripPrefix(call.name(), "quantized_"), std::move(arguments));
}

// qa, other, scale, zero_point; the result of an operator on two quantized tensors.
absl::StatusOr<ScriptValue> ImportBinary(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef a, call.TensorArg(0));
  ASSIGN_OR_RETURN(const ValueRef b, call.TensorArg(1));
  ASSIGN_OR_RETURN(const QuantParams operand, OperandParams(a));
  RETURN_IF_ERROR(OperandParams(b).status());
  ASSIGN_OR_RETURN(const QuantParams params, ResultParams(call, operand.dtype, 2));
  absl::string_view op = absl::StripPrefix(call.name(), kQuantizedPrefix);
  op = absl::StripSuffix(op, "_relu");
  ASSIGN_OR_RETURN(ValueRef y, RunFloatOne(call, op, {call.arg(0), call.arg(1)}));
  return FinishLayer(call, std::move(y), &params);
}

// A quantized tensor times a number: the same integers by another scale, turned for a negative one.
absl::StatusOr<ScriptValue> ImportMulScalar(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(QuantParams params, OperandParams(x));
  ASSIGN_OR_RETURN(const double factor, call.FloatOr(1, 0));
  const Term y = Term(call, x) * factor;
  RETURN_IF_ERROR(y.value.status());
  params.scale[0] = factor == 0 ? 1 : params.scale[0] * std::fabs(factor);
  if (factor < 0) params.zero_point[0] = params.qmax - (params.zero_point[0] - params.qmin);
  if (factor == 0) params.zero_point[0] = 0;
  ASSIGN_OR_RETURN(params, PerTensorParams(params.dtype, params.scale[0], params.zero_point[0]));
  return FinishLayer(call, *y.value, &params);
}

// A quantized tensor and a number, which is rounded to a multiple of the scale: the zero point
// moves, and where it leaves its range the scale grows, as ATen computes them.
absl::StatusOr<ScriptValue> ImportAddScalar(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const QuantParams from, OperandParams(x));
  ASSIGN_OR_RETURN(const double number, call.FloatOr(1, 0));
  const double steps = std::nearbyint(number / from.scale[0]);
  if (!(std::fabs(steps) < 0x1p31)) {
    return absl::InvalidArgumentError("the number is far beyond the range of the operand");
  }
  const auto lowest = static_cast<double>(from.qmin);
  const auto highest = static_cast<double>(from.qmax);
  const double zero = static_cast<double>(from.zero_point[0]) - steps;
  double scale = from.scale[0];
  if (zero < lowest) scale *= (highest - zero) / (highest - lowest);
  if (zero > highest) scale *= (zero - lowest) / (highest - lowest);
  const double clamped = std::clamp(zero, lowest, highest);
  ASSIGN_OR_RETURN(const QuantParams params,
                   PerTensorParams(from.dtype, scale, static_cast<int64_t>(clamped)));
  const Term y = Term(call, x) + steps * from.scale[0];
  RETURN_IF_ERROR(y.value.status());
  return FinishLayer(call, *y.value, &params);
}

// Operators with a float one of their own, and which of their arguments that takes: a parameter, or
// a word for None and false. They end with the scale and the zero point of the result; one without
// stores it as its operand is stored.
struct FloatForm {
  absl::string_view op;
  absl::string_view parameters;
  absl::string_view float_op;
  absl::string_view arguments;
};
constexpr absl::string_view kBatchNorm =
    "qx weight bias mean var eps output_scale output_zero_point";
constexpr absl::string_view kBatchNormArguments = "qx weight bias mean var false None eps";
constexpr FloatForm kFloatForms[] = {
    {"quantized::batch_norm", kBatchNorm, "batch_norm", kBatchNormArguments},
    {"quantized::batch_norm1d", kBatchNorm, "batch_norm", kBatchNormArguments},
    {"quantized::batch_norm1d_relu", kBatchNorm, "batch_norm", kBatchNormArguments},
    {"quantized::batch_norm2d", kBatchNorm, "batch_norm", kBatchNormArguments},
    {"quantized::batch_norm2d_relu", kBatchNorm, "batch_norm", kBatchNormArguments},
    {"quantized::cat", "qx dim output_scale output_zero_point", "cat", "qx dim"},
    {"quantized::cat_relu", "qx dim output_scale output_zero_point", "cat", "qx dim"},
    {"quantized::elu", "self output_scale output_zero_point alpha scale input_scale", "elu",
     "self alpha scale input_scale"},
    {"quantized::group_norm", "qx num_groups weight bias eps output_scale output_zero_point",
     "group_norm", "qx num_groups weight bias eps"},
    {"quantized::hardswish", "input output_scale output_zero_point", "hardswish", "input"},
    {"quantized::instance_norm", "input weight bias eps output_scale output_zero_point",
     "instance_norm", "input weight bias None None None None eps"},
    {"quantized::layer_norm",
     "input normalized_shape weight bias eps output_scale output_zero_point", "layer_norm",
     "input normalized_shape weight bias eps"},
    {"quantized::leaky_relu", "qx negative_slope inplace output_scale output_zero_point",
     "leaky_relu", "qx negative_slope"},
    {"quantized::matmul", "qa qb output_scale output_zero_point", "matmul", "qa qb"},
    {"quantized::prelu", "qx weight output_scale output_zero_point", "prelu", "qx weight"},
    {"quantized::relu6", "qx inplace", "relu6", "qx"},
    {"quantized::sigmoid", "qx output_scale output_zero_point", "sigmoid", "qx"},
    {"quantized::softmax", "qx dim output_scale output_zero_point", "softmax", "qx dim"},
};

absl::StatusOr<ScriptValue> ImportFloatForm(OpCall& call) {
  const auto* const form = std::find_if(std::begin(kFloatForms), std::end(kFloatForms),
                                        [&](const FloatForm& f) { return f.op == call.name(); });
  NPUC_CHECK(form != std::end(kFloatForms));
  const std::vector<absl::string_view> parameters = absl::StrSplit(form->parameters, ' ');
  const auto index_of = [&](absl::string_view name) {
    return static_cast<int>(std::find(parameters.begin(), parameters.end(), name) -
                            parameters.begin());
  };
  std::vector<ScriptValue> arguments;
  for (const absl::string_view name : absl::StrSplit(form->arguments, ' ')) {
    arguments.push_back(name == "false" ? ScriptValue::Bool(false) : call.arg(index_of(name)));
  }
  const ScriptValue& first = call.arg(0);
  const bool is_list = first.IsSequence() && !first.list->items.empty();
  const ScriptValue& operand = is_list ? first.list->items[0] : first;
  if (!operand.Is(ScriptKind::kTensor)) {
    return absl::InvalidArgumentError("the operand is no tensor");
  }
  ASSIGN_OR_RETURN(const ValueRef x, call.Read(operand.tensor));
  ASSIGN_OR_RETURN(QuantParams params, OperandParams(x));
  const int scale = index_of("output_scale");
  if (scale < static_cast<int>(parameters.size())) {
    ASSIGN_OR_RETURN(params, ResultParams(call, params.dtype, scale));
  }
  ASSIGN_OR_RETURN(ValueRef y, RunFloatOne(call, form->float_op, std::move(arguments)));
  return FinishLayer(call, std::move(y), &params);
}

constexpr absl::string_view kPackedLayer = "input packed output_scale output_zero_point";
constexpr absl::string_view kDynamic = "input packed reduce_range";
constexpr absl::string_view kBinary = "qa qb scale zero_point";
constexpr absl::string_view kPrepack = "weight bias stride padding dilation groups";
constexpr absl::string_view kTransposePrepack =
    "weight bias stride padding output_padding dilation groups";
constexpr absl::string_view kRecurrent =
    "input hx params has_biases num_layers dropout train bidirectional batch_first dtype "
    "use_dynamic";

constexpr OpRule kQuantizedRules[] = {
    {"dequantize", "tensors", ImportDequantize},
    {"fake_quantize_per_tensor_affine", "self scale zero_point quant_min quant_max",
     ImportFakeQuantize},
    {"is_quantized", "self", ImportIsQuantized},
    {"q_scale", "self", ImportScale},
    {"q_zero_point", "self", ImportZeroPoint},
    {"quantize_per_channel", "self scales zero_points axis dtype", ImportQuantizeByChannel},
    {"quantize_per_tensor", "self scale zero_point dtype", ImportQuantize},
    {"quantized_gru", kRecurrent, ImportQuantizedRecurrent},
    {"quantized_lstm", kRecurrent, ImportQuantizedRecurrent},
    {"quantized::add", kBinary, ImportBinary},
    {"quantized::add_relu", kBinary, ImportBinary},
    {"quantized::add_scalar", "qa b", ImportAddScalar},
    {"quantized::add_scalar_relu", "qa b", ImportAddScalar},
    {"quantized::conv1d", kPackedLayer, ImportConvLayer},
    {"quantized::conv1d_dynamic", kDynamic, ImportConvLayer},
    {"quantized::conv1d_prepack", kPrepack, ImportConvPrepack},
    {"quantized::conv1d_relu", kPackedLayer, ImportConvLayer},
    {"quantized::conv2d", kPackedLayer, ImportConvLayer},
    {"quantized::conv2d_dynamic", kDynamic, ImportConvLayer},
    {"quantized::conv2d_prepack", kPrepack, ImportConvPrepack},
    {"quantized::conv2d_relu", kPackedLayer, ImportConvLayer},
    {"quantized::conv_transpose1d", kPackedLayer, ImportConvLayer},
    {"quantized::conv_transpose1d_prepack", kTransposePrepack, ImportConvPrepack},
    {"quantized::conv_transpose2d", kPackedLayer, ImportConvLayer},
    {"quantized::conv_transpose2d_prepack", kTransposePrepack, ImportConvPrepack},
    {"quantized::linear", kPackedLayer, ImportLinearLayer},
    {"quantized::linear_dynamic", kDynamic, ImportLinearLayer},
    {"quantized::linear_dynamic_fp16", kDynamic, ImportHalfLinear},
    {"quantized::linear_prepack", "weight bias", ImportLinearPrepack},
    {"quantized::linear_prepack_fp16", "weight bias", ImportLinearPrepack},
    {"quantized::linear_relu", kPackedLayer, ImportLinearLayer},
    {"quantized::linear_relu_dynamic", kDynamic, ImportLinearLayer},
    {"quantized::mul", kBinary, ImportBinary},
    {"quantized::mul_relu", kBinary, ImportBinary},
    {"quantized::mul_scalar", "qa b", ImportMulScalar},
    {"quantized::mul_scalar_relu", "qa b", ImportMulScalar},
};

}  // namespace

absl::Span<const OpRule> QuantizedRules() {
  static const auto* const kAll = [] {
    auto* const all =
        new std::vector<OpRule>(std::begin(kQuantizedRules), std::end(kQuantizedRules));
    for (const FloatForm& form : kFloatForms) {
      all->push_back({form.op, form.parameters, ImportFloatForm});
    }
    return all;
  }();
  return *kAll;
}

}  // namespace npuc::pt
