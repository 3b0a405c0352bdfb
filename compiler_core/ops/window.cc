#include "compiler_core/ops/window.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/numeric.h"
#include "compiler_core/ops/shape_util.h"

namespace npuc {
namespace {

constexpr int64_t kMaxWindow = int64_t{1} << 20;
constexpr absl::string_view kAxisNames[] = {"height", "width"};

// ceil(a / b) for b > 0.
int64_t CeilDiv(int64_t a, int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }

// Whether the pads are those of TensorFlow's SAME.
bool IsSamePadding(const WindowGeometry& w) {
  for (int axis = 0; axis < 2; ++axis) {
    const int64_t out = CeilDiv(w.input[axis], w.stride[axis]);
    const int64_t extent = (w.kernel[axis] - 1) * w.dilation[axis] + 1;
    const int64_t total = std::max<int64_t>((out - 1) * w.stride[axis] + extent - w.input[axis], 0);
    if (w.pad_before[axis] != total / 2 || w.pad_after[axis] != total - total / 2) return false;
  }
  return true;
}

bool IsValidPadding(const WindowGeometry& w) {
  constexpr std::array<int64_t, 2> kNone = {0, 0};
  return w.pad_before == kNone && w.pad_after == kNone;
}

}  // namespace

WindowGeometry::Taps WindowGeometry::TapsInside(int axis, int64_t out) const {
  const int64_t start = Start(axis, out);
  const int64_t first = CeilDiv(-start, dilation[axis]);
  const int64_t last = CeilDiv(input[axis] - start, dilation[axis]);
  return {std::clamp<int64_t>(first, 0, kernel[axis]), std::clamp<int64_t>(last, 0, kernel[axis])};
}

WindowGeometry WithoutIdleTaps(const WindowGeometry& window) {
  WindowGeometry w = window;
  for (int axis = 0; axis < 2; ++axis) {
    // The first window reads the last taps, and the last window the first ones.
    const int64_t last = w.output[axis] - 1;
    const int64_t first_tap = window.TapsInside(axis, last).first;
    w.kernel[axis] = window.TapsInside(axis, 0).last - first_tap;
    w.pad_before[axis] -= first_tap;
    w.pad_after[axis] = std::max<int64_t>(w.Start(axis, last) + w.kernel[axis] - w.input[axis], 0);
  }
  return w;
}

absl::StatusOr<WindowGeometry> MakeWindow(const Node& node, absl::Span<const int64_t> input,
                                          std::array<int64_t, 2> kernel) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> strides,
                   BoundedIntsAttr(node, "strides", 2, 1, kMaxWindow));
  ASSIGN_OR_RETURN(const std::vector<int64_t> pads,
                   BoundedIntsAttr(node, "pads", 4, 0, kMaxWindow));
  std::vector<int64_t> dilations = {1, 1};
  if (node.attrs.contains("dilations")) {
    ASSIGN_OR_RETURN(dilations, BoundedIntsAttr(node, "dilations", 2, 1, kMaxWindow));
  }
  WindowGeometry w;
  for (int axis = 0; axis < 2; ++axis) {
    w.input[axis] = input[1 + axis];
    w.kernel[axis] = kernel[axis];
    w.stride[axis] = strides[axis];
    w.dilation[axis] = dilations[axis];
    w.pad_before[axis] = pads[2 * axis];
    w.pad_after[axis] = pads[2 * axis + 1];
    if (kernel[axis] < 1 || kernel[axis] > kMaxWindow) {
      return absl::InvalidArgumentError(absl::StrCat("kernel ", kAxisNames[axis], " ", kernel[axis],
                                                     "; allowed are 1 to ", kMaxWindow));
    }
    const int64_t padded = w.input[axis] + w.pad_before[axis] + w.pad_after[axis];
    const int64_t extent = (w.kernel[axis] - 1) * w.dilation[axis] + 1;
    if (extent > padded) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a window of ", extent, " does not fit into the padded ", kAxisNames[axis], " ", padded));
    }
    w.output[axis] = (padded - extent) / w.stride[axis] + 1;
  }
  return w;
}

