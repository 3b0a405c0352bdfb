#include "compiler_core/ops/window_lower.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/fp16.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/cmd/raw_forms.h"
#include "compiler_core/ops/move_emit.h"
#include "compiler_core/ops/shape_util.h"
#include "compiler_core/ops/vector_emit.h"

namespace npuc {
namespace {

// What padding counts as in a maximum.
constexpr auto kLowestHalf = static_cast<float>(-kLargestHalf);

bool HasPadding(const WindowGeometry& window) {
  return window.pad_before[0] + window.pad_before[1] + window.pad_after[0] + window.pad_after[1] >
         0;
}

// Windows that lie side by side without padding, small enough for the pooling unit.
bool FitsPoolUnit(const VectorLimits& limits, const WindowGeometry& window, int64_t channels) {
  return !HasPadding(window) && window.kernel == window.stride &&
         window.kernel[0] <= limits.max_window && window.kernel[1] <= limits.max_window &&
         window.output[0] * window.kernel[0] <= limits.max_outer &&
         window.output[1] * window.kernel[1] <= limits.max_middle &&
         window.input[1] * channels <= limits.max_stride;
}

void EmitPoolUnit(LowerContext& context, Operand image, Operand d, int64_t channels,
                  const WindowGeometry& window) {
  context.Step();
  const int64_t lanes = context.limits().max_inner;
  for (int64_t first = 0; first < channels; first += lanes) {
    VectorCommand pool;
    pool.kind = VectorCommand::Kind::kPool;
    pool.window_h = static_cast<uint8_t>(window.kernel[0]);
    pool.window_w = static_cast<uint8_t>(window.kernel[1]);
    pool.a = image.Plus(first * kHalfBytes);
    pool.d = d.Plus(first * kHalfBytes);
    pool.extents = {static_cast<uint16_t>(window.output[0] * window.kernel[0]),
                    static_cast<uint16_t>(window.output[1] * window.kernel[1]),
                    static_cast<uint16_t>(std::min(lanes, channels - first))};
    pool.a_middle_stride = pool.d_middle_stride = static_cast<uint16_t>(channels);
    pool.a_outer_stride = static_cast<uint16_t>(window.input[1] * channels);
    pool.d_outer_stride = static_cast<uint16_t>(window.output[1] * channels);
    context.Emit(pool);
  }
}

// Sums of padded windows, times `scale`, become means: each is divided by how many of its taps lie
// on the operand.
absl::Status DivideByCounts(LowerContext& context, Operand sums, float scale, Operand d,
                            int64_t channels, const WindowGeometry& window) {
  std::vector<float> factors;
  for (int64_t y = 0; y < window.output[0]; ++y) {
    const WindowGeometry::Taps h = window.TapsInside(0, y);
    for (int64_t x = 0; x < window.output[1]; ++x) {
      const WindowGeometry::Taps w = window.TapsInside(1, x);
      const float count = static_cast<float>((h.last - h.first) * (w.last - w.first));
      factors.insert(factors.end(), static_cast<size_t>(channels), 1.0f / (scale * count));
    }
  }
  ASSIGN_OR_RETURN(const Operand constants, context.Constant(factors));
  EmitTensor(context, Arithmetic::kMul, sums, constants, d, static_cast<int64_t>(factors.size()));
  return absl::OkStatus();
}

absl::Status LowerAverage(LowerContext& context, Operand image, Operand d, int64_t channels,
                          const WindowGeometry& window) {
  const int64_t taps = window.kernel[0] * window.kernel[1];
  const int64_t pixels = window.output[0] * window.output[1];
  const float scale = 1.0f / static_cast<float>(taps);
  if (!HasPadding(window) && window.kernel == window.input) {
    EmitSumOverMiddle(context, image, d, 1, taps, channels, scale);
    return absl::OkStatus();
  }
  WindowGeometry padded = window;
  ASSIGN_OR_RETURN(const Operand source, PadImage(context, image, channels, 0.0f, padded));
  ASSIGN_OR_RETURN(const Operand gathered,
                   GatherTaps(context, source, channels, 0, channels, padded, true));
  if (!HasPadding(window)) {
    EmitSumOverMiddle(context, gathered, d, 1, taps, pixels * channels, scale);
    return absl::OkStatus();
  }
  // A power of two up to 1 / taps: the sums do not overflow, and are rounded as they would be
  // without it.
  float part = 1.0f;
  while (part > scale) part *= 0.5f;
  const Operand sums = context.Temp(pixels * channels);
  EmitSumOverMiddle(context, gathered, sums, 1, taps, pixels * channels, part);
  return DivideByCounts(context, sums, part, d, channels, window);
}

absl::Status LowerMaximum(LowerContext& context, Operand image, Operand d, int64_t channels,
                          const WindowGeometry& window) {
  if (FitsPoolUnit(context.limits(), window, channels)) {
    EmitPoolUnit(context, image, d, channels, window);
    return absl::OkStatus();
  }
  const int64_t taps = window.kernel[0] * window.kernel[1];
  if (!HasPadding(window) && window.kernel == window.input) {
    return EmitMaxOverMiddle(context, image, d, 1, taps, channels);
  }
  WindowGeometry padded = window;
  ASSIGN_OR_RETURN(const Operand source, PadImage(context, image, channels, kLowestHalf, padded));
  ASSIGN_OR_RETURN(const Operand gathered,
                   GatherTaps(context, source, channels, 0, channels, padded, true));
  return EmitMaxOverMiddle(context, gathered, d, 1, taps,
                           window.output[0] * window.output[1] * channels);
}

// Rows of elements to fill, `stride` elements apart.
struct FilledRows {
  int64_t first = 0, stride = 0, rows = 0, n = 0;
};

// The padding around an image of `rows` rows of `row` elements that lies from `offset` on in one of
// `total` elements and `stride` elements a row. One command fills each part where it fits the unit.
std::vector<FilledRows> BorderOf(int64_t offset, int64_t rows, int64_t row, int64_t stride,
                                 int64_t total) {
  // Gaps lie behind each row and before the next one; one more lies before the first row, and one
  // behind the last, where the padding there is as long.
  FilledRows gaps{offset + row, stride, rows - 1, stride - row};
  int64_t before = offset;
  int64_t behind = offset + (rows - 1) * stride + row;
  if (gaps.n > 0 && before >= gaps.n) {
    gaps.first -= stride;
    ++gaps.rows;
    before -= gaps.n;
  }
  if (gaps.n > 0 && total - behind >= gaps.n) {
    ++gaps.rows;
    behind += gaps.n;
  }
  std::vector<FilledRows> parts;
  if (before == total - behind) {
    parts.push_back({0, behind, 2, before});
  } else {
    parts.push_back({0, 0, 1, before});
    parts.push_back({behind, 0, 1, total - behind});
  }
  parts.push_back(gaps);
  std::erase_if(parts, [](const FilledRows& part) { return part.rows * part.n == 0; });
  return parts;
}

}  // namespace

absl::StatusOr<PaddedPlace> PlaceForPadded(LowerContext& context, int64_t channels, float fill,
                                           WindowGeometry& window) {
  const Shape shape = {window.input[0], window.input[1], channels};
  Shape wide = shape;
  for (int axis = 0; axis < 2; ++axis) {
    wide[axis] += window.pad_before[axis] + window.pad_after[axis];
  }
  const int64_t total = ElementCount(wide);
  PaddedPlace padded;
  padded.place = context.Temp(total);
  padded.image.strides = RowMajorStrides(wide);
  padded.image.offset = window.pad_before[0] * padded.image.strides[0] +
                        window.pad_before[1] * padded.image.strides[1];
  const std::vector<FilledRows> border =
      BorderOf(padded.image.offset, shape[0], shape[1] * channels, padded.image.strides[0], total);
  // One command fills few elements together with the image's own; more cost more than commands.
  const int64_t few = (static_cast<int64_t>(border.size()) - 1) * context.limits().max_inner;
  if (HasPadding(window) &&
      (context.plain_commands() || ElementCount(shape) == 0 || total <= few)) {
    RETURN_IF_ERROR(EmitFill(context, fill, padded.place, total));
  } else {
    for (const FilledRows& part : border) {
      EmitFillRows(context, fill, padded.place.Plus(part.first * kHalfBytes), part.stride,
                   part.rows, part.n);
    }
  }
  window.input = {wide[0], wide[1]};
  window.pad_before = window.pad_after = {0, 0};
  return padded;
}

absl::StatusOr<Operand> PadImage(LowerContext& context, Operand image, int64_t channels, float fill,
                                 WindowGeometry& window) {
  if (!HasPadding(window)) return image;
  const Shape shape = {window.input[0], window.input[1], channels};
  ASSIGN_OR_RETURN(const PaddedPlace padded, PlaceForPadded(context, channels, fill, window));
  RETURN_IF_ERROR(
      EmitMove(context, shape, image, {0, RowMajorStrides(shape)}, padded.place, padded.image));
  return padded.place;
}

absl::Status ForEachImage(
    const OpView& view, LowerContext& context, int64_t out_channels,
    absl::FunctionRef<absl::Status(Operand image, Operand d, const WindowGeometry& window)> lower) {
  const Shape& shape = view.inputs[0].shape;
  ASSIGN_OR_RETURN(const WindowGeometry window,
                   MakeConvWindow(view.node, shape, view.inputs[1].shape));
  ASSIGN_OR_RETURN(const Operand a, context.Input(0));
  const Operand d = context.Output(0);
  for (int64_t n = 0; n < shape[0]; ++n) {
    const Operand image = a.Plus(n * shape[1] * shape[2] * shape[3] * kHalfBytes);
    const int64_t first = n * window.output[0] * window.output[1] * out_channels;
    RETURN_IF_ERROR(lower(image, d.Plus(first * kHalfBytes), window));
  }
  return absl::OkStatus();
}

absl::StatusOr<Operand> GatherTaps(LowerContext& context, Operand image, int64_t image_channels,
                                   int64_t first, int64_t channels, const WindowGeometry& window,
                                   bool tap_major) {
  const int64_t taps = window.kernel[0] * window.kernel[1];
  if (taps > context.limits().max_node_commands) {
    return TooManyCommands(context.limits(), "the taps of a window, each gathered by itself, need");
  }
  const int64_t pixels = window.output[0] * window.output[1];
  const Operand gathered = context.Temp(taps * pixels * channels);
  const Shape shape = {window.output[0], window.output[1], channels};
  const int64_t row = window.input[1] * image_channels;
  const Shape from = {window.stride[0] * row, window.stride[1] * image_channels, 1};
  const int64_t pixel_step = tap_major ? channels : taps * channels;
  const Shape to = {window.output[1] * pixel_step, pixel_step, 1};
  for (int64_t tap = 0; tap < taps; ++tap) {
    const int64_t y = tap / window.kernel[1] * window.dilation[0];
    const int64_t x = tap % window.kernel[1] * window.dilation[1];
    const int64_t to_offset = tap * channels * (tap_major ? pixels : 1);
    RETURN_IF_ERROR(EmitMove(context, shape, image, {y * row + x * image_channels + first, from},
                             gathered, {to_offset, to}));
  }
  return gathered;
}

bool FitsPlaneUnit(const VectorLimits& limits, const WindowGeometry& window) {
  for (int axis = 0; axis < 2; ++axis) {
    const int64_t padded = window.input[axis] + window.pad_before[axis] + window.pad_after[axis];
    if (window.kernel[axis] > limits.max_plane_side ||
        DepthwiseTiles(padded, window.kernel[axis], window.stride[axis]) > kMaxDepthwiseTiles) {
      return false;
    }
  }
  return window.dilation == std::array<int64_t, 2>{1, 1} &&
         window.kernel[0] * window.kernel[1] <= limits.max_plane_taps &&
         std::max(window.stride[0], window.stride[1]) <= limits.max_plane_stride;
}

absl::Status EmitDepthwise(LowerContext& context, Operand planes, Operand d,
                           const WindowGeometry& window, int64_t channels, int64_t multiplier,
                           absl::Span<const float> records, bool has_bias) {
  const int64_t in_plane = window.input[0] * window.input[1];
  const int64_t out_plane = window.output[0] * window.output[1];
  // Result planes of one command.
  const int64_t most =
      std::min(kMaxDepthwisePlanes, kMaxUnitElements / std::max(in_plane, out_plane));
  if (most == 0) {
    return absl::UnimplementedError(
        absl::StrCat("the convolution's image has ", window.input[0], " x ", window.input[1],
                     " pixels; the unit takes at most ", kMaxUnitElements));
  }
  DepthwiseForm form;
  form.in_h = static_cast<int>(window.input[0]);
  form.in_w = static_cast<int>(window.input[1]);
  form.out_h = static_cast<int>(window.output[0]);
  form.out_w = static_cast<int>(window.output[1]);
  form.kernel_h = static_cast<int>(window.kernel[0]);
  form.kernel_w = static_cast<int>(window.kernel[1]);
  form.stride_h = static_cast<int>(window.stride[0]);
  form.stride_w = static_cast<int>(window.stride[1]);
  form.bias = has_bias;
  const int64_t results = channels * multiplier;
  const int64_t record = static_cast<int64_t>(records.size()) / results;
  context.Step();
  for (int64_t first = 0; first < results; first += most) {
    const int64_t now = std::min(most, results - first);
    form.channels = static_cast<int>(channels > 1 ? now : 1);
    form.multiplier = static_cast<int>(channels > 1 ? 1 : now);
    RawCommand command = MakeDepthwise(form);
    command.a = channels > 1 ? planes.Plus(first * in_plane * kHalfBytes) : planes;
    ASSIGN_OR_RETURN(command.weights,
                     context.Constant(records.subspan(first * record, now * record)));
    command.d = d.Plus(first * out_plane * kHalfBytes);
    context.Emit(std::move(command));
  }
  return absl::OkStatus();
}

absl::Status EmitBias(LowerContext& context, Operand sums, absl::Span<const float> bias, Operand d,
                      int64_t pixels) {
  ASSIGN_OR_RETURN(const Operand constant, context.Constant(bias));
  EmitVector(context, Arithmetic::kAdd, sums, constant, d, pixels,
             static_cast<int64_t>(bias.size()));
  return absl::OkStatus();
}

absl::Status LowerPool(const OpView& view, LowerContext& context, PoolKind kind) {
  const Shape& shape = view.inputs[0].shape;
  ASSIGN_OR_RETURN(const WindowGeometry stated, MakePoolWindow(view.node, shape));
  const WindowGeometry window = WithoutIdleTaps(stated);
  ASSIGN_OR_RETURN(const Operand a, context.Input(0));
  const Operand d = context.Output(0);
  const int64_t channels = shape[3];
  for (int64_t n = 0; n < shape[0]; ++n) {
    const Operand image = a.Plus(n * shape[1] * shape[2] * channels * kHalfBytes);
    const Operand result = d.Plus(n * window.output[0] * window.output[1] * channels * kHalfBytes);
    RETURN_IF_ERROR(kind == PoolKind::kMax
                        ? LowerMaximum(context, image, result, channels, window)
                        : LowerAverage(context, image, result, channels, window));
  }
  return absl::OkStatus();
}

}  // namespace npuc
