#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/move_emit.h"
#include "compiler_core/ops/shape_util.h"
#include "compiler_core/ops/vector_emit.h"
#include "compiler_core/ops/window.h"
#include "compiler_core/ops/window_lower.h"

namespace npuc {
namespace {

constexpr int64_t kHalfBytes = 2;
// Result channel c * multiplier + m: the plane of channel c under kernel m. image [h,w,c].
absl::Status LowerPlanes(LowerContext& context, Operand image, Operand d,
                         const WindowGeometry& window, const Tensor& weight,
                         absl::Span<const float> bias) {
  const int64_t taps = window.kernel[0] * window.kernel[1];
  const int64_t channels = weight.shape()[2];
  const int64_t multiplier = weight.shape()[3];
  const int64_t pixels = window.output[0] * window.output[1];
  const int64_t image_pixels = window.input[0] * window.input[1];
  Operand planes = image;
  if (channels > 1) {
    ASSIGN_OR_RETURN(planes, TransposedView(context, image, image_pixels, channels));
  }
  const std::vector<float> weights = weight.ToFloats();
  for (int64_t m = 0; m < multiplier; ++m) {
    std::vector<float> records;
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        records.push_back(weights[(tap * channels + c) * multiplier + m]);
      }
      if (!bias.empty()) records.push_back(bias[c * multiplier + m]);
    }
    const bool is_result = multiplier == 1 && LiesTransposed(context, channels, pixels);
    const Operand results = is_result ? d : context.Temp(channels * pixels);
    RETURN_IF_ERROR(
        EmitDepthwise(context, planes, results, window, channels, 1, records, !bias.empty()));
    if (is_result) return absl::OkStatus();
    if (multiplier == 1) return EmitTranspose(context, results, d, channels, pixels);
    RETURN_IF_ERROR(EmitMove(context, {pixels, channels}, results, {0, {1, pixels}}, d,
                             {m, {channels * multiplier, multiplier}}));
  }
  return absl::OkStatus();
}

// Any window: one gathered copy of the image for each tap, times that tap's weights, added up.
absl::Status LowerTapByTap(LowerContext& context, Operand image, Operand d,
                           const WindowGeometry& window, const Tensor& weight) {
  const int64_t channels = weight.shape()[2];
  const int64_t multiplier = weight.shape()[3];
  const int64_t taps = window.kernel[0] * window.kernel[1];
  const int64_t pixels = window.output[0] * window.output[1];
  ASSIGN_OR_RETURN(const Operand gathered,
                   GatherTaps(context, image, channels, 0, channels, window, /*tap_major=*/true));
  const std::vector<float> weights = weight.ToFloats();
  for (int64_t m = 0; m < multiplier; ++m) {
    const Operand products = context.Temp(taps * pixels * channels);
    for (int64_t tap = 0; tap < taps; ++tap) {
      std::vector<float> row(channels);
      for (int64_t c = 0; c < channels; ++c) {
        row[c] = weights[(tap * channels + c) * multiplier + m];
      }
      ASSIGN_OR_RETURN(const Operand factors, context.Constant(row));
      const int64_t at = tap * pixels * channels * kHalfBytes;
      EmitVector(context, Arithmetic::kMul, gathered.Plus(at), factors, products.Plus(at), pixels,
                 channels);
    }
    const Operand sums = multiplier == 1 ? d : context.Temp(pixels * channels);
    EmitSumOverMiddle(context, products, sums, 1, taps, pixels * channels, 1.0f);
    if (multiplier == 1) continue;
    RETURN_IF_ERROR(EmitMove(context, {pixels, channels}, sums, {0, {channels, 1}}, d,
                             {m, {channels * multiplier, multiplier}}));
  }
  return absl::OkStatus();
}

// x [n,h,w,c], weight [kh,kw,c,m] -> [n,oh,ow,c*m]. Attributes strides, pads, dilations; perhaps a
// bias [c*m].
struct DepthwiseConv2D {
  static constexpr OpTraits kTraits = {.layout = LayoutRule::kFixed,
                                       .integer = IntegerRule::kWeighted,
                                       .layer_type = "DepthwiseConv",
                                       .listed_as = "DepthwiseConv2dNative",
                                       .fp16_error = {.roundings = 4, .of_terms = true}};

  static absl::StatusOr<Types> InferShapes(const OpView& view) {
    RETURN_IF_ERROR(CheckConvOperands(view));
    const Shape& input = view.inputs[0].shape;
    const Shape& weight = view.inputs[1].shape;
    if (input[3] != weight[2]) {
      return absl::InvalidArgumentError(absl::StrCat("weight ", ShapeToString(weight), " is for ",
                                                     weight[2], " channels; operand ",
                                                     ShapeToString(input), " has ", input[3]));
    }
    ASSIGN_OR_RETURN(TensorType type, InferConv(view, weight[2] * weight[3]));
    return Types{std::move(type)};
  }
  static void Facts(const OpView& view, FactMap& facts) {
    ConvFacts(view, facts);
    facts["out_channels"] = view.inputs[1].shape[2] * view.inputs[1].shape[3];
    facts["channel_multiplier"] = view.inputs[1].shape[3];
  }
  static absl::StatusOr<std::vector<Tensor>> Reference(const Node& node,
                                                       absl::Span<const Tensor> inputs) {
    const Shape& weight = inputs[1].shape();
    return ConvReference(node, inputs, {weight[0], weight[1], 1, weight[2] * weight[3]});
  }
  static int64_t Work(const OpView& view, absl::Span<const TensorType> outputs) {
    const Shape& weight = view.inputs[1].shape;
    return ElementCount({outputs[0].element_count(), weight[0], weight[1]});
  }
  static absl::Status Lower(const OpView& view, LowerContext& context) {
    if (view.constants[1] == nullptr) {
      return absl::UnimplementedError("the convolution's weight is computed at run time");
    }
    const Tensor& weight = *view.constants[1];
    ASSIGN_OR_RETURN(const std::vector<float> bias, ConstantBias(view));
    return ForEachImage(
        view, context, weight.shape()[2] * weight.shape()[3],
        [&](Operand image, Operand d, WindowGeometry window) -> absl::Status {
          ASSIGN_OR_RETURN(image,
                           PadImage(context, image, weight.shape()[2], /*fill=*/0.0f, window));
          if (FitsPlaneUnit(context.limits(), window)) {
            return LowerPlanes(context, image, d, window, weight, bias);
          }
          if (bias.empty()) return LowerTapByTap(context, image, d, window, weight);
          const int64_t pixels = window.output[0] * window.output[1];
          const Operand sums = context.Temp(pixels * static_cast<int64_t>(bias.size()));
          RETURN_IF_ERROR(LowerTapByTap(context, image, sums, window, weight));
          return EmitBias(context, sums, bias, d, pixels);
        });
  }
};

}  // namespace

NPUC_DEFINE_OP(DepthwiseConv2D)

}  // namespace npuc
