// Quantized tensors, and the operators of float tensors on them.
#include "compiler_core/frontends/torchscript/quantized.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/torchscript/torch_type.h"
#include "compiler_core/ops/quantize.h"

namespace npuc::pt {
namespace {

enum class OnQuantized : uint8_t {
  kMoves,        // gives elements of its operand as they are
  kRequantizes,  // stores its results by its operand's parameters
  kHasOwn,       // a function whose results lie in a range of its own
  kReads,        // gives no quantized tensor
  kRefused,
};

// As ATen's kernels of quantized tensors do.
constexpr absl::string_view kMoves[] = {"_reshape_alias",
                                        "alias",
                                        "broadcast_to",
                                        "channel_shuffle",
                                        "chunk",
                                        "clone",
                                        "contiguous",
                                        "cpu",
                                        "data",
                                        "detach",
                                        "dropout",
                                        "dsplit",
                                        "expand",
                                        "expand_as",
                                        "flatten",
                                        "flip",
                                        "hsplit",
                                        "index_select",
                                        "lift_fresh",
                                        "mT",
                                        "max_pool1d",
                                        "max_pool2d",
                                        "moveaxis",
                                        "movedim",
                                        "narrow",
                                        "numpy_T",
                                        "permute",
                                        "pixel_shuffle",
                                        "pixel_unshuffle",
                                        "ravel",
                                        "reflection_pad1d",
                                        "reflection_pad2d",
                                        "repeat",
                                        "replication_pad1d",
                                        "replication_pad2d",
                                        "reshape",
                                        "reshape_as",
                                        "select",
                                        "slice",
                                        "split",
                                        "split_with_sizes",
                                        "squeeze",
                                        "swapaxes",
                                        "swapdims",
                                        "t",
                                        "tensor_split",
                                        "transpose",
                                        "unbind",
                                        "unflatten",
                                        "unsafe_chunk",
                                        "unsafe_split",
                                        "unsafe_view",
                                        "_unsafe_view",
                                        "unsqueeze",
                                        "upsample_nearest1d",
                                        "upsample_nearest2d",
                                        "view",
                                        "view_as",
                                        "vsplit",
                                        "feature_dropout"};
constexpr absl::string_view kRequantizes[] = {"adaptive_avg_pool1d",
                                              "adaptive_avg_pool2d",
                                              "avg_pool1d",
                                              "avg_pool2d",
                                              "cat",
                                              "clamp",
                                              "clamp_max",
                                              "clamp_min",
                                              "clip",
                                              "concat",
                                              "concatenate",
                                              "constant_pad_nd",
                                              "elu",
                                              "gelu",
                                              "hardtanh",
                                              "hstack",
                                              "leaky_relu",
                                              "mean",
                                              "pad",
                                              "relu",
                                              "relu6",
                                              "stack",
                                              "upsample_bilinear2d",
                                              "vstack"};
constexpr absl::string_view kHasOwn[] = {"hardsigmoid", "sigmoid", "tanh"};
constexpr absl::string_view kReads[] = {"dequantize", "q_scale", "q_zero_point"};

template <size_t n>
bool Holds(const absl::string_view (&names)[n], absl::string_view op) {
  return std::find(std::begin(names), std::end(names), op) != std::end(names);
}

OnQuantized KindOf(absl::string_view op) {
  if (Holds(kMoves, op)) return OnQuantized::kMoves;
  if (Holds(kRequantizes, op)) return OnQuantized::kRequantizes;
  if (Holds(kHasOwn, op)) return OnQuantized::kHasOwn;
  const bool reads = Holds(kReads, op) || absl::StartsWith(op, kQuantizedPrefix);
  return reads ? OnQuantized::kReads : OnQuantized::kRefused;
}

// Sigmoid and hardsigmoid lie in 0..1, tanh in -1..1; their steps are the 256th part of that.
absl::StatusOr<QuantParams> OwnParams(absl::string_view op, const QuantParams& operand) {
  const bool is_tanh = op == "tanh";
  const bool is_signed = operand.dtype == DType::kInt8;
  if (!is_signed && operand.dtype != DType::kUint8) {
    return absl::InvalidArgumentError(absl::StrCat("a function of ", NameOf(operand.dtype)));
  }
  const int64_t lowest = is_signed ? -128 : 0;
  return PerTensorParams(operand.dtype, is_tanh ? 2.0 / 256 : 1.0 / 256,
                         is_tanh ? lowest + 128 : lowest);
}

absl::StatusOr<const QuantParams*> FirstQuantization(OpCall& call) {
  for (int i = 0; i < call.arg_count(); ++i) {
    std::vector<ScriptValue> items = {call.arg(i)};
    if (call.arg(i).IsSequence()) items = call.arg(i).list->items;
    for (const ScriptValue& item : items) {
      if (!item.Is(ScriptKind::kTensor)) continue;
      ASSIGN_OR_RETURN(const ValueRef value, call.Read(item.tensor));
      if (const QuantParams* params = QuantizationOf(value)) return params;
    }
  }
  return nullptr;
}

}  // namespace

const QuantParams* QuantizationOf(const ValueRef& value) {
  const TorchFacts* const facts = FactsOf(value);
  return facts != nullptr && facts->quantization.has_value() ? &*facts->quantization : nullptr;
}

ValueRef WithQuantization(const ValueRef& value, QuantParams params) {
  auto facts = std::make_shared<TorchFacts>();
  facts->quantization = std::move(params);
  auto quantized = std::make_shared<ImportValue>(*value);
  quantized->facts = std::move(facts);
  return quantized;
}

absl::Status CheckQuantization(const QuantParams& params, const Shape& shape) {
  return CheckQuantParams(params, {params.dtype, shape});
}

absl::StatusOr<QuantParams> PerTensorParams(DType dtype, double scale, int64_t zero_point) {
  if (!IsInteger(dtype)) {
    return absl::InvalidArgumentError("a quantized tensor of other than integers");
  }
  QuantParams params;
  params.dtype = dtype;
  params.qmin = LowestOf(dtype);
  params.qmax = HighestOf(dtype);
  params.scale = {scale};
  params.zero_point = {zero_point};
  RETURN_IF_ERROR(CheckQuantization(params, {}));
  return params;
}

absl::StatusOr<QuantParams> ByChannelParams(DType dtype, const Tensor& scales,
                                            const Tensor& zero_points, int64_t axis,
                                            const Shape& shape) {
  const int64_t count = scales.element_count();
  const bool has_axis = axis >= 0 && axis < static_cast<int64_t>(shape.size());
  if (!has_axis || shape[static_cast<size_t>(axis)] != count ||
      zero_points.element_count() != count || !IsInteger(dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat(count, " scales along dimension ", axis, " of ", ShapeToString(shape)));
  }
  QuantParams params;
  params.dtype = dtype;
  params.qmin = LowestOf(dtype);
  params.qmax = HighestOf(dtype);
  params.axis = static_cast<int>(axis);
  for (int64_t i = 0; i < count; ++i) {
    params.scale.push_back(scales.at(i));
    const double zero = zero_points.at(i);  // some schemes store floats
    params.zero_point.push_back(zero == std::floor(zero) && std::fabs(zero) < 0x1p31
                                    ? static_cast<int64_t>(zero)
                                    : params.qmin - 1);
  }
  RETURN_IF_ERROR(CheckQuantization(params, shape));
  return params;
}

absl::Status QuantizeResult(OpCall& call, absl::string_view op, const ScriptValue& result) {
  std::vector<ScriptValue> items = {result};
  if (result.IsSequence()) items = result.list->items;
  const bool has_tensor = std::any_of(items.begin(), items.end(), [](const ScriptValue& item) {
    return item.Is(ScriptKind::kTensor);
  });
  if (!has_tensor) return absl::OkStatus();
  ASSIGN_OR_RETURN(const QuantParams* const operand, FirstQuantization(call));
  const OnQuantized kind = KindOf(op);
  if (operand == nullptr || kind == OnQuantized::kReads) return absl::OkStatus();
  QuantParams params = *operand;
  if (kind == OnQuantized::kRefused || params.axis >= 0) {
    return call.FailMode(
        absl::StrCat("the operator on a ", params.axis >= 0 ? "by channel " : "",
                     "quantized tensor"),
        "keep this layer in float (its qconfig None), between dequantize and quantize");
  }
  if (kind == OnQuantized::kHasOwn) {
    ASSIGN_OR_RETURN(params, OwnParams(op, params));
  }
  for (const ScriptValue& item : items) {
    if (!item.Is(ScriptKind::kTensor)) continue;
    TensorCell& cell = *item.tensor;
    if (kind != OnQuantized::kMoves) {
      ASSIGN_OR_RETURN(cell.value, call.Requantized(cell.value, params));
    }
    cell.value = WithQuantization(cell.value, params);
  }
  return absl::OkStatus();
}

}  // namespace npuc::pt
