#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/numeric.h"
#include "compiler_core/ops/shape_util.h"
#include "compiler_core/ops/window.h"

namespace npuc {
namespace {

// The sums of one result pixel: channel c gives results c * multiplier ...
template <typename C>
void ConvolvePixel(const WindowGeometry& window, const Tensor& x, const Tensor& weight, int64_t n,
                   int64_t oh, int64_t ow, std::vector<double>& sums) {
  const int64_t channels = weight.shape()[2];
  const int64_t multiplier = weight.shape()[3];
  const WindowGeometry::Taps h = window.TapsInside(0, oh);
  const WindowGeometry::Taps w = window.TapsInside(1, ow);
  for (int64_t i = h.first; i < h.last; ++i) {
    const int64_t y = window.Start(0, oh) + i * window.dilation[0];
    for (int64_t j = w.first; j < w.last; ++j) {
      const int64_t z = window.Start(1, ow) + j * window.dilation[1];
      const int64_t x_at = ((n * window.input[0] + y) * window.input[1] + z) * channels;
      const int64_t weight_at = (i * window.kernel[1] + j) * channels * multiplier;
      for (int64_t o = 0; o < channels * multiplier; ++o) {
        sums[o] += C::Load(x.bytes().data(), x_at + o / multiplier) *
                   C::Load(weight.bytes().data(), weight_at + o);
      }
    }
  }
}

// x [n,h,w,c], weight [kh,kw,c,m] -> [n,oh,ow,c*m]. Attributes strides, pads, dilations.
struct DepthwiseConv2D {
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
    const Tensor& x = inputs[0];
    const Tensor& weight = inputs[1];
    ASSIGN_OR_RETURN(const WindowGeometry window, MakeConvWindow(node, x.shape(), weight.shape()));
    const int64_t out_channels = weight.shape()[2] * weight.shape()[3];
    TensorType type{x.dtype(), {x.shape()[0], window.output[0], window.output[1], out_channels}};
    std::vector<uint8_t> bytes(type.size_bytes());
    RETURN_IF_ERROR(WithFloatCodec(x.dtype(), [&](auto codec) {
      using C = decltype(codec);
      int64_t out = 0;
      for (int64_t n = 0; n < type.shape[0]; ++n) {
        for (int64_t oh = 0; oh < type.shape[1]; ++oh) {
          for (int64_t ow = 0; ow < type.shape[2]; ++ow) {
            std::vector<double> sums(out_channels, 0.0);
            ConvolvePixel<C>(window, x, weight, n, oh, ow, sums);
            for (const double sum : sums) C::Store(bytes.data(), out++, sum);
          }
        }
      }
      return absl::OkStatus();
    }));
    return std::vector<Tensor>{Tensor(std::move(type), std::move(bytes))};
  }
  static int64_t Work(const OpView& view, absl::Span<const TensorType> outputs) {
    const Shape& weight = view.inputs[1].shape;
    return ElementCount({outputs[0].element_count(), weight[0], weight[1]});
  }
};

}  // namespace

NPUC_DEFINE_OP(DepthwiseConv2D)

}  // namespace npuc
