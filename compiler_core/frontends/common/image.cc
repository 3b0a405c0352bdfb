#include "compiler_core/frontends/common/image.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/gather.h"
#include "compiler_core/frontends/common/resize.h"
#include "compiler_core/ir/graph/types.h"

namespace npuc::frontend {
namespace {

constexpr int64_t kMaxBlock = 4096;
constexpr int64_t kMaxStride = 64;
constexpr int64_t kMaxKernelExtent = int64_t{1} << 20;

absl::Status CheckImage(const ValueRef& image) {
  if (image->type.shape.size() == 4) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the image is ", TypeToString(image->type), "; it must have rank 4"));
}

absl::Status CheckBlock(const ValueRef& image, int64_t block, bool fits) {
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("blocks of ", block, " do not divide ",
                                                 TypeToString(image->type), " (at most ", kMaxBlock,
                                                 " are allowed)"));
}

// How far apart the first and the last tap of a kernel of this size are, plus one.
absl::StatusOr<int64_t> Extent(int64_t kernel, int64_t dilation) {
  if (kernel < 1 || dilation < 1 || kernel > kMaxKernelExtent || dilation > kMaxKernelExtent ||
      (kernel - 1) * dilation + 1 > kMaxKernelExtent) {
    return absl::InvalidArgumentError(absl::StrCat("a kernel of ", kernel, " with dilation ",
                                                   dilation, "; together at most ",
                                                   kMaxKernelExtent, " are allowed"));
  }
  return (kernel - 1) * dilation + 1;
}

}  // namespace

absl::StatusOr<ValueRef> SpaceToDepth(Emitter& node, const ValueRef& image, int64_t block) {
  RETURN_IF_ERROR(CheckImage(image));
  const Shape s = image->type.shape;
  const int64_t b = block;
  RETURN_IF_ERROR(CheckBlock(image, b, b >= 1 && b <= kMaxBlock && s[1] % b == 0 && s[2] % b == 0));
  ASSIGN_OR_RETURN(ValueRef x, node.Reshaped(image, {s[0], s[1] / b, b, s[2] / b, b, s[3]}));
  ASSIGN_OR_RETURN(x, node.Transposed(x, {0, 1, 3, 2, 4, 5}));
  return node.Reshaped(x, {s[0], s[1] / b, s[2] / b, b * b * s[3]});
}

absl::StatusOr<ValueRef> DepthToSpace(Emitter& node, const ValueRef& image, int64_t block) {
  RETURN_IF_ERROR(CheckImage(image));
  const Shape s = image->type.shape;
  const int64_t b = block;
  RETURN_IF_ERROR(CheckBlock(image, b, b >= 1 && b <= kMaxBlock && s[3] % (b * b) == 0));
  const int64_t channels = s[3] / (b * b);
  ASSIGN_OR_RETURN(ValueRef x, node.Reshaped(image, {s[0], s[1], s[2], b, b, channels}));
  ASSIGN_OR_RETURN(x, node.Transposed(x, {0, 1, 3, 2, 4, 5}));
  return node.Reshaped(x, {s[0], s[1] * b, s[2] * b, channels});
}

absl::StatusOr<ValueRef> Spread(Emitter& node, ValueRef x, int64_t axis, int64_t stride) {
  if (stride == 1) return x;
  Shape shape = x->type.shape;
  int64_t rows = 1;
  for (int64_t i = 0; i <= axis; ++i) rows *= shape[i];
  const int64_t rest = x->type.element_count() / std::max<int64_t>(rows, 1);
  const int64_t size = std::max<int64_t>((shape[axis] - 1) * stride + 1, 0);
  shape[axis] *= stride;
  RETURN_IF_ERROR(CheckShape(shape));
  // A row for each element, then as many rows of zeros as lie between two.
  ASSIGN_OR_RETURN(x, node.Reshaped(x, {rows, 1, rest}));
  ASSIGN_OR_RETURN(x, node.Emit("Pad", {x},
                                {{"paddings", std::vector<int64_t>{0, 0, 0, stride - 1, 0, 0}},
                                 {"value", 0.0}}));
  ASSIGN_OR_RETURN(x, node.Reshaped(x, std::move(shape)));
  return node.Sliced(x, axis, 0, size);
}

