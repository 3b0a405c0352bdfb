// Convolutions and pooling.
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/caffe/node_import.h"
#include "compiler_core/frontends/common/windows.h"

namespace npuc::caffe {
namespace {

constexpr int64_t kMaxWindow = int64_t{1} << 20;

// A number for each spatial dimension: a list under `list`, one value of which stands for all; or
// for two dimensions one under each of `height` and `width`.
absl::StatusOr<std::vector<int64_t>> ReadSpatial(LayerImporter& node, absl::string_view list,
                                                 absl::string_view height, absl::string_view width,
                                                 size_t count, int64_t fallback, int64_t lo) {
  ASSIGN_OR_RETURN(std::vector<int64_t> values, node.IntsOr(list, {}));
  const bool has_pair = node.node().Has(height) || node.node().Has(width);
  if (has_pair && (count != 2 || !values.empty())) {
    return node.BadAttribute(absl::InvalidArgumentError(
        absl::StrCat("parameters '", height, "' and '", width, "' are given beside '", list,
                     "', or for ", count, " spatial dimensions")));
  }
  if (has_pair) {
    ASSIGN_OR_RETURN(const int64_t h, node.BoundedOr(height, fallback, lo));
    ASSIGN_OR_RETURN(const int64_t w, node.BoundedOr(width, fallback, lo));
    return std::vector<int64_t>{h, w};
  }
  if (values.empty()) values = {fallback};
  if (values.size() == 1) values.assign(count, values[0]);
  const bool is_bounded = std::all_of(values.begin(), values.end(),
                                      [&](int64_t v) { return v >= lo && v <= kMaxWindow; });
  if (values.size() == count && is_bounded) return values;
  return node.BadAttribute(absl::InvalidArgumentError(
      absl::StrCat("parameter '", list, "' has ", values.size(), " values; allowed are one or ",
                   count, ", each from ", lo, " to ", kMaxWindow)));
}

absl::StatusOr<frontend::WindowAttrs> ReadWindow(LayerImporter& node, size_t spatial) {
  frontend::WindowAttrs window;
  ASSIGN_OR_RETURN(window.kernel,
                   ReadSpatial(node, "kernel_size", "kernel_h", "kernel_w", spatial, 0, 1));
  ASSIGN_OR_RETURN(window.strides,
                   ReadSpatial(node, "stride", "stride_h", "stride_w", spatial, 1, 1));
  ASSIGN_OR_RETURN(window.before, ReadSpatial(node, "pad", "pad_h", "pad_w", spatial, 0, 0));
  window.after = window.before;
  window.dilations.assign(spatial, 1);
  return window;
}

// The parameters and blobs of a convolution in either direction.
struct Convolution {
  frontend::WindowAttrs window;
  int64_t groups = 1;
  ValueRef weight;
  ValueRef bias;  // or null
};

absl::StatusOr<Convolution> ReadConvolution(LayerImporter& node, bool is_forward) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  if (node.rank(0) < 3 || node.rank(0) > 5) {
    return node.FailMode(absl::StrCat("the bottom is ", TypeToString(node.type(0)),
                                      "; it must have one to three spatial dimensions"),
                         "declare the input in INPUT_OPS with such a shape");
  }
  ASSIGN_OR_RETURN(const int64_t axis, node.IntOr("axis", 1));
  if (axis != 1 && axis != 1 - node.rank(0)) {
    return node.FailMode(absl::StrCat("axis ", axis), "convolve with the channels as axis 1");
  }
  const size_t spatial = static_cast<size_t>(node.rank(0) - 2);
  const int64_t channels = node.shape(0)[1];
  Convolution conv;
  ASSIGN_OR_RETURN(conv.window, ReadWindow(node, spatial));
  ASSIGN_OR_RETURN(conv.window.dilations,
                   ReadSpatial(node, "dilation", "dilation_h", "dilation_w", spatial, 1, 1));
  // The forks' layers for one channel a group may leave the groups out.
  const bool is_depthwise = absl::StrContains(node.op(), "Depthwise");
  ASSIGN_OR_RETURN(conv.groups, node.BoundedOr("group", is_depthwise ? channels : 1, 1));
  ASSIGN_OR_RETURN(const int64_t outputs, node.BoundedOr("num_output", 0, 1));
  if (channels % conv.groups != 0 || outputs % conv.groups != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(conv.groups, " groups of ", channels, " channels that become ", outputs));
  }
  ASSIGN_OR_RETURN(const bool has_bias, node.BoolOr("bias_term", true));
  RETURN_IF_ERROR(node.ExpectBlobs(has_bias ? 2 : 1));
  Shape shape =
      is_forward ? Shape{outputs, channels / conv.groups} : Shape{channels, outputs / conv.groups};
  shape.insert(shape.end(), conv.window.kernel.begin(), conv.window.kernel.end());
  ASSIGN_OR_RETURN(conv.weight, node.Blob(0, "weight", std::move(shape)));
  if (has_bias) {
    ASSIGN_OR_RETURN(conv.bias, node.Blob(1, "bias", {outputs}));
  }
  return conv;
}

