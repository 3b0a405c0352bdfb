#ifndef NPUC_COMPILER_CORE_OPS_WINDOW_LOWER_H_
#define NPUC_COMPILER_CORE_OPS_WINDOW_LOWER_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler_core/ir/cmd/command.h"
#include "compiler_core/ops/lower_context.h"
#include "compiler_core/ops/move_emit.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/ops/window.h"

namespace npuc {

// Commands for convolution and pooling windows over one NHWC image: [h,w,c] of fp16. Only encodings
// that published headers show are used: what they cannot pad is padded beforehand, dilation and
// large kernels by gathering.

// Scratch memory for an image with `fill` around it: where it is, and the walk of the image in it.
struct PaddedPlace {
  Operand place;
  Walk image;
};
// Fills what window.pad_* put around the image, which is yet to be moved there; `window` becomes
// that of the padded image.
absl::StatusOr<PaddedPlace> PlaceForPadded(LowerContext& context, int64_t channels, float fill,
                                           WindowGeometry& window);

// The image with window.pad_* zeros (or `fill`) around it; `window` becomes that of the new image.
// The image itself where there is no padding.
absl::StatusOr<Operand> PadImage(LowerContext& context, Operand image, int64_t channels, float fill,
                                 WindowGeometry& window);

// For Conv2D and DepthwiseConv2D: calls lower(image, d, window) for each image [h,w,c] of operand
// 0 and its part of the result, which has out_channels channels. The window has the node's padding.
absl::Status ForEachImage(
    const OpView& view, LowerContext& context, int64_t out_channels,
    absl::FunctionRef<absl::Status(Operand image, Operand d, const WindowGeometry& window)> lower);

// Channels [first, first + channels) of the taps of every window, without padding:
// tap_major: [taps,out_h,out_w,channels]; else [out_h,out_w,taps,channels].
absl::StatusOr<Operand> GatherTaps(LowerContext& context, Operand image, int64_t image_channels,
                                   int64_t first, int64_t channels, const WindowGeometry& window,
                                   bool tap_major);

// d [channels * multiplier,out_h,out_w] = planes [channels,h,w], each under its own kernel;
// records: for each result plane its taps, then its bias where `has_bias`. One of channels and
// multiplier is 1; no padding, no dilation.
absl::Status EmitDepthwise(LowerContext& context, Operand planes, Operand d,
                           const WindowGeometry& window, int64_t channels, int64_t multiplier,
                           absl::Span<const float> records, bool has_bias);

// d [pixels,channels] = sums + the node's constant bias, by a command of its own.
absl::Status EmitBias(LowerContext& context, Operand sums, absl::Span<const float> bias, Operand d,
                      int64_t pixels);

// Whether EmitDepthwise can do these windows.
bool FitsPlaneUnit(const VectorLimits& limits, const WindowGeometry& window);

enum class PoolKind { kMax, kAverage };
absl::Status LowerPool(const OpView& view, LowerContext& context, PoolKind kind);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_OPS_WINDOW_LOWER_H_