void WindowFacts(const WindowGeometry& window, FactMap& facts) {
  facts["stride_h"] = window.stride[0];
  facts["stride_w"] = window.stride[1];
  facts["dilation_h"] = window.dilation[0];
  facts["dilation_w"] = window.dilation[1];
  facts["input_h"] = window.input[0];
  facts["input_w"] = window.input[1];
  facts["layout"] = std::string("NHWC");
  facts["padding"] = std::string(IsValidPadding(window)  ? "VALID"
                                 : IsSamePadding(window) ? "SAME"
                                                         : "EXPLICIT");
}

absl::StatusOr<WindowGeometry> MakePoolWindow(const Node& node, absl::Span<const int64_t> input) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> kernel,
                   BoundedIntsAttr(node, "kernel", 2, 1, kMaxWindow));
  if (node.attrs.contains("dilations")) {
    return absl::InvalidArgumentError("pooling takes no attribute 'dilations'");
  }
  ASSIGN_OR_RETURN(const WindowGeometry w, MakeWindow(node, input, {kernel[0], kernel[1]}));
  for (int axis = 0; axis < 2; ++axis) {
    // Else a window could lie on padding alone and have no value.
    if (w.input[axis] < 1 || w.pad_before[axis] >= w.kernel[axis] ||
        w.pad_after[axis] >= w.kernel[axis]) {
      return absl::InvalidArgumentError(absl::StrCat(
          "pads ", w.pad_before[axis], " and ", w.pad_after[axis], " of the ", kAxisNames[axis],
          " ", w.input[axis], " must be less than the window ", w.kernel[axis]));
    }
  }
  return w;
}

absl::StatusOr<std::vector<TensorType>> InferPool(const OpView& view, bool integers) {
  RETURN_IF_ERROR(view.CheckInputCount(1, 1));
  RETURN_IF_ERROR(integers ? CheckNumeric(view) : CheckFloat(view));
  RETURN_IF_ERROR(CheckRank(view, 0, 4));
  TensorType type = view.inputs[0];
  ASSIGN_OR_RETURN(const WindowGeometry w, MakePoolWindow(view.node, type.shape));
  type.shape[1] = w.output[0];
  type.shape[2] = w.output[1];
  return Types{std::move(type)};
}

void PoolFacts(const OpView& view, FactMap& facts) {
  const absl::StatusOr<WindowGeometry> w = MakePoolWindow(view.node, view.inputs[0].shape);
  NPUC_CHECK(w.ok());  // the node has passed InferPool
  facts["pool_h"] = w->kernel[0];
  facts["pool_w"] = w->kernel[1];
  facts["in_channels"] = view.inputs[0].shape[3];
  WindowFacts(*w, facts);
}

int64_t PoolWork(const OpView& view, absl::Span<const TensorType> outputs) {
  const absl::StatusOr<WindowGeometry> w = MakePoolWindow(view.node, view.inputs[0].shape);
  NPUC_CHECK(w.ok());
  return ElementCount({outputs[0].element_count(), std::min(w->kernel[0], w->input[0]),
                       std::min(w->kernel[1], w->input[1])});
}

absl::StatusOr<WindowGeometry> MakeConvWindow(const Node& node, absl::Span<const int64_t> input,
                                              absl::Span<const int64_t> weight) {
  return MakeWindow(node, input, {weight[0], weight[1]});
}

absl::Status CheckConvOperands(const OpView& view) {
  RETURN_IF_ERROR(view.CheckInputCount(2, 3));
  RETURN_IF_ERROR(CheckFloat(view));
  RETURN_IF_ERROR(CheckSameDType(view));
  RETURN_IF_ERROR(CheckRank(view, 0, 4));
  return CheckRank(view, 1, 4);
}

absl::StatusOr<TensorType> InferConv(const OpView& view, int64_t out_channels) {
  const TensorType& input = view.inputs[0];
  if (view.inputs.size() > 2 && view.inputs[2].shape != Shape{out_channels}) {
    return absl::InvalidArgumentError(absl::StrCat("bias ", ShapeToString(view.inputs[2].shape),
                                                   " is not a number for each of ", out_channels,
                                                   " result channels"));
  }
  ASSIGN_OR_RETURN(const WindowGeometry w,
                   MakeConvWindow(view.node, input.shape, view.inputs[1].shape));
  return TensorType{input.dtype, {input.shape[0], w.output[0], w.output[1], out_channels}};
}

