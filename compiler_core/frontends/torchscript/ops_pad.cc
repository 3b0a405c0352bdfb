// Padding, upsampling, and channels moved into space or among themselves.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/resize.h"
#include "compiler_core/frontends/torchscript/layout.h"
#include "compiler_core/frontends/torchscript/op_call.h"

namespace npuc::pt {
namespace {

constexpr int64_t kMaxPad = int64_t{1} << 20;

// torch's padding: before and after the last axis, then the one in front of it, and so on.
absl::StatusOr<ScriptValue> PadConstant(OpCall& call, const std::vector<int64_t>& padding,
                                        double value) {
  ASSIGN_OR_RETURN(ValueRef x, call.TensorArg(0));
  const size_t rank = x->type.shape.size();
  if (padding.size() % 2 != 0 || padding.size() / 2 > rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("padding ", ShapeToString(padding), " does not fit ", TypeToString(x->type)));
  }
  std::vector<int64_t> paddings(2 * rank, 0);
  bool pads = false;
  for (size_t i = 0; i < padding.size() / 2; ++i) {
    const size_t axis = rank - 1 - i;
    for (size_t side = 0; side < 2; ++side) {
      const int64_t amount = padding[2 * i + side];
      if (std::abs(amount) > kMaxPad) return absl::InvalidArgumentError("too much padding");
      paddings[2 * axis + side] = std::max<int64_t>(amount, 0);
      pads |= amount > 0;
      if (amount >= 0) continue;
      // A negative amount cuts off.
      const int64_t left = x->type.shape[axis] + amount;
      if (left < 1) return absl::InvalidArgumentError("the padding cuts everything off");
      ASSIGN_OR_RETURN(x,
                       call.Sliced(x, static_cast<int64_t>(axis), side == 0 ? -amount : 0, left));
    }
  }
  if (!pads) return call.Result(std::move(x));
  return call.Result(call.Emit("Pad", {x}, {{"paddings", std::move(paddings)}, {"value", value}}));
}

// One axis extended by its own values: mirrored, repeated or in a circle.
absl::StatusOr<ValueRef> ExtendAxis(OpCall& call, const ValueRef& x, int64_t axis, int64_t before,
                                    int64_t after, absl::string_view mode) {
  const int64_t size = x->type.shape[axis];
  const int64_t most = mode == "reflect" ? size - 1 : (mode == "circular" ? size : kMaxPad);
  if (before < 0 || after < 0 || std::max(before, after) > most || size < 1) {
    return absl::InvalidArgumentError(absl::StrCat("padding ", before, " and ", after, " in mode ",
                                                   mode, " does not fit a size of ", size));
  }
  std::vector<ValueRef> parts;
  const auto add = [&](int64_t begin, int64_t count, int64_t step) -> absl::Status {
    if (count == 0) return absl::OkStatus();
    ASSIGN_OR_RETURN(parts.emplace_back(), call.Sliced(x, axis, begin, count, step));
    return absl::OkStatus();
  };
  if (mode == "reflect") {
    RETURN_IF_ERROR(add(before, before, -1));
  } else if (mode == "circular") {
    RETURN_IF_ERROR(add(size - before, before, 1));
  } else {
    for (int64_t i = 0; i < before; ++i) RETURN_IF_ERROR(add(0, 1, 1));
  }
  parts.push_back(x);
  if (mode == "reflect") {
    RETURN_IF_ERROR(add(size - 2, after, -1));
  } else if (mode == "circular") {
    RETURN_IF_ERROR(add(0, after, 1));
  } else {
    for (int64_t i = 0; i < after; ++i) RETURN_IF_ERROR(add(size - 1, 1, 1));
  }
  return call.Joined(parts, axis);
}

absl::StatusOr<ScriptValue> PadExtended(OpCall& call, const std::vector<int64_t>& padding,
                                        absl::string_view mode) {
  ASSIGN_OR_RETURN(ValueRef x, call.TensorArg(0));
  const auto rank = static_cast<int64_t>(x->type.shape.size());
  if (padding.size() % 2 != 0 || static_cast<int64_t>(padding.size() / 2) > rank) {
    return absl::InvalidArgumentError("the padding does not fit the tensor's rank");
  }
  for (size_t i = 0; i < padding.size() / 2; ++i) {
    ASSIGN_OR_RETURN(x, ExtendAxis(call, x, rank - 1 - static_cast<int64_t>(i), padding[2 * i],
                                   padding[2 * i + 1], mode));
  }
  return call.Result(std::move(x));
}

absl::StatusOr<ScriptValue> ImportPad(OpCall& call) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> padding, call.Ints(1));
  ASSIGN_OR_RETURN(const std::string mode, call.StringOr(2, "constant"));
  if (mode != "constant") return PadExtended(call, padding, mode);
  ASSIGN_OR_RETURN(const double value, call.FloatOr(3, 0));
  return PadConstant(call, padding, value);
}
absl::StatusOr<ScriptValue> ImportConstantPad(OpCall& call) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> padding, call.Ints(1));
  ASSIGN_OR_RETURN(const double value, call.FloatOr(2, 0));
  return PadConstant(call, padding, value);
}
absl::StatusOr<ScriptValue> ImportReflectionPad(OpCall& call) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> padding, call.Ints(1));
  return PadExtended(call, padding, "reflect");
}
absl::StatusOr<ScriptValue> ImportReplicationPad(OpCall& call) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> padding, call.Ints(1));
  return PadExtended(call, padding, "replicate");
}

