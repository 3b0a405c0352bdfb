// Convolutions, pooling and resizing of images [N,H,W,C].
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/image.h"
#include "compiler_core/frontends/tflite/dilation.h"
#include "compiler_core/frontends/tflite/node_import.h"
#include "npuc/fe/tflite/npuc_tflite_generated.h"

namespace npuc::tflite {
namespace {

namespace fb = ::npuc::fe::tflite;

constexpr int64_t kMaxStep = int64_t{1} << 20;

// A window's numbers, height first.
struct Window {
  std::array<int64_t, 2> kernel;
  std::array<int64_t, 2> stride;
  std::array<int64_t, 2> dilation = {1, 1};
  bool is_same = false;
};

// The attributes strides, dilations and pads of a window over an image. SAME pads as TensorFlow
// does: as few rows as make ceil(size / stride) windows, the odd one after.
absl::StatusOr<AttrMap> WindowAttrs(const Window& window, const Shape& image) {
  Shape pads;
  for (size_t i = 0; i < 2; ++i) {
    if (window.stride[i] < 1 || window.stride[i] > kMaxStep || window.dilation[i] < 1 ||
        window.dilation[i] > kMaxStep || window.kernel[i] < 1 || window.kernel[i] > kMaxStep) {
      return absl::InvalidArgumentError(
          absl::StrCat("a window of kernel ", window.kernel[i], ", stride ", window.stride[i],
                       ", dilation ", window.dilation[i], "; each must be in 1..", kMaxStep));
    }
    const int64_t size = image[i + 1];
    const int64_t extent = (window.kernel[i] - 1) * window.dilation[i] + 1;
    const int64_t count = (size + window.stride[i] - 1) / window.stride[i];
    const int64_t total =
        window.is_same ? std::max<int64_t>((count - 1) * window.stride[i] + extent - size, 0) : 0;
    pads.push_back(total / 2);
    pads.push_back(total - total / 2);
  }
  return AttrMap{{"strides", Shape{window.stride[0], window.stride[1]}},
                 {"dilations", Shape{window.dilation[0], window.dilation[1]}},
                 {"pads", std::move(pads)}};
}

absl::Status CheckRanks(NodeImporter& node) {
  for (int i = 0; i < 2; ++i) {
    if (node.rank(i) == 4) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("operand ", i, " is ", TypeToString(node.type(i)), "; it must have rank 4"));
  }
  return absl::OkStatus();
}

// The bias, where there is one.
ValueRef BiasAt(const NodeImporter& node, int at) {
  return node.has(at) ? node.input(at) : nullptr;
}

// Weight [O,H,W,I] -> [H,W,I,O].
absl::Status ImportConv2D(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 3));
  RETURN_IF_ERROR(CheckRanks(node));
  ASSIGN_OR_RETURN(const auto* o, node.Required(node.raw().options_as_Conv2DOptions()));
  const Window window{{node.shape(1)[1], node.shape(1)[2]},
                      {o->stride_h(), o->stride_w()},
                      {o->dilation_h(), o->dilation_w()},
                      o->padding() == fb::Padding_SAME};
  ASSIGN_OR_RETURN(AttrMap attrs, WindowAttrs(window, node.shape(0)));
  ASSIGN_OR_RETURN(const ValueRef weight, node.Transposed(node.input(1), {1, 2, 3, 0}));
  return SetConvolved(node, {"Conv2D", weight, BiasAt(node, 2), o->activation()}, std::move(attrs));
}

