// Convolutions, as Conv2D over [N,H,W,C].
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/image.h"
#include "compiler_core/frontends/torchscript/layout.h"
#include "compiler_core/frontends/torchscript/op_call.h"

namespace npuc::pt {
namespace {

constexpr int64_t kMaxWindow = int64_t{1} << 20;

struct Geometry {
  int dims = 2;
  std::vector<int64_t> stride;    // [h,w]; of a signal h is 1
  std::vector<int64_t> pads;      // top, bottom, left, right
  std::vector<int64_t> dilation;  // [h,w]
  int64_t groups = 1;
};

// One number, or as many as there are dimensions.
absl::StatusOr<std::vector<int64_t>> Steps(OpCall& call, int arg, int64_t fallback, int64_t lowest,
                                           absl::string_view what, size_t dims = 3) {
  ASSIGN_OR_RETURN(std::vector<int64_t> values, call.IntsOf(arg, dims, {fallback}));
  for (const int64_t value : values) {
    if (value >= lowest && value <= kMaxWindow) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(what, " is ", value, "; allowed are ", lowest, " to ", kMaxWindow));
  }
  return values;
}

// The numbers of a signal or an image -> [h,w].
absl::StatusOr<std::vector<int64_t>> StepPair(OpCall& call, int arg, int dims, int64_t fallback,
                                              int64_t lowest, absl::string_view what) {
  ASSIGN_OR_RETURN(std::vector<int64_t> values,
                   Steps(call, arg, fallback, lowest, what, static_cast<size_t>(dims)));
  if (dims == 1) values.insert(values.begin(), fallback);
  return values;
}

// padding "same": as much as keeps the size, the odd element behind.
absl::Status SamePads(const Shape& weight, Geometry& geometry) {
  geometry.pads = {0, 0, 0, 0};
  for (int axis = 2 - geometry.dims; axis < 2; ++axis) {
    if (geometry.stride[axis] != 1) {
      return absl::InvalidArgumentError("padding 'same' needs stride 1");
    }
    const int64_t kernel = weight[axis + static_cast<int64_t>(geometry.dims)];
    const int64_t total = geometry.dilation[axis] * (kernel - 1);
    geometry.pads[2 * axis] = total / 2;
    geometry.pads[2 * axis + 1] = total - total / 2;
  }
  return absl::OkStatus();
}

absl::StatusOr<Geometry> ReadGeometry(OpCall& call, int dims, const Shape& weight, int stride,
                                      int padding, int dilation, int groups) {
  Geometry geometry;
  geometry.dims = dims;
  ASSIGN_OR_RETURN(geometry.stride, StepPair(call, stride, dims, 1, 1, "the stride"));
  ASSIGN_OR_RETURN(geometry.dilation, StepPair(call, dilation, dims, 1, 1, "the dilation"));
  ASSIGN_OR_RETURN(geometry.groups, call.IntOr(groups, 1));
  if (call.arg(padding).Is(ScriptKind::kString)) {
    ASSIGN_OR_RETURN(const std::string text, call.StringOr(padding, ""));
    if (text == "same") {
      RETURN_IF_ERROR(SamePads(weight, geometry));
      return geometry;
    }
    if (text != "valid") return absl::InvalidArgumentError("padding must be 'same' or 'valid'");
    geometry.pads = {0, 0, 0, 0};
    return geometry;
  }
  ASSIGN_OR_RETURN(const auto pads, StepPair(call, padding, dims, 0, 0, "the padding"));
  geometry.pads = {pads[0], pads[0], pads[1], pads[1]};
  return geometry;
}

// weight [O, I/groups, kh, kw] (no kh for a signal) -> the IR's, and the convolution.
absl::StatusOr<ValueRef> Convolve(OpCall& call, const ValueRef& image, const ValueRef& weight,
                                  const Geometry& geometry) {
  Shape shape = weight->type.shape;
  if (geometry.dims == 1) shape.insert(shape.begin() + 2, 1);
  const int64_t channels = image->type.shape[3];
  if (geometry.groups < 1 || channels != shape[1] * geometry.groups ||
      shape[0] % geometry.groups != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a weight ", ShapeToString(weight->type.shape), " in ", geometry.groups,
                     " groups does not fit an input of ", channels, " channels"));
  }
  AttrMap attrs = {
      {"strides", geometry.stride}, {"pads", geometry.pads}, {"dilations", geometry.dilation}};
  const bool depthwise = geometry.groups == channels && channels > 1;
  const std::string row = absl::StrCat(depthwise ? "DepthwiseConv" : "Conv", geometry.dims, "d");
  if (depthwise) {
    // Result channel c * multiplier + m is channel c under kernel m on both sides.
    const int64_t multiplier = shape[0] / channels;
    ASSIGN_OR_RETURN(ValueRef kernel,
                     call.Reshaped(weight, {channels, multiplier, shape[2], shape[3]}));
    ASSIGN_OR_RETURN(kernel, call.Transposed(kernel, {2, 3, 0, 1}));
    return call.EmitUnder(row, "DepthwiseConv2D", {image, kernel}, std::move(attrs));
  }
  ASSIGN_OR_RETURN(ValueRef kernel, call.Reshaped(weight, shape));
  ASSIGN_OR_RETURN(kernel, call.Transposed(kernel, {2, 3, 1, 0}));
  return call.EmitUnder(row, "Conv2D", {image, kernel}, std::move(attrs));
}