// One axis of x by those sources, in copies: repeated where each comes equally often, else by runs.
// Each counts as an UpSample of the core's list, with the facts that its rules ask for.
absl::StatusOr<ValueRef> Resample(OpCall& call, const ValueRef& x, int64_t axis,
                                  const std::vector<int64_t>& sources, const AttrMap& facts) {
  const auto join = [&](const std::vector<ValueRef>& parts, int64_t at) {
    AttrMap attrs = facts;
    attrs["axis"] = at;
    return call.EmitUnder("UpSample", "Concat", parts, std::move(attrs));
  };
  const Shape shape = x->type.shape;
  const int64_t in = shape[axis];
  const auto out = static_cast<int64_t>(sources.size());
  if (out == in) return x;
  bool repeats = out % in == 0;
  for (int64_t i = 0; i < out && repeats; ++i) repeats = sources[i] == i / (out / in);
  if (repeats) {
    Shape split = shape;
    split.insert(split.begin() + axis + 1, 1);
    ASSIGN_OR_RETURN(ValueRef y, call.Reshaped(x, split));
    const std::vector<ValueRef> copies(static_cast<size_t>(out / in), y);
    ASSIGN_OR_RETURN(y, join(copies, axis + 1));
    Shape result = shape;
    result[axis] = out;
    return call.Reshaped(y, std::move(result));
  }
  std::vector<ValueRef> parts;
  for (int64_t i = 0; i < out;) {
    int64_t run = 1;
    while (i + run < out && sources[i + run] == sources[i] + run) ++run;
    ASSIGN_OR_RETURN(parts.emplace_back(),
                     call.SlicedUnder(OpCall::kNoRow, x, axis, sources[i], run));
    i += run;
  }
  return join(parts, axis);
}

// The target size and the scale of each axis, given as either.
struct Scaling {
  std::vector<int64_t> size;
  std::vector<double> scale;
};
// Argument 1 is the size, those from `first_scale` on the scales.
absl::StatusOr<Scaling> ReadScaling(OpCall& call, const Shape& image, int dims, int first_scale) {
  Scaling scaling;
  const ScriptValue& factors = call.arg(first_scale);
  for (int i = 0; i < dims; ++i) {
    double scale = 0;
    if (factors.IsSequence() && i < static_cast<int>(factors.list->items.size()) &&
        factors.list->items[static_cast<size_t>(i)].IsNumber()) {
      scale = factors.list->items[static_cast<size_t>(i)].AsDouble();
    } else if (call.arg(first_scale + i).IsNumber()) {  // the older form: scales_h, scales_w
      scale = call.arg(first_scale + i).AsDouble();
    }
    scaling.scale.push_back(scale);
  }
  if (call.Has(1)) {
    ASSIGN_OR_RETURN(scaling.size, call.IntsOf(1, static_cast<size_t>(dims), {}));
  } else {
    for (int i = 0; i < dims; ++i) {
      const int64_t axis = 3 - dims + i;
      const auto in = static_cast<double>(image[axis]);
      const double out = std::floor(in * scaling.scale[static_cast<size_t>(i)]);
      if (!(out >= 1 && out <= kMaxPad)) {
        return absl::InvalidArgumentError("the scale factor is out of range");
      }
      scaling.size.push_back(static_cast<int64_t>(out));
    }
  }
  for (const int64_t size : scaling.size) {
    if (size >= 1 && size <= kMaxPad) continue;
    return absl::InvalidArgumentError(absl::StrCat("the size ", size, " is out of range"));
  }
  return scaling;
}