// Weight [1,H,W,C*M] -> [H,W,C,M]. Scales for each of C*M results fit no axis of that where both
// are more than one: then it is a convolution in C groups, whose weight is [H,W,1,C*M].
absl::Status ImportDepthwise(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 3));
  RETURN_IF_ERROR(CheckRanks(node));
  ASSIGN_OR_RETURN(const auto* o, node.Required(node.raw().options_as_DepthwiseConv2DOptions()));
  const Shape& w = node.shape(1);
  const int64_t channels = node.shape(0)[3];
  if (w[0] != 1 || channels < 1 || w[3] % channels != 0) {
    return absl::InvalidArgumentError(absl::StrCat("weights ", TypeToString(node.type(1)),
                                                   " do not fit ", channels, " channels"));
  }
  const Window window{{w[1], w[2]},
                      {o->stride_h(), o->stride_w()},
                      {o->dilation_h(), o->dilation_w()},
                      o->padding() == fb::Padding_SAME};
  ASSIGN_OR_RETURN(AttrMap attrs, WindowAttrs(window, node.shape(0)));
  const int64_t multiplier = w[3] / channels;
  const auto& stored = node.input(1)->stored;
  const bool by_result = stored.has_value() && stored->params.axis >= 0;
  const bool in_groups = by_result && multiplier > 1 && channels > 1;
  ASSIGN_OR_RETURN(
      const ValueRef weight,
      node.Reshaped(node.input(1), in_groups ? Shape{w[1], w[2], 1, w[3]}
                                             : Shape{w[1], w[2], channels, multiplier}));
  return SetConvolved(
      node, {in_groups ? "Conv2D" : "DepthwiseConv2D", weight, BiasAt(node, 2), o->activation()},
      std::move(attrs));
}

// A transposed convolution as its operator states it.
struct TransposedWindow {
  int64_t stride_h = 1;
  int64_t stride_w = 1;
  bool same = false;
  int activation = fb::Activation_NONE;
};

// image [N,H,W,I] by operand 'weight_at', [O,H,W,I]; bias: operand `bias_at`, where there is one.
absl::Status SetConvolvedTransposed(NodeImporter& node, int image_at, int weight_at, int bias_at,
                                    const Shape& result, const TransposedWindow& window) {
  if (node.rank(image_at) != 4 || node.rank(weight_at) != 4 || result.size() != 4) {
    return absl::InvalidArgumentError("operands are not of rank 4");
  }
  frontend::TransposedConv conv{.stride = {window.stride_h, window.stride_w},
                                .result = {result[1], result[2]}};
  for (size_t i = 0; i < 2 && window.same; ++i) {
    const int64_t covered = (node.shape(image_at)[i + 1] - 1) * conv.stride[i] +
                            node.shape(weight_at)[i + 1] - conv.result[i];
    conv.pads_before[i] = std::max<int64_t>(covered, 0) / 2;
  }
  ASSIGN_OR_RETURN(const ValueRef weight, node.Transposed(node.input(weight_at), {1, 2, 3, 0}));
  ASSIGN_OR_RETURN(ValueRef sums,
                   frontend::ConvolvedTransposed(node, node.input(image_at), weight, conv));
  if (node.has(bias_at)) {
    ASSIGN_OR_RETURN(sums, node.Emit("Add", {sums, node.input(bias_at)}));
  }
  return node.SetActivated(std::move(sums), window.activation);
}

// Operands: the result's shape, weight, image, bias.
absl::Status ImportTransposeConv(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(3, 4));
  ASSIGN_OR_RETURN(const auto* o, node.Required(node.raw().options_as_TransposeConvOptions()));
  ASSIGN_OR_RETURN(const Shape result, node.ResultShape(0));
  return SetConvolvedTransposed(node, 2, 1, 3, result,
                                {.stride_h = o->stride_h(),
                                 .stride_w = o->stride_w(),
                                 .same = o->padding() == fb::Padding_SAME,
                                 .activation = o->activation()});
}

