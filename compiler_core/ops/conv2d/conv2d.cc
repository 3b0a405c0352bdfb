#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/numeric.h"
#include "compiler_core/ops/shape_util.h"
#include "compiler_core/ops/window.h"

namespace npuc {
namespace {

// x [n,h,w,c], weight [kh,kw,c/groups,o] -> [n,oh,ow,o]. The sums of one result pixel.
template <typename C>
void ConvolvePixel(const WindowGeometry& window, const Tensor& x, const Tensor& weight, int64_t n,
                   int64_t oh, int64_t ow, std::vector<double>& sums) {
  const int64_t channels = x.shape()[3];
  const int64_t group_in = weight.shape()[2];
  const int64_t out_channels = weight.shape()[3];
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

// Attributes strides, pads, dilations. Channels are convolved in c / weight_c groups.
struct Conv2D {
  static absl::StatusOr<Types> InferShapes(const OpView& view) {
    RETURN_IF_ERROR(CheckConvOperands(view));
    const Shape& input = view.inputs[0].shape;
    const Shape& weight = view.inputs[1].shape;
    if (input[3] < 1 || weight[2] < 1 || input[3] % weight[2] != 0 ||
        weight[3] % (input[3] / weight[2]) != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("weight ", ShapeToString(weight), " does not fit operand ",
                       ShapeToString(input), ": it must take all its channels, or equal groups"));
    }
    ASSIGN_OR_RETURN(TensorType type, InferConv(view, weight[3]));
    return Types{std::move(type)};
  }
  static void Facts(const OpView& view, FactMap& facts) {
    ConvFacts(view, facts);
    facts["out_channels"] = view.inputs[1].shape[3];
    facts["groups"] = view.inputs[0].shape[3] / view.inputs[1].shape[2];
  }
  static absl::StatusOr<std::vector<Tensor>> Reference(const Node& node,
                                                       absl::Span<const Tensor> inputs) {
    const Tensor& x = inputs[0];
    const Tensor& weight = inputs[1];
    ASSIGN_OR_RETURN(const WindowGeometry window, MakeConvWindow(node, x.shape(), weight.shape()));
    const int64_t out_channels = weight.shape()[3];
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
    return ElementCount({outputs[0].element_count(), weight[0], weight[1], weight[2]});
  }
};

}  // namespace

NPUC_DEFINE_OP(Conv2D)

}  // namespace npuc
