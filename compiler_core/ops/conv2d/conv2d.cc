#include <algorithm>
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

bool FitsConvolutionUnit(const VectorLimits& limits, const WindowGeometry& window) {
  return window.dilation == std::array<int64_t, 2>{1, 1} &&
         std::max({window.kernel[0], window.kernel[1], window.stride[0], window.stride[1]}) <=
             limits.max_conv_side;
}

// True where one mask holds the compressed weight [kh,kw,1,o] of one channel, so that the unit
// takes it without gathering the taps beforehand.
bool FitsOneMask(const VectorLimits& limits, const Shape& weight) {
  const int64_t blocks = (weight[3] + limits.mask_block - 1) / limits.mask_block;
  return weight[0] * weight[1] * blocks <= limits.max_mask_blocks;
}

// By the convolution unit, which adds equal columns of zeros on both sides itself.
absl::Status LowerByUnit(LowerContext& context, Operand image, Operand d, WindowGeometry window,
                         const Shape& weight, int bias_operand) {
  LowerContext::Convolution convolution;
  if (!context.plain_commands() && window.pad_before[1] == window.pad_after[1] &&
      window.pad_before[1] <= context.limits().max_conv_side) {
    convolution.pad_columns = window.pad_before[1];
    window.pad_before[1] = window.pad_after[1] = 0;
  }
  ASSIGN_OR_RETURN(image, PadImage(context, image, weight[2], /*fill=*/0.0f, window));
  convolution.in_h = window.input[0];
  convolution.in_w = window.input[1];
  convolution.in_c = weight[2];
  convolution.kernel_h = window.kernel[0];
  convolution.kernel_w = window.kernel[1];
  convolution.stride_h = window.stride[0];
  convolution.stride_w = window.stride[1];
  convolution.columns = weight[3];
  convolution.bias_operand = bias_operand;
  return context.ConstantConvolution(image, d, convolution, 1);
}

// The image holds one channel; weight [kh,kw,1,o].
absl::Status LowerOneChannel(LowerContext& context, Operand image, Operand d,
                             const WindowGeometry& window, const Tensor& weight,
                             absl::Span<const float> bias) {
  const int64_t channels = weight.shape()[3];
  const int64_t taps = window.kernel[0] * window.kernel[1];
  std::vector<float> records;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      records.push_back(static_cast<float>(weight.at(tap * channels + c)));
    }
    if (!bias.empty()) records.push_back(bias[c]);
  }
  const int64_t pixels = window.output[0] * window.output[1];
  const bool is_result = LiesTransposed(context, channels, pixels);
  const Operand planes = is_result ? d : context.Temp(channels * pixels);
  RETURN_IF_ERROR(
      EmitDepthwise(context, image, planes, window, 1, channels, records, !bias.empty()));
  if (is_result) return absl::OkStatus();
  return EmitTranspose(context, planes, d, channels, pixels);
}

// Any window, any groups: gather each result's inputs, then a convolution with one tap.
absl::Status LowerGathered(LowerContext& context, Operand image, Operand d,
                           const WindowGeometry& window, int64_t channels, const Shape& weight,
                           int bias_operand) {
  const int64_t groups = channels / weight[2];
  const int64_t group_columns = weight[3] / groups;
  const int64_t pixels = window.output[0] * window.output[1];
  for (int64_t group = 0; group < groups; ++group) {
    ASSIGN_OR_RETURN(const Operand gathered,
                     GatherTaps(context, image, channels, group * weight[2], weight[2], window,
                                /*tap_major=*/false));
    LowerContext::Convolution convolution;
    convolution.in_h = window.output[0];
    convolution.in_w = window.output[1];
    convolution.in_c = weight[0] * weight[1] * weight[2];
    convolution.first = group * group_columns;
    convolution.columns = group_columns;
    convolution.bias_operand = bias_operand;
    const Operand target = groups == 1 ? d : context.Temp(pixels * group_columns);
    RETURN_IF_ERROR(context.ConstantConvolution(gathered, target, convolution, 1));
    if (groups == 1) continue;
    EmitCopyRows(context, target, group_columns, d.Plus(convolution.first * kHalfBytes), weight[3],
                 pixels, group_columns);
  }
  return absl::OkStatus();
}