// MediaPipe's own operator. Operands: image, weight, bias. Its options are the bytes of the C
// struct TfLiteTransposeConvParams: padding (1 SAME, 2 VALID), stride along the width, along the
// height. Source: mediapipe/util/tflite/operations/transpose_conv_bias.cc.
absl::Status ImportTransposeConvBias(NodeImporter& node) {
  constexpr size_t kOptionsBytes = 12;
  constexpr uint32_t kSame = 1;
  constexpr uint32_t kValid = 2;
  RETURN_IF_ERROR(node.ExpectInputs(3, 3));
  const auto* bytes = node.raw().custom_options();
  if (bytes == nullptr || bytes->size() < kOptionsBytes) {
    return absl::InvalidArgumentError("its options are shorter than 12 bytes");
  }
  const auto number = [&](size_t i) {
    uint32_t value = 0;
    std::memcpy(&value, bytes->data() + sizeof(value) * i, sizeof(value));
    return value;
  };
  const uint32_t padding = number(0);
  if (padding != kSame && padding != kValid) {
    return absl::InvalidArgumentError(
        absl::StrCat("its padding is ", padding, "; it must be 1 or 2"));
  }
  const int64_t stride_w = number(1);
  const int64_t stride_h = number(2);
  if (node.rank(0) != 4 || node.rank(1) != 4) {
    return absl::InvalidArgumentError("operands are not of rank 4");
  }
  Shape result = {node.shape(0)[0], 0, 0, node.shape(1)[0]};
  for (size_t i = 1; i <= 2; ++i) {
    const int64_t stride = i == 1 ? stride_h : stride_w;
    if (stride < 1 || stride > kMaxStep) {
      return absl::InvalidArgumentError(
          absl::StrCat("its stride is ", stride, "; allowed are 1 to ", kMaxStep));
    }
    result[i] = padding == kSame ? node.shape(0)[i] * stride
                                 : (node.shape(0)[i] - 1) * stride + node.shape(1)[i];
  }
  return SetConvolvedTransposed(
      node, 0, 1, 2, result,
      {.stride_h = stride_h, .stride_w = stride_w, .same = padding == kSame});
}

absl::Status ImportPool(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  if (node.rank(0) != 4) return absl::InvalidArgumentError("pooling takes rank 4");
  ASSIGN_OR_RETURN(const auto* o, node.Required(node.raw().options_as_Pool2DOptions()));
  const Window window{{o->filter_h(), o->filter_w()},
                      {o->stride_h(), o->stride_w()},
                      {1, 1},
                      o->padding() == fb::Padding_SAME};
  ASSIGN_OR_RETURN(AttrMap attrs, WindowAttrs(window, node.shape(0)));
  attrs.erase("dilations");
  attrs["kernel"] = Shape{window.kernel[0], window.kernel[1]};
  const bool is_max = node.op() == "MAX_POOL_2D";
  return node.SetActivated(
      node.Emit(is_max ? "MaxPool" : "AvgPool", {node.input(0)}, std::move(attrs)),
      o->activation());
}

absl::Status ImportResize(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  const bool is_linear = node.op() == "RESIZE_BILINEAR";
  const auto* linear = node.raw().options_as_ResizeBilinearOptions();
  const auto* nearest = node.raw().options_as_ResizeNearestOptions();
  const bool corners = is_linear ? linear != nullptr && linear->align_corners()
                                 : nearest != nullptr && nearest->align_corners();
  const bool centers = is_linear ? linear != nullptr && linear->half_pixel_centers()
                                 : nearest != nullptr && nearest->half_pixel_centers();
  ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, node.ConstantInts(1, "size"));
  if (node.rank(0) != 4 || sizes.size() != 2) {
    return absl::InvalidArgumentError("resizing takes an image of rank 4 and two sizes");
  }
  return node.SetOutput(frontend::ResizedImage(node, node.input(0),
                                               {.is_linear = is_linear,
                                                .align_corners = corners,
                                                .half_pixel_centers = centers,
                                                .size = {sizes[0], sizes[1]}}));
}

constexpr ImportRule kWindowRules[] = {
    {"AVERAGE_POOL_2D", ImportPool},         {"CONV_2D", ImportConv2D},
    {"DEPTHWISE_CONV_2D", ImportDepthwise},  {"MAX_POOL_2D", ImportPool},
    {"RESIZE_BILINEAR", ImportResize},       {"RESIZE_NEAREST_NEIGHBOR", ImportResize},
    {"TRANSPOSE_CONV", ImportTransposeConv},
};

constexpr ImportRule kCustomRules[] = {{"Convolution2DTransposeBias", ImportTransposeConvBias}};

}  // namespace

absl::Span<const ImportRule> WindowRules() { return kWindowRules; }
absl::Span<const ImportRule> CustomWindowRules() { return kCustomRules; }

}  // namespace npuc::tflite