void ConvFacts(const OpView& view, FactMap& facts) {
  const absl::StatusOr<WindowGeometry> w =
      MakeConvWindow(view.node, view.inputs[0].shape, view.inputs[1].shape);
  NPUC_CHECK(w.ok());  // the node has passed InferConv
  facts["kernel_h"] = w->kernel[0];
  facts["kernel_w"] = w->kernel[1];
  facts["in_channels"] = view.inputs[0].shape[3];
  WindowFacts(*w, facts);
}

namespace {

// The sums of one result pixel; weight_shape [kh,kw,c/groups,o].
template <typename C>
void ConvolvePixel(const WindowGeometry& window, const Tensor& x, const Tensor& weight,
                   const Shape& weight_shape, int64_t n, int64_t oh, int64_t ow,
                   std::vector<double>& sums) {
  const int64_t channels = x.shape()[3];
  const int64_t group_in = weight_shape[2];
  const int64_t out_channels = weight_shape[3];
  const int64_t group_out = out_channels / (channels / group_in);
  const WindowGeometry::Taps h = window.TapsInside(0, oh);
  const WindowGeometry::Taps w = window.TapsInside(1, ow);
  for (int64_t i = h.first; i < h.last; ++i) {
    const int64_t y = window.Start(0, oh) + i * window.dilation[0];
    for (int64_t j = w.first; j < w.last; ++j) {
      const int64_t z = window.Start(1, ow) + j * window.dilation[1];
      const int64_t x_at = ((n * window.input[0] + y) * window.input[1] + z) * channels;
      const int64_t weight_at = (i * window.kernel[1] + j) * group_in * out_channels;
      for (int64_t c = 0; c < channels; ++c) {
        const double value = C::Load(x.bytes().data(), x_at + c);
        const int64_t first = (c / group_in) * group_out;
        const int64_t row = weight_at + (c % group_in) * out_channels;
        for (int64_t o = first; o < first + group_out; ++o) {
          sums[o] += value * C::Load(weight.bytes().data(), row + o);
        }
      }
    }
  }
}

}  // namespace

absl::StatusOr<std::vector<Tensor>> ConvReference(const Node& node, absl::Span<const Tensor> inputs,
                                                  const Shape& weight_shape) {
  const Tensor& x = inputs[0];
  ASSIGN_OR_RETURN(const WindowGeometry window, MakeConvWindow(node, x.shape(), weight_shape));
  const int64_t out_channels = weight_shape[3];
  TensorType type{x.dtype(), {x.shape()[0], window.output[0], window.output[1], out_channels}};
  std::vector<double> bias(out_channels, 0.0);
  if (inputs.size() > 2) {
    for (int64_t c = 0; c < out_channels; ++c) bias[c] = inputs[2].at(c);
  }
  std::vector<uint8_t> bytes(type.size_bytes());
  RETURN_IF_ERROR(WithFloatCodec(x.dtype(), [&](auto codec) {
    using C = decltype(codec);
    int64_t out = 0;
    for (int64_t n = 0; n < type.shape[0]; ++n) {
      for (int64_t oh = 0; oh < type.shape[1]; ++oh) {
        for (int64_t ow = 0; ow < type.shape[2]; ++ow) {
          std::vector<double> sums = bias;
          ConvolvePixel<C>(window, x, inputs[1], weight_shape, n, oh, ow, sums);
          for (const double sum : sums) C::Store(bytes.data(), out++, sum);
        }
      }
    }
    return absl::OkStatus();
  }));
  return std::vector<Tensor>{Tensor(std::move(type), std::move(bytes))};
}

absl::StatusOr<std::vector<float>> ConstantBias(const OpView& view) {
  if (view.inputs.size() < 3) return std::vector<float>();
  if (view.constants[2] == nullptr) {
    return absl::UnimplementedError("the convolution's bias is computed at run time");
  }
  return view.constants[2]->ToFloats();
}

}  // namespace npuc