// A scale that was given counts, whatever the sizes are.
frontend::ResizeAxis AxisOf(int64_t in, const Scaling& scaling, int i) {
  frontend::ResizeAxis axis{.in = in, .out = scaling.size[i], .scale = scaling.scale[i]};
  if (axis.scale > 0) return axis;
  axis.scale = static_cast<double>(axis.out) / static_cast<double>(std::max<int64_t>(in, 1));
  return axis;
}

absl::StatusOr<ScriptValue> ImportUpsample(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  const int dims = call.name() == "upsample_nearest1d" ? 1 : 2;
  ImageLayout layout;
  ASSIGN_OR_RETURN(ValueRef y, ToImage(call, x, dims, layout));
  ASSIGN_OR_RETURN(const Scaling scaling, ReadScaling(call, y->type.shape, dims, 2));
  const Shape before = y->type.shape;
  const auto ratio = [&](int i) {
    return scaling.size[i] / std::max<int64_t>(before[3 - dims + i], 1);
  };
  const AttrMap facts = {{"fact_has_scale_factor", scaling.scale[0] > 0},
                         {"fact_scale_h", ratio(0)},
                         {"fact_scale_w", ratio(dims - 1)},
                         {"fact_rank", static_cast<int64_t>(x->type.shape.size())}};
  const frontend::ResizeMode mode{
      .mode = "nearest", .coordinates = "asymmetric", .nearest = "floor", .in_float32 = true};
  for (int i = dims - 1; i >= 0; --i) {
    const int64_t axis = 3 - dims + i;
    const frontend::ResizeAxis sizes = AxisOf(before[axis], scaling, i);
    ASSIGN_OR_RETURN(const auto sources, frontend::NearestSources(mode, sizes));
    ASSIGN_OR_RETURN(y, Resample(call, y, axis, sources, facts));
  }
  return call.Result(FromImage(call, y, layout));
}

// One axis of an image [N,H,W,C] through the matrix of a linear or cubic interpolation.
absl::StatusOr<ValueRef> Interpolated(OpCall& call, const ValueRef& x, int64_t axis,
                                      const frontend::ResizeMode& mode,
                                      const frontend::ResizeAxis& sizes) {
  ASSIGN_OR_RETURN(const frontend::ResizeMatrix matrix, frontend::MakeResizeMatrix(mode, sizes));
  const std::vector<float> weights(matrix.weights.begin(), matrix.weights.end());
  const ValueRef factor = call.MakeConstant(Tensor::FromFloats({sizes.in, sizes.out}, weights));
  std::vector<int64_t> perm = {0, 1, 2, 3};
  std::swap(perm[static_cast<size_t>(axis)], perm.back());
  ASSIGN_OR_RETURN(ValueRef y, call.Transposed(x, perm));
  Shape shape = y->type.shape;
  ASSIGN_OR_RETURN(y, call.Reshaped(y, {y->type.element_count() / sizes.in, sizes.in}));
  ASSIGN_OR_RETURN(y, call.EmitUnder("Linear", "MatMul", {y, factor}));
  shape.back() = sizes.out;
  ASSIGN_OR_RETURN(y, call.Reshaped(y, std::move(shape)));
  return call.Transposed(y, perm);
}

// upsample_linear1d, upsample_bilinear2d, upsample_bicubic2d: input, size, align_corners, scales.
absl::StatusOr<ScriptValue> ImportInterpolation(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const bool corners, call.BoolOr(2, false));
  const int dims = call.name() == "upsample_linear1d" ? 1 : 2;
  frontend::ResizeMode mode;
  mode.mode = call.name() == "upsample_bicubic2d" ? "cubic" : "linear";
  mode.coordinates = corners ? "align_corners" : "half_pixel";
  mode = frontend::ModeFor(call, std::move(mode));
  ImageLayout layout;
  ASSIGN_OR_RETURN(ValueRef y, ToImage(call, x, dims, layout));
  ASSIGN_OR_RETURN(const Scaling scaling, ReadScaling(call, y->type.shape, dims, 3));
  for (int i = dims - 1; i >= 0; --i) {
    const int64_t axis = 3 - dims + i;
    frontend::ResizeAxis sizes{.in = y->type.shape[axis], .out = scaling.size[i]};
    // A scale that was given counts, whatever the sizes are; with corners the sizes alone do.
    sizes.scale =
        static_cast<double>(sizes.out) / static_cast<double>(std::max<int64_t>(sizes.in, 1));
    if (scaling.scale[i] > 0 && !corners) sizes.scale = scaling.scale[i];
    if (sizes.in == sizes.out && sizes.scale == 1) continue;
    if (mode.mode == "nearest") {
      ASSIGN_OR_RETURN(const auto sources, frontend::NearestSources(mode, sizes));
      ASSIGN_OR_RETURN(y, Resample(call, y, axis, sources, {}));
    } else {
      ASSIGN_OR_RETURN(y, Interpolated(call, y, axis, mode, sizes));
    }
  }
  return call.Result(FromImage(call, y, layout));
}