// Weights that are computed at run time: [kh,kw,c,o] lies as the matrix [kh*kw*c,o] does.
absl::Status LowerDynamic(LowerContext& context, Operand image, Operand d,
                          const WindowGeometry& window, int64_t channels, const Shape& weight,
                          absl::Span<const float> bias) {
  if (weight[2] != channels) {
    return absl::UnimplementedError("grouped convolution by weights computed at run time");
  }
  ASSIGN_OR_RETURN(const Operand weights, context.Input(1));
  ASSIGN_OR_RETURN(const Operand gathered,
                   GatherTaps(context, image, channels, 0, channels, window, /*tap_major=*/false));
  const int64_t pixels = window.output[0] * window.output[1];
  const Operand sums = bias.empty() ? d : context.Temp(pixels * weight[3]);
  RETURN_IF_ERROR(context.DynamicMatMul(gathered, weights, sums, pixels,
                                        weight[0] * weight[1] * channels, weight[3]));
  return bias.empty() ? absl::OkStatus() : EmitBias(context, sums, bias, d, pixels);
}

// Attributes strides, pads, dilations; perhaps a bias [o]. Channels are convolved in c / weight_c
// groups.
struct Conv2D {
  static constexpr OpTraits kTraits = {.layout = LayoutRule::kFixed,
                                       .integer = IntegerRule::kWeighted,
                                       .layer_type = "Convolution",
                                       .fp16_error = {.roundings = 4, .of_terms = true}};

  static absl::StatusOr<Types> InferShapes(const OpView& view) {
    RETURN_IF_ERROR(CheckConvOperands(view));
    const Shape& input = view.inputs[0].shape;
    const Shape& weight = view.inputs[1].shape;
    if (input[3] < 1 || weight[2] < 1 || input[3] % weight[2] != 0 ||
        weight[3] % (input[3] / weight[2]) != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("weight ", ShapeToString(weight), " does not fit operand ",
                       ShapeToString(input), ": it must take all its channels, or equal groups"));
    }
    ASSIGN_OR_RETURN(TensorType type, InferConv(view, weight[3]));
    return Types{std::move(type)};
  }
  static void Facts(const OpView& view, FactMap& facts) {
    ConvFacts(view, facts);
    facts["out_channels"] = view.inputs[1].shape[3];
    facts["groups"] = view.inputs[0].shape[3] / view.inputs[1].shape[2];
  }
  static absl::StatusOr<std::vector<Tensor>> Reference(const Node& node,
                                                       absl::Span<const Tensor> inputs) {
    return ConvReference(node, inputs, inputs[1].shape());
  }
  static int64_t Work(const OpView& view, absl::Span<const TensorType> outputs) {
    const Shape& weight = view.inputs[1].shape;
    return ElementCount({outputs[0].element_count(), weight[0], weight[1], weight[2]});
  }
  static absl::Status Lower(const OpView& view, LowerContext& context) {
    const Shape& shape = view.inputs[0].shape;
    const Shape& weight = view.inputs[1].shape;
    ASSIGN_OR_RETURN(const std::vector<float> bias, ConstantBias(view));
    const int bias_operand = bias.empty() ? -1 : 2;
    return ForEachImage(
        view, context, weight[3],
        [&](Operand image, Operand d, WindowGeometry window) -> absl::Status {
          const bool is_constant = view.constants[1] != nullptr;
          const bool by_planes = shape[3] == 1 && FitsPlaneUnit(context.limits(), window);
          const bool by_unit =
              shape[3] == weight[2] && FitsConvolutionUnit(context.limits(), window) &&
              (shape[3] > 1 ||
               (!context.plain_commands() && FitsOneMask(context.limits(), weight)));
          if (is_constant && by_unit && !by_planes) {
            return LowerByUnit(context, image, d, window, weight, bias_operand);
          }
          ASSIGN_OR_RETURN(image, PadImage(context, image, shape[3], /*fill=*/0.0f, window));
          if (!is_constant) {
            return LowerDynamic(context, image, d, window, shape[3], weight, bias);
          }
          if (by_planes) {
            return LowerOneChannel(context, image, d, window, *view.constants[1], bias);
          }
          return LowerGathered(context, image, d, window, shape[3], weight, bias_operand);
        });
  }
};

}  // namespace

NPUC_DEFINE_OP(Conv2D)

}  // namespace npuc
