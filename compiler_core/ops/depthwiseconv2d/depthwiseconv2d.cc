#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/rounding.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/move_emit.h"
#include "compiler_core/ops/shape_util.h"
#include "compiler_core/ops/vector_emit.h"
#include "compiler_core/ops/window.h"
#include "compiler_core/ops/window_lower.h"

namespace npuc {
namespace {

// Records of channels [first, first + count) under kernel m: the taps of each, then its bias, if
// any.
std::vector<float> RecordsOf(const Tensor& weight, absl::Span<const float> bias, int64_t m,
                             int64_t first, int64_t count) {
  const Shape& shape = weight.shape();
  const int64_t taps = shape[0] * shape[1];
  std::vector<float> records;
  for (int64_t c = first; c < first + count; ++c) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      records.push_back(static_cast<float>(weight.at((tap * shape[2] + c) * shape[3] + m)));
    }
    if (!bias.empty()) records.push_back(bias[c * shape[3] + m]);
  }
  return records;
}

// Result channel c * multiplier + m: the plane of channel c under kernel m. image [h,w,c].
absl::Status LowerPlanes(LowerContext& context, Operand image, Operand d,
                         const WindowGeometry& window, const Tensor& weight,
                         absl::Span<const float> bias) {
  const int64_t channels = weight.shape()[2];
  const int64_t multiplier = weight.shape()[3];
  const int64_t pixels = window.output[0] * window.output[1];
  const int64_t image_pixels = window.input[0] * window.input[1];
  Operand planes = image;
  if (channels > 1) {
    ASSIGN_OR_RETURN(planes, TransposedView(context, image, image_pixels, channels));
  }
  for (int64_t m = 0; m < multiplier; ++m) {
    const std::vector<float> records = RecordsOf(weight, bias, m, 0, channels);
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

// The parts of an image that is too large to be turned into planes at once.
struct ImageCut {
  int64_t rows = 0;      // of the result in a band: all, or fewer
  int64_t channels = 0;  // in a group: all, or fewer
};

// The cut by which operand, result and the padded image and planes of one part fit the data memory:
// into bands of rows, or into groups of channels, which need no rows twice, where these take fewer
// commands. None where everything fits at once, or no band does.
ImageCut CutOf(const LowerContext& context, const WindowGeometry& window, int64_t channels,
               int64_t multiplier) {
  const ImageCut whole{window.output[0], channels};
  const int64_t row = window.output[1] * channels * multiplier * kHalfBytes;
  const int64_t wide = window.input[1] + window.pad_before[1] + window.pad_after[1];
  const int64_t high = window.input[0] + window.pad_before[0] + window.pad_after[0];
  const int64_t wide_row = wide * channels * kHalfBytes;
  const int64_t rows = window.output[0];
  // Bytes at once: rows are padded, then turned into planes, which become the results' planes.
  const auto needed = [&](int64_t band) {
    const int64_t taken = ((band - 1) * window.stride[0] + window.kernel[0]) * wide_row;
    return taken + std::max(taken, band * row);
  };
  const int64_t image = window.input[0] * window.input[1] * channels * kHalfBytes;
  const int64_t limit = context.limits().max_data_bytes;
  const int64_t free = limit - image - rows * row;
  // Bands that see nothing but padding are not worth code.
  const bool is_padded_far =
      std::max(window.pad_before[0], window.pad_after[0]) >= window.kernel[0];
  if (context.plain_commands() || is_padded_far || needed(rows) <= limit) return whole;
  int64_t band = rows - 1;
  while (band > 0 && needed(band) > free) --band;
  if (band == 0) return whole;
  int64_t group = multiplier == 1 ? channels - 1 : 0;
  while (group > 0 && (channels % group != 0 || 2 * group * high * wide * kHalfBytes > free)) {
    --group;
  }
  // A group is copied, turned into planes and convolved; the border is filled by two commands and
  // the result turned back by one. A band takes these but for one of the border, each time.
  const bool by_groups = group > 0 && 3 * (channels / group) + 3 <= 5 * DivideUp(rows, band);
  return by_groups ? ImageCut{rows, group} : ImageCut{band, channels};
}

// LowerPlanes by groups of so many channels; their planes lie one behind the other.
absl::Status LowerGroups(LowerContext& context, Operand image, Operand d, WindowGeometry window,
                         const Tensor& weight, absl::Span<const float> bias, int64_t group) {
  const int64_t channels = weight.shape()[2];
  const int64_t pixels = window.output[0] * window.output[1];
  const Shape shape = {window.input[0], window.input[1], group};
  const Shape strides = {window.input[1] * channels, channels, 1};
  ASSIGN_OR_RETURN(const PaddedPlace padded, PlaceForPadded(context, group, /*fill=*/0.0f, window));
  const bool is_result = LiesTransposed(context, channels, pixels);
  const Operand results = is_result ? d : context.Temp(channels * pixels);
  for (int64_t first = 0; first < channels; first += group) {
    RETURN_IF_ERROR(EmitMove(context, shape, image, {first, strides}, padded.place, padded.image));
    ASSIGN_OR_RETURN(
        const Operand planes,
        TransposedView(context, padded.place, window.input[0] * window.input[1], group));
    RETURN_IF_ERROR(EmitDepthwise(context, planes, results.Plus(first * pixels * kHalfBytes),
                                  window, group, 1, RecordsOf(weight, bias, 0, first, group),
                                  !bias.empty()));
  }
  return is_result ? absl::OkStatus() : EmitTranspose(context, results, d, channels, pixels);
}

// The window of result rows [first, first + rows), and the first operand row that it reads.
WindowGeometry BandOf(const WindowGeometry& window, int64_t first, int64_t rows, int64_t* begin) {
  WindowGeometry band = window;
  const int64_t from = first * window.stride[0] - window.pad_before[0];
  const int64_t to = from + (rows - 1) * window.stride[0] + window.kernel[0];
  *begin = std::max<int64_t>(from, 0);
  band.input[0] = std::min(to, window.input[0]) - *begin;
  band.output[0] = rows;
  band.pad_before[0] = *begin - from;
  band.pad_after[0] = std::max<int64_t>(to - window.input[0], 0);
  return band;
}

// LowerPlanes of an image that may be too large to be turned into planes at once.
absl::Status LowerInParts(LowerContext& context, Operand image, Operand d,
                          const WindowGeometry& window, const Tensor& weight,
                          absl::Span<const float> bias) {
  const int64_t channels = weight.shape()[2];
  const int64_t results = channels * weight.shape()[3];
  const ImageCut cut = CutOf(context, window, channels, weight.shape()[3]);
  const int64_t step = cut.rows;
  if (cut.channels < channels) {
    return LowerGroups(context, image, d, window, weight, bias, cut.channels);
  }
  if (step == window.output[0]) {
    WindowGeometry whole = window;
    ASSIGN_OR_RETURN(image, PadImage(context, image, channels, /*fill=*/0.0f, whole));
    return LowerPlanes(context, image, d, whole, weight, bias);
  }
  for (int64_t first = 0; first < window.output[0]; first += step) {
    int64_t begin = 0;
    WindowGeometry band = BandOf(window, first, std::min(step, window.output[0] - first), &begin);
    const Operand rows = image.Plus(begin * window.input[1] * channels * kHalfBytes);
    ASSIGN_OR_RETURN(const Operand padded, PadImage(context, rows, channels, /*fill=*/0.0f, band));
    RETURN_IF_ERROR(LowerPlanes(context, padded,
                                d.Plus(first * window.output[1] * results * kHalfBytes), band,
                                weight, bias));
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
          if (FitsPlaneUnit(context.limits(), window)) {
            return LowerInParts(context, image, d, window, weight, bias);
          }
          ASSIGN_OR_RETURN(image,
                           PadImage(context, image, weight.shape()[2], /*fill=*/0.0f, window));
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