// [N, C r r, H, W] -> [N, C, H r, W r], and back.
absl::StatusOr<ScriptValue> ImportPixelShuffle(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const int64_t r, call.Int(1));
  const Shape& s = x->type.shape;
  const bool back = call.name() == "pixel_unshuffle";
  if (s.size() != 4 || r < 1 || r > 256 ||
      (back ? s[2] % r != 0 || s[3] % r != 0 : s[1] % (r * r) != 0)) {
    return absl::InvalidArgumentError("the shape does not fit the factor");
  }
  ValueRef y;
  if (back) {
    ASSIGN_OR_RETURN(y, call.ReshapedUnder("Reshape", x, {s[0], s[1], s[2] / r, r, s[3] / r, r}));
    ASSIGN_OR_RETURN(y, call.TransposedUnder("Permute", y, {0, 1, 3, 5, 2, 4}));
    ASSIGN_OR_RETURN(y, call.ReshapedUnder("Reshape", y, {s[0], s[1] * r * r, s[2] / r, s[3] / r}));
  } else {
    ASSIGN_OR_RETURN(y, call.ReshapedUnder("Reshape", x, {s[0], s[1] / (r * r), r, r, s[2], s[3]}));
    ASSIGN_OR_RETURN(y, call.TransposedUnder("Permute", y, {0, 1, 4, 2, 5, 3}));
    ASSIGN_OR_RETURN(y,
                     call.ReshapedUnder("Reshape", y, {s[0], s[1] / (r * r), s[2] * r, s[3] * r}));
  }
  return call.Result(std::move(y));
}

// Channel g * n + i of `groups` groups of n becomes channel i * groups + g.
absl::StatusOr<ScriptValue> ImportChannelShuffle(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const int64_t groups, call.Int(1));
  const Shape& s = x->type.shape;
  if (s.size() < 3 || groups < 1 || s[1] % groups != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(groups, " groups of channels of ", TypeToString(x->type)));
  }
  const int64_t rest = x->type.element_count() / std::max<int64_t>(s[0] * s[1], 1);
  ASSIGN_OR_RETURN(ValueRef y,
                   call.ReshapedUnder("Reshape", x, {s[0], groups, s[1] / groups, rest}));
  ASSIGN_OR_RETURN(y, call.TransposedUnder("Permute", y, {0, 2, 1, 3}));
  return call.Result(call.ReshapedUnder("Reshape", y, s));
}

constexpr absl::string_view kInterpolation =
    "input output_size align_corners scale_factors scales_w";

constexpr OpRule kPadRules[] = {
    {"channel_shuffle", "self groups", ImportChannelShuffle},
    {"constant_pad_nd", "self pad value", ImportConstantPad},
    {"pad", "self pad mode value", ImportPad},
    {"pixel_shuffle", "self upscale_factor", ImportPixelShuffle},
    {"pixel_unshuffle", "self downscale_factor", ImportPixelShuffle},
    {"reflection_pad1d", "self padding", ImportReflectionPad},
    {"reflection_pad2d", "self padding", ImportReflectionPad},
    {"replication_pad1d", "self padding", ImportReplicationPad},
    {"replication_pad2d", "self padding", ImportReplicationPad},
    {"upsample_bicubic2d", kInterpolation, ImportInterpolation},
    {"upsample_bilinear2d", kInterpolation, ImportInterpolation},
    {"upsample_linear1d", kInterpolation, ImportInterpolation},
    {"upsample_nearest1d", "input output_size scale_factors scales_w", ImportUpsample},
    {"upsample_nearest2d", "input output_size scale_factors scales_w", ImportUpsample},
};

}  // namespace

absl::Span<const OpRule> PadRules() { return kPadRules; }

}  // namespace npuc::pt