// x and weight as torch lays them out; bias may be null.
absl::StatusOr<ValueRef> Convolved(OpCall& call, const ValueRef& x, const ValueRef& weight,
                                   const ValueRef& bias, const Geometry& geometry) {
  ImageLayout layout;
  ASSIGN_OR_RETURN(const ValueRef image, ToImage(call, x, geometry.dims, layout));
  ASSIGN_OR_RETURN(ValueRef y, Convolve(call, image, weight, geometry));
  if (bias != nullptr) {
    ASSIGN_OR_RETURN(y, call.Emit("Add", {y, bias}));
  }
  return FromImage(call, y, layout);
}

absl::StatusOr<ScriptValue> ConvolveArguments(OpCall& call, int dims, int stride, int padding,
                                              int dilation, int groups) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const ValueRef weight, call.TensorArg(1));
  ASSIGN_OR_RETURN(const ValueRef bias, call.OptionalTensor(2));
  if (static_cast<int>(weight->type.shape.size()) != dims + 2) {
    return absl::InvalidArgumentError(absl::StrCat("the weight is ", TypeToString(weight->type),
                                                   "; it must have rank ", dims + 2));
  }
  ASSIGN_OR_RETURN(const Geometry geometry,
                   ReadGeometry(call, dims, weight->type.shape, stride, padding, dilation, groups));
  return call.Result(Convolved(call, x, weight, bias, geometry));
}