absl::Status ImportConvolution(LayerImporter& node) {
  ASSIGN_OR_RETURN(const Convolution conv, ReadConvolution(node, true));
  ASSIGN_OR_RETURN(const ValueRef weight, frontend::WeightLast(node, conv.weight));
  ASSIGN_OR_RETURN(const ValueRef x, frontend::ChannelsLast(node, node.input(0)));
  ASSIGN_OR_RETURN(const ValueRef y, frontend::Convolved(node, x, weight, conv.bias, conv.window));
  return node.SetOutput(frontend::ChannelsFirst(node, y));
}

absl::Status ImportDeconvolution(LayerImporter& node) {
  ASSIGN_OR_RETURN(const Convolution conv, ReadConvolution(node, false));
  ASSIGN_OR_RETURN(const ValueRef x, frontend::ChannelsLast(node, node.input(0)));
  ASSIGN_OR_RETURN(const ValueRef y, frontend::ConvolvedBack(node, x, conv.weight, conv.bias,
                                                             conv.groups, conv.window));
  return node.SetOutput(frontend::ChannelsFirst(node, y));
}

// Caffe rounds the number of windows up unless told otherwise, and leaves the last one out where it
// would begin behind the image and its first padding. Source: BVLC/caffe pooling_layer.cpp,
// Reshape. Sets how far the last window reaches beyond the image as `after`.
absl::Status FitWindows(LayerImporter& node, bool rounds_up, frontend::WindowAttrs& window) {
  const bool has_pads =
      std::any_of(window.before.begin(), window.before.end(), [](int64_t pad) { return pad > 0; });
  for (size_t i = 0; i < 2; ++i) {
    const int64_t size = node.shape(0)[i + 2];
    const int64_t pad = window.before[i];
    const int64_t stride = window.strides[i];
    const int64_t room = size + 2 * pad - window.kernel[i];
    if (pad >= window.kernel[i] || room < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("a window of ", window.kernel[i], " with a pad of ", pad, " over ", size));
    }
    int64_t last = (rounds_up ? room + stride - 1 : room) / stride;
    if (has_pads && last * stride >= size + pad) --last;
    if (last * stride >= size + pad) {
      return node.FailMode("its last window lies behind the image", "pool with a smaller stride");
    }
    window.after[i] = std::max<int64_t>(last * stride + window.kernel[i] - size - pad, 0);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> RoundsUp(LayerImporter& node) {
  constexpr absl::string_view kModes[] = {"CEIL", "FLOOR"};
  ASSIGN_OR_RETURN(const int64_t mode, node.ChoiceOr("round_mode", kModes, 0));
  return node.BoolOr("ceil_mode", mode == 0);  // of a fork
}

absl::Status ImportPooling(LayerImporter& node) {
  constexpr absl::string_view kMethods[] = {"MAX", "AVE", "STOCHASTIC"};
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  if (node.rank(0) != 4) {
    return absl::InvalidArgumentError(
        absl::StrCat("the bottom is ", TypeToString(node.type(0)), "; it must be an image"));
  }
  ASSIGN_OR_RETURN(const int64_t method, node.ChoiceOr("pool", kMethods, 0));
  if (method == 2) return node.FailMode("stochastic pooling", "pool by MAX or AVE");
  const bool is_max = method == 0;
  ASSIGN_OR_RETURN(const bool is_global, node.BoolOr("global_pooling", false));
  ASSIGN_OR_RETURN(const bool rounds_up, RoundsUp(node));
  if (is_global) {
    for (const absl::string_view ignored : {"kernel_size", "kernel_h", "kernel_w", "stride",
                                            "stride_h", "stride_w", "pad", "pad_h", "pad_w"}) {
      (void)node.node().Has(ignored);
    }
    return node.SetOutput(
        node.Reduced(is_max ? "ReduceMax" : "ReduceMean", node.input(0), {2, 3}, true));
  }
  ASSIGN_OR_RETURN(frontend::WindowAttrs window, ReadWindow(node, 2));
  RETURN_IF_ERROR(FitWindows(node, rounds_up, window));
  ASSIGN_OR_RETURN(ValueRef y, frontend::ChannelsLast(node, node.input(0)));
  // An average counts the padding, and nothing beyond it.
  frontend::CountedPads counted{.before = window.before, .after = window.before};
  for (size_t i = 0; i < 2; ++i) counted.after[i] = std::min(counted.after[i], window.after[i]);
  if (is_max) {
    ASSIGN_OR_RETURN(y, frontend::MaxPooled(node, y, window));
  } else {
    ASSIGN_OR_RETURN(y, frontend::AveragePooled(node, y, window, counted));
  }
  return node.SetOutput(frontend::ChannelsFirst(node, y));
}

constexpr ImportRule kWindowRules[] = {
    {"Convolution", ImportConvolution},
    {"ConvolutionDepthwise", ImportConvolution},
    {"Deconvolution", ImportDeconvolution},
    {"DepthwiseConvolution", ImportConvolution},
    {"Pooling", ImportPooling},
};

}  // namespace

absl::Span<const ImportRule> WindowRules() { return kWindowRules; }

}  // namespace npuc::caffe
