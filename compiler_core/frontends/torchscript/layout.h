#ifndef NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_LAYOUT_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_LAYOUT_H_

#include "absl/status/statusor.h"
#include "compiler_core/frontends/torchscript/op_call.h"

namespace npuc::pt {

// torch lays images out as [N,C,H,W] and signals as [N,C,L]; the core's units want [N,H,W,C]. Here
// is the way there and back, a Transpose each (and a Reshape for signals, which are images of
// height 1): passes cancel them where operators meet.

// How a tensor was laid out before ToImage.
struct ImageLayout {
  int dims = 2;           // 2: an image, 1: a signal
  bool has_batch = true;  // else N was put in front
};

// x [N,C,H,W], [C,H,W] (dims 2), [N,C,L] or [C,L] (dims 1) -> [N,H,W,C].
absl::StatusOr<ValueRef> ToImage(OpCall& call, const ValueRef& x, int dims, ImageLayout& layout);
// The way back for a result [N,H,W,C].
absl::StatusOr<ValueRef> FromImage(OpCall& call, const ValueRef& y, const ImageLayout& layout);

// Dimension 1 made the last one, and back: for what works on channels in any rank >= 2.
absl::StatusOr<ValueRef> ChannelsToLast(OpCall& call, const ValueRef& x);
absl::StatusOr<ValueRef> ChannelsFromLast(OpCall& call, const ValueRef& x);

}  // namespace npuc::pt

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_LAYOUT_H_