// Over three dimensions: the taps of the kernel's depth become channels beside those that they
// read, and each depth of the result an image of its own.
absl::StatusOr<ScriptValue> Convolve3d(OpCall& call, int stride, int padding, int dilation,
                                       int groups) {
  ASSIGN_OR_RETURN(ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(ValueRef weight, call.TensorArg(1));
  ASSIGN_OR_RETURN(const ValueRef bias, call.OptionalTensor(2));
  if (call.arg(padding).Is(ScriptKind::kString)) {
    return call.FailMode("a convolution over 3 dimensions with padding by a word",
                         "state the padding in numbers");
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> strides, Steps(call, stride, 1, 1, "the stride"));
  ASSIGN_OR_RETURN(const std::vector<int64_t> pads, Steps(call, padding, 0, 0, "the padding"));
  ASSIGN_OR_RETURN(const std::vector<int64_t> dilations,
                   Steps(call, dilation, 1, 1, "the dilation"));
  const bool has_batch = x->type.shape.size() == 5;
  if (!has_batch) {
    Shape shape = x->type.shape;
    shape.insert(shape.begin(), 1);
    ASSIGN_OR_RETURN(x, call.Reshaped(x, std::move(shape)));
  }
  const Shape kernel = weight->type.shape;  // [O, I/groups, kd, kh, kw]
  if (x->type.shape.size() != 5 || kernel.size() != 5) {
    return absl::InvalidArgumentError(absl::StrCat("the weight is ", TypeToString(weight->type),
                                                   " and the operand ", TypeToString(x->type)));
  }
  ASSIGN_OR_RETURN(x, call.Padded(x, {0, 0, 0, 0, pads[0], pads[0], 0, 0, 0, 0}, 0));
  const Shape in = x->type.shape;
  const int64_t reach = dilations[0] * (kernel[2] - 1) + 1;
  if (in[2] < reach) return absl::InvalidArgumentError("the kernel is deeper than the operand");
  const int64_t depth = (in[2] - reach) / strides[0] + 1;
  std::vector<ValueRef> taps;
  for (int64_t i = 0; i < kernel[2]; ++i) {
    ASSIGN_OR_RETURN(ValueRef tap, call.SlicedUnder(OpCall::kNoRow, x, 2, i * dilations[0], depth,
                                                    depth == 1 ? 1 : strides[0]));
    ASSIGN_OR_RETURN(taps.emplace_back(),
                     call.Reshaped(tap, {in[0], in[1], 1, depth, in[3], in[4]}));
  }
  ASSIGN_OR_RETURN(x, call.Joined(taps, 2));
  ASSIGN_OR_RETURN(x, call.Reshaped(x, {in[0], in[1] * kernel[2], depth, in[3], in[4]}));
  ASSIGN_OR_RETURN(x, call.Transposed(x, {0, 2, 1, 3, 4}));
  ASSIGN_OR_RETURN(x, call.Reshaped(x, {in[0] * depth, in[1] * kernel[2], in[3], in[4]}));
  ASSIGN_OR_RETURN(weight,
                   call.Reshaped(weight, {kernel[0], kernel[1] * kernel[2], kernel[3], kernel[4]}));
  Geometry geometry{.stride = {strides[1], strides[2]},
                    .pads = {pads[1], pads[1], pads[2], pads[2]},
                    .dilation = {dilations[1], dilations[2]}};
  ASSIGN_OR_RETURN(geometry.groups, call.IntOr(groups, 1));
  ASSIGN_OR_RETURN(ValueRef y, Convolved(call, x, weight, bias, geometry));
  const Shape out = y->type.shape;
  ASSIGN_OR_RETURN(y, call.Reshaped(y, {in[0], depth, out[1], out[2], out[3]}));
  ASSIGN_OR_RETURN(y, call.Transposed(y, {0, 2, 1, 3, 4}));
  if (has_batch) return call.Result(std::move(y));
  return call.Result(call.Reshaped(y, {out[1], depth, out[2], out[3]}));
}

absl::StatusOr<ScriptValue> ImportConv1d(OpCall& call) {
  return ConvolveArguments(call, 1, 3, 4, 5, 6);
}
absl::StatusOr<ScriptValue> ImportConv2d(OpCall& call) {
  return ConvolveArguments(call, 2, 3, 4, 5, 6);
}

// weight [I, O/groups, kh, kw] of a transposed convolution -> [O, I/groups, kh, kw], turned by half
// a turn: that of the convolution over the spread image.
absl::StatusOr<ValueRef> TurnedWeight(OpCall& call, const ValueRef& weight, int64_t groups) {
  const Shape s = weight->type.shape;
  ValueRef w = weight;
  for (int64_t axis = 2; axis < 4; ++axis) {
    if (s[axis] > 1) {
      ASSIGN_OR_RETURN(w, call.SlicedUnder(OpCall::kNoRow, w, axis, s[axis] - 1, s[axis], -1));
    }
  }
  ASSIGN_OR_RETURN(w, call.Reshaped(w, {groups, s[0] / groups, s[1], s[2], s[3]}));
  ASSIGN_OR_RETURN(w, call.Transposed(w, {0, 2, 1, 3, 4}));
  return call.Reshaped(w, {groups * s[1], s[0] / groups, s[2], s[3]});
}

// A transposed convolution whose steps are as wide as its kernel: no two results share an element,
// so that one product per element gives a block of results, which is then moved to its place.
absl::StatusOr<ValueRef> BlockwiseTransposed(OpCall& call, const ValueRef& image,
                                             const ValueRef& weight, int dims) {
  const Shape s = weight->type.shape;  // [I, O, kh, kw]
  const Shape i = image->type.shape;
  ASSIGN_OR_RETURN(ValueRef w, call.Transposed(weight, {0, 2, 3, 1}));
  ASSIGN_OR_RETURN(w, call.Reshaped(w, {1, 1, s[0], s[2] * s[3] * s[1]}));
  ASSIGN_OR_RETURN(ValueRef y, call.EmitUnder(absl::StrCat("Conv", dims, "d"), "Conv2D", {image, w},
                                              {{"strides", std::vector<int64_t>{1, 1}},
                                               {"pads", std::vector<int64_t>{0, 0, 0, 0}},
                                               {"dilations", std::vector<int64_t>{1, 1}}}));
  ASSIGN_OR_RETURN(y, call.Reshaped(y, {i[0], i[1], i[2], s[2], s[3], s[1]}));
  ASSIGN_OR_RETURN(y, call.Transposed(y, {0, 1, 3, 2, 4, 5}));
  return call.Reshaped(y, {i[0], i[1] * s[2], i[2] * s[3], s[1]});
}

// The convolution over the spread image, padded by the kernel's reach less the call's padding.
absl::StatusOr<ValueRef> SpreadTransposed(OpCall& call, ValueRef image, const ValueRef& weight,
                                          Geometry geometry, const std::vector<int64_t>& extra) {
  const Shape s = weight->type.shape;
  for (int64_t side = 0; side < 4; ++side) {
    const int64_t i = side / 2;
    int64_t& pad = geometry.pads[side];
    pad = geometry.dilation[i] * (s[2 + i] - 1) - pad + (side % 2 == 1 ? extra[i] : 0);
  }
  for (int64_t i = 0; i < 2; ++i) {
    ASSIGN_OR_RETURN(image, frontend::Spread(call, std::move(image), 1 + i, geometry.stride[i]));
    // What is padded away of the result is not needed of the image.
    int64_t& before = geometry.pads[2 * i];
    int64_t& after = geometry.pads[2 * i + 1];
    const int64_t cut = std::max<int64_t>(-before, 0);
    const int64_t left = image->type.shape[1 + i] - cut - std::max<int64_t>(-after, 0);
    if (left < 1) return absl::InvalidArgumentError("the padding leaves no result");
    ASSIGN_OR_RETURN(image, call.SlicedUnder(OpCall::kNoRow, image, 1 + i, cut, left));
    before = std::max<int64_t>(before, 0);
    after = std::max<int64_t>(after, 0);
  }
  geometry.stride = {1, 1};
  ASSIGN_OR_RETURN(const ValueRef turned, TurnedWeight(call, weight, geometry.groups));
  geometry.dims = 2;
  return Convolve(call, image, turned, geometry);
}

// weight [I, O/groups, kernel...]
absl::StatusOr<ScriptValue> TransposedArguments(OpCall& call, int dims, int stride, int padding,
                                                int dilation, int output_padding, int groups) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(ValueRef weight, call.TensorArg(1));
  ASSIGN_OR_RETURN(const ValueRef bias, call.OptionalTensor(2));
  Shape shape = weight->type.shape;
  if (static_cast<int>(shape.size()) != dims + 2) {
    return absl::InvalidArgumentError(absl::StrCat("the weight is ", TypeToString(weight->type),
                                                   "; it must have rank ", dims + 2));
  }
  ASSIGN_OR_RETURN(const Geometry geometry,
                   ReadGeometry(call, dims, shape, stride, padding, dilation, groups));
  ASSIGN_OR_RETURN(const std::vector<int64_t> extra,
                   StepPair(call, output_padding, dims, 0, 0, "the output padding"));
  ImageLayout layout;
  ASSIGN_OR_RETURN(const ValueRef image, ToImage(call, x, dims, layout));
  if (geometry.groups < 1 || shape[0] != image->type.shape[3] || shape[0] % geometry.groups != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a weight ", ShapeToString(shape), " in ", geometry.groups,
                     " groups does not fit an input of ", image->type.shape[3], " channels"));
  }
  if (dims == 1) shape.insert(shape.begin() + 2, 1);
  ASSIGN_OR_RETURN(weight, call.Reshaped(weight, shape));
  const std::vector<int64_t> none(4, 0);
  const bool is_blockwise = geometry.groups == 1 && geometry.pads == none &&
                            geometry.stride == std::vector<int64_t>{shape[2], shape[3]} &&
                            geometry.dilation == std::vector<int64_t>{1, 1} &&
                            extra == std::vector<int64_t>{0, 0};
  ASSIGN_OR_RETURN(ValueRef y, is_blockwise
                                   ? BlockwiseTransposed(call, image, weight, dims)
                                   : SpreadTransposed(call, image, weight, geometry, extra));
  if (bias != nullptr) {
    ASSIGN_OR_RETURN(y, call.Emit("Add", {y, bias}));
  }
  return call.Result(FromImage(call, y, layout));
}

