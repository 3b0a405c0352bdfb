#ifndef NPUC_COMPILER_CORE_OPS_WINDOW_H_
#define NPUC_COMPILER_CORE_OPS_WINDOW_H_

#include <array>
#include <cstdint>

#include "compiler_core/ops/op.h"

namespace npuc {

// The windows of convolution and pooling over NHWC operands. Index 0 is height, 1 is width.
struct WindowGeometry {
  std::array<int64_t, 2> input = {};
  std::array<int64_t, 2> kernel = {};
  std::array<int64_t, 2> stride = {};
  std::array<int64_t, 2> dilation = {};
  std::array<int64_t, 2> pad_before = {};
  std::array<int64_t, 2> pad_after = {};
  std::array<int64_t, 2> output = {};

  // Where window `out` begins along axis; negative inside the padding.
  int64_t Start(int axis, int64_t out) const { return out * stride[axis] - pad_before[axis]; }
  // The taps [first, last) of window `out` that lie on the operand, not on padding.
  struct Taps {
    int64_t first;
    int64_t last;
  };
  Taps TapsInside(int axis, int64_t out) const;
};

// Leaves out the rows and columns of taps that lie on padding in every window of a pooling node. A
// kernel of any size becomes one that follows the operand's.
WindowGeometry WithoutIdleTaps(const WindowGeometry& window);

// Reads attributes strides [h,w], pads [top,bottom,left,right] and dilations [h,w] (1 where
// absent) of a node over an operand of shape `input` [n,h,w,c]. INVALID_ARGUMENT where they do not
// fit.
absl::StatusOr<WindowGeometry> MakeWindow(const Node& node, absl::Span<const int64_t> input,
                                          std::array<int64_t, 2> kernel);

// The stride, dilation, padding, input and layout facts; "padding" is VALID, SAME or EXPLICIT.
void WindowFacts(const WindowGeometry& window, FactMap& facts);

// MaxPool and AvgPool: attributes kernel [h,w], strides, pads.
absl::StatusOr<WindowGeometry> MakePoolWindow(const Node& node, absl::Span<const int64_t> input);
absl::StatusOr<std::vector<TensorType>> InferPool(const OpView& view, bool integers);
void PoolFacts(const OpView& view, FactMap& facts);
int64_t PoolWork(const OpView& view, absl::Span<const TensorType> outputs);

// Conv2D (weight [kh,kw,c/groups,o]) and DepthwiseConv2D (weight [kh,kw,c,multiplier]). A third
// operand is a bias, a number a result channel.
absl::StatusOr<WindowGeometry> MakeConvWindow(const Node& node, absl::Span<const int64_t> input,
                                              absl::Span<const int64_t> weight);
// Checks operands and window; the result's channels are the caller's.
absl::StatusOr<TensorType> InferConv(const OpView& view, int64_t out_channels);
absl::Status CheckConvOperands(const OpView& view);
void ConvFacts(const OpView& view, FactMap& facts);
// The reference of both: operand 0 [n,h,w,c] under weight [kh,kw,c/groups,o], whose bytes a
// depthwise weight [kh,kw,c,m] has, too, as [kh,kw,1,c*m]. Naive loops in double.
absl::StatusOr<std::vector<Tensor>> ConvReference(const Node& node, absl::Span<const Tensor> inputs,
                                                  const Shape& weight_shape);
// The values of a constant bias, empty where there is none. UNIMPLEMENTED for one that is computed
// at run time.
absl::StatusOr<std::vector<float>> ConstantBias(const OpView& view);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_OPS_WINDOW_H_
