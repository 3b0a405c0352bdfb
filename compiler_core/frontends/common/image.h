#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_IMAGE_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_IMAGE_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler_core/frontends/common/emitter.h"

namespace npuc::frontend {

// Operators on images [N,H,W,C] that several frameworks have, as operators of the IR. Pairs are
// height first. All return INVALID_ARGUMENT where shapes or numbers do not fit.

// [N,H,W,C] -> [N,H/b,W/b,b*b*C]: each block of b x b pixels becomes one pixel.
absl::StatusOr<ValueRef> SpaceToDepth(Emitter& node, const ValueRef& image, int64_t block);
// The inverse: [N,H,W,b*b*C] -> [N,b*H,b*W,C].
absl::StatusOr<ValueRef> DepthToSpace(Emitter& node, const ValueRef& image, int64_t block);

// Zeros put between the elements of an axis, as a transposed convolution sees its operand: element
// i goes to i * stride, and n elements become (n - 1) * stride + 1. stride >= 1.
absl::StatusOr<ValueRef> Spread(Emitter& node, ValueRef x, int64_t axis, int64_t stride);

// A transposed convolution: what the gradient of a convolution with these numbers is.
struct TransposedConv {
  std::array<int64_t, 2> stride = {1, 1};       // 1..64
  std::array<int64_t, 2> dilation = {1, 1};     // >= 1
  std::array<int64_t, 2> result = {1, 1};       // height and width of the result
  std::array<int64_t, 2> pads_before = {0, 0};  // that the forward convolution would have padded
};
// image [N,H,W,I], weight [h,w,I,O] of the forward direction -> [N,result,O]: a convolution of the
// image, spread by the strides, with the kernel turned by half a turn.
absl::StatusOr<ValueRef> ConvolvedTransposed(Emitter& node, ValueRef image, ValueRef weight,
                                             const TransposedConv& conv);

// How TensorFlow and TFLite resize an image.
struct ImageResize {
  bool is_linear = true;  // else the nearest pixel
  bool align_corners = false;
  bool half_pixel_centers = false;
  std::array<int64_t, 2> size = {1, 1};
};
absl::StatusOr<ValueRef> ResizedImage(Emitter& node, ValueRef image, const ImageResize& resize);

// The value with its axes extended by their own mirror image, without the edge (reflect) or with
// it (symmetric). paddings: before, after of each axis, none negative.
absl::StatusOr<ValueRef> MirrorPadded(Emitter& node, ValueRef value,
                                      const std::vector<int64_t>& paddings, bool repeats_edge);

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_IMAGE_H_