absl::StatusOr<ScriptValue> ImportConvTranspose(OpCall& call) {
  return TransposedArguments(call, call.name() == "conv_transpose1d" ? 1 : 2, 3, 4, 7, 5, 6);
}

// The general form, of any rank: input, weight, bias, stride, padding, dilation, transposed,
// output_padding, groups.
absl::StatusOr<ScriptValue> ImportConvolution(OpCall& call) {
  ASSIGN_OR_RETURN(const bool transposed, call.BoolOr(6, false));
  ASSIGN_OR_RETURN(const ValueRef weight, call.TensorArg(1));
  const int dims = static_cast<int>(weight->type.shape.size()) - 2;
  if (dims == 3 && !transposed) return Convolve3d(call, 3, 4, 5, 8);
  if (dims != 1 && dims != 2) {
    return call.FailMode(absl::StrCat("a convolution over ", dims,
                                      " dimensions; known are 1, 2 and, not transposed, 3"),
                         "rebuild the model with Conv1d or Conv2d");
  }
  if (transposed) return TransposedArguments(call, dims, 3, 4, 5, 7, 8);
  return ConvolveArguments(call, dims, 3, 4, 5, 8);
}

// padding as a word: input, weight, bias, stride, padding, dilation, groups.
absl::StatusOr<ScriptValue> ImportConvolutionMode(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef weight, call.TensorArg(1));
  return ConvolveArguments(call, weight->type.shape.size() == 3 ? 1 : 2, 3, 4, 5, 6);
}

absl::StatusOr<ScriptValue> ImportConv3d(OpCall& call) { return Convolve3d(call, 3, 4, 5, 6); }

constexpr absl::string_view kGeneral =
    "input weight bias stride padding dilation transposed output_padding groups benchmark "
    "deterministic cudnn_enabled allow_tf32";
constexpr absl::string_view kPlain = "input weight bias stride padding dilation groups";
constexpr absl::string_view kTransposed =
    "input weight bias stride padding output_padding groups dilation";

constexpr OpRule kConvRules[] = {
    {"_convolution", kGeneral, ImportConvolution},
    {"_convolution_mode", kPlain, ImportConvolutionMode},
    {"conv1d", kPlain, ImportConv1d},
    {"conv2d", kPlain, ImportConv2d},
    {"conv3d", kPlain, ImportConv3d},
    {"conv_transpose1d", kTransposed, ImportConvTranspose},
    {"conv_transpose2d", kTransposed, ImportConvTranspose},
    {"convolution", kGeneral, ImportConvolution},
};

}  // namespace

absl::Span<const OpRule> ConvRules() { return kConvRules; }

}  // namespace npuc::pt