absl::StatusOr<ValueRef> ConvolvedTransposed(Emitter& node, ValueRef image, ValueRef weight,
                                             const TransposedConv& conv) {
  RETURN_IF_ERROR(CheckImage(image));
  RETURN_IF_ERROR(CheckImage(weight));
  const Shape image_shape = image->type.shape;
  const Shape weight_shape = weight->type.shape;
  std::vector<int64_t> paddings(8, 0);
  for (size_t i = 0; i < 2; ++i) {
    const int64_t axis = static_cast<int64_t>(i) + 1;
    const int64_t size = image_shape[i + 1];
    const int64_t stride = conv.stride[i];
    const int64_t result = conv.result[i];
    ASSIGN_OR_RETURN(const int64_t extent, Extent(weight_shape[i], conv.dilation[i]));
    if (size < 1 || size > kMaxElements || result < 1 || result > kMaxElements || stride < 1 ||
        stride > kMaxStride || conv.pads_before[i] < 0 || conv.pads_before[i] > kMaxElements) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a transposed convolution from ", size, " to ", result, " places by strides of ", stride,
          "; strides of 1 to ", kMaxStride, " and places of 1 or more are allowed"));
    }
    const int64_t before = extent - 1 - conv.pads_before[i];
    ASSIGN_OR_RETURN(image, Spread(node, std::move(image), axis, stride));
    paddings[2 * (i + 1)] = before;
    paddings[2 * (i + 1) + 1] = result + extent - 1 - before - ((size - 1) * stride + 1);
    ASSIGN_OR_RETURN(weight, node.Sliced(weight, static_cast<int64_t>(i), weight_shape[i] - 1,
                                         weight_shape[i], -1));
  }
  ASSIGN_OR_RETURN(image, node.Padded(image, std::move(paddings), 0));
  return node.Emit("Conv2D", {image, weight},
                   {{"strides", Shape{1, 1}},
                    {"dilations", Shape{conv.dilation[0], conv.dilation[1]}},
                    {"pads", Shape{0, 0, 0, 0}}});
}

absl::StatusOr<ValueRef> ResizedImage(Emitter& node, ValueRef image, const ImageResize& resize) {
  RETURN_IF_ERROR(CheckImage(image));
  ResizeMode mode;
  mode.mode = resize.is_linear ? "linear" : "nearest";
  mode.coordinates = resize.align_corners ? "align_corners" : "asymmetric";
  if (resize.half_pixel_centers && !resize.align_corners) {
    mode.coordinates = resize.is_linear ? "half_pixel" : "tf_half_pixel_for_nn";
  }
  mode.in_float32 = !resize.is_linear;
  for (size_t i = 0; i < 2; ++i) {
    ResizeAxis axis{.in = image->type.shape[i + 1], .out = resize.size[i]};
    if (axis.in < 1 || axis.out < 1 || axis.out > kMaxElements) {
      return absl::InvalidArgumentError(
          absl::StrCat("an image of ", axis.in, " is resized to ", axis.out));
    }
    if (axis.in == axis.out) continue;
    axis.scale = static_cast<double>(axis.out) / static_cast<double>(axis.in);
    ASSIGN_OR_RETURN(image, ResizeAlong(node, std::move(image), i + 1, mode, axis));
  }
  return image;
}

absl::StatusOr<ValueRef> MirrorPadded(Emitter& node, ValueRef value,
                                      const std::vector<int64_t>& paddings, bool repeats_edge) {
  const Shape shape = value->type.shape;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const int64_t dim = shape[axis];
    const int64_t before = paddings[2 * axis];
    const int64_t after = paddings[2 * axis + 1];
    if (before == 0 && after == 0) continue;
    const int64_t most = repeats_edge ? dim : dim - 1;
    if (std::min(before, after) < 0 || std::max(before, after) > most) {
      return absl::InvalidArgumentError(absl::StrCat("paddings ", before, " and ", after,
                                                     " of dimension ", axis, " of ", dim,
                                                     "; a mirror image has at most ", most));
    }
    std::vector<int64_t> indices;
    const int64_t first = repeats_edge ? 0 : 1;
    for (int64_t i = before; i > 0; --i) indices.push_back(i - 1 + first);
    for (int64_t i = 0; i < dim; ++i) indices.push_back(i);
    for (int64_t i = 0; i < after; ++i) indices.push_back(dim - 1 - first - i);
    ASSIGN_OR_RETURN(value, GatherAxis(node, value, static_cast<int64_t>(axis), indices));
  }
  return value;
}

}  // namespace npuc::frontend
