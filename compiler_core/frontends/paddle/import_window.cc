// Convolutions, pooling and resizing.
#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/resize.h"
#include "compiler_core/frontends/common/windows.h"
#include "compiler_core/frontends/paddle/op_import.h"

namespace npuc::paddle {
namespace {

using frontend::WindowAttrs;

constexpr int64_t kMaxWindow = int64_t{1} << 20;

absl::StatusOr<ValueRef> ToLast(OpImporter& node, const ValueRef& x, bool is_last) {
  if (is_last) return x;
  return ChannelsLast(node, x);
}
absl::StatusOr<ValueRef> FromLast(OpImporter& node, absl::StatusOr<ValueRef> y, bool is_last) {
  if (is_last || !y.ok()) return y;
  return ChannelsFirst(node, *y);
}

absl::Status CheckNumbers(absl::string_view name, const std::vector<int64_t>& values, size_t count,
                          int64_t lo) {
  const bool fits =
      values.size() == count && std::all_of(values.begin(), values.end(),
                                            [lo](int64_t v) { return v >= lo && v <= kMaxWindow; });
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " is ", ShapeToString(values),
                                                 "; it must have ", count, " numbers from ", lo,
                                                 " to ", kMaxWindow));
}

// strides, dilations, paddings and padding_algorithm of windows of `kernel` over `spatial`.
absl::StatusOr<WindowAttrs> ReadWindow(OpImporter& node, absl::Span<const int64_t> spatial,
                                       std::vector<int64_t> kernel) {
  const size_t count = spatial.size();
  const std::vector<int64_t> ones(count, 1);
  WindowAttrs w;
  w.kernel = std::move(kernel);
  RETURN_IF_ERROR(CheckNumbers("the window", w.kernel, count, 1));
  ASSIGN_OR_RETURN(w.strides, node.IntsOr("strides", ones));
  RETURN_IF_ERROR(CheckNumbers("strides", w.strides, count, 1));
  ASSIGN_OR_RETURN(w.dilations, node.IntsOr("dilations", ones));
  RETURN_IF_ERROR(CheckNumbers("dilations", w.dilations, count, 1));
  ASSIGN_OR_RETURN(std::vector<int64_t> pads,
                   node.IntsOr("paddings", std::vector<int64_t>(count, 0)));
  if (pads.size() == count) {  // one number for both sides
    std::vector<int64_t> both;
    for (const int64_t pad : pads) both.insert(both.end(), 2, pad);
    pads = std::move(both);
  }
  RETURN_IF_ERROR(CheckNumbers("paddings", pads, 2 * count, 0));
  ASSIGN_OR_RETURN(const std::string algorithm, node.StringOr("padding_algorithm", "EXPLICIT"));
  for (size_t i = 0; i < count; ++i) {
    if (algorithm == "SAME") w.dilations[i] = 1;  // as Paddle does
    const int64_t results = (spatial[i] + w.strides[i] - 1) / w.strides[i];
    const int64_t total =
        std::max<int64_t>((results - 1) * w.strides[i] + w.kernel[i] - spatial[i], 0);
    w.before.push_back(algorithm == "SAME" ? total / 2 : pads[2 * i]);
    w.after.push_back(algorithm == "SAME" ? total - total / 2 : pads[2 * i + 1]);
    if (algorithm == "VALID") w.before[i] = w.after[i] = 0;
  }
  return w;
}

// The spatial dimensions of x.
std::vector<int64_t> SpatialOf(const Shape& x, bool is_last) {
  const auto first = x.begin() + (is_last ? 1 : 2);
  return {first, first + static_cast<std::ptrdiff_t>(x.size()) - 2};
}

absl::Status CheckConvolution(OpImporter& node, const ValueRef& x, const ValueRef& filter) {
  const size_t rank = x->type.shape.size();
  if (rank >= 3 && rank <= 5 && filter->type.shape.size() == rank) return absl::OkStatus();
  return node.FailMode(
      absl::StrCat("operands ", TypeToString(x->type), " and ", TypeToString(filter->type),
                   "; both must have one to three spatial dimensions"),
      "export the model with convolutions of that form");
}

absl::Status ImportConv(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef x, node.In("Input"));
  ASSIGN_OR_RETURN(const ValueRef filter, node.In("Filter"));
  RETURN_IF_ERROR(CheckConvolution(node, x, filter));
  ASSIGN_OR_RETURN(const bool is_last, IsChannelsLast(node, "data_format"));
  ASSIGN_OR_RETURN(const int64_t groups, node.IntOr("groups", 1));
  const Shape in = x->type.shape;
  const Shape kernel = filter->type.shape;  // [o,c/groups,kernel...]
  const int64_t channels = is_last ? in.back() : in[1];
  if (groups < 1 || groups > kMaxElements || kernel[1] * groups != channels ||
      kernel[0] % groups != 0) {
    return absl::InvalidArgumentError(absl::StrCat("the operand is ", TypeToString(x->type),
                                                   ", the filter ", TypeToString(filter->type),
                                                   " and the groups are ", groups));
  }
  ASSIGN_OR_RETURN(const WindowAttrs w,
                   ReadWindow(node, SpatialOf(in, is_last), {kernel.begin() + 2, kernel.end()}));
  ASSIGN_OR_RETURN(const ValueRef weight, WeightLast(node, filter));
  ASSIGN_OR_RETURN(const ValueRef last, ToLast(node, x, is_last));
  return node.Give(
      "Output", FromLast(node, Convolved(node, last, weight, node.Optional("Bias"), w), is_last));
}

absl::Status ImportConvTranspose(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef x, node.In("Input"));
  ASSIGN_OR_RETURN(const ValueRef filter, node.In("Filter"));
  RETURN_IF_ERROR(CheckConvolution(node, x, filter));
  ASSIGN_OR_RETURN(const bool is_last, IsChannelsLast(node, "data_format"));
  ASSIGN_OR_RETURN(const int64_t groups, node.IntOr("groups", 1));
  const Shape in = x->type.shape;
  const Shape kernel = filter->type.shape;  // [c,o/groups,kernel...]
  const int64_t channels = is_last ? in.back() : in[1];
  if (groups < 1 || groups > kMaxElements || kernel[0] != channels || channels % groups != 0) {
    return absl::InvalidArgumentError(absl::StrCat("the operand is ", TypeToString(x->type),
                                                   ", the filter ", TypeToString(filter->type),
                                                   " and the groups are ", groups));
  }
  const std::vector<int64_t> spatial = SpatialOf(in, is_last);
  ASSIGN_OR_RETURN(WindowAttrs w, ReadWindow(node, spatial, {kernel.begin() + 2, kernel.end()}));
  ASSIGN_OR_RETURN(std::vector<int64_t> extra, node.IntsOr("output_padding", {}));
  ASSIGN_OR_RETURN(const std::vector<int64_t> wanted,
                   node.IntsAt("OutputSizeTensor", "OutputSizeTensorList", "output_size"));
  if (extra.empty()) extra.assign(spatial.size(), 0);
  RETURN_IF_ERROR(CheckNumbers("output_padding", extra, spatial.size(), 0));
  if (!wanted.empty()) RETURN_IF_ERROR(CheckNumbers("output_size", wanted, spatial.size(), 1));
  for (size_t i = 0; i < spatial.size(); ++i) {
    if (w.strides[i] > 64) return absl::InvalidArgumentError("a stride above 64");
    const int64_t natural =
        (spatial[i] - 1) * w.strides[i] + w.Extent(i) - w.before[i] - w.after[i];
    w.after[i] -= wanted.empty() ? extra[i] : wanted[i] - natural;
  }
  ASSIGN_OR_RETURN(const ValueRef last, ToLast(node, x, is_last));
  return node.Give(
      "Output",
      FromLast(node, ConvolvedBack(node, last, filter, node.Optional("Bias"), groups, w), is_last));
}

// Averages or maxima over bins that share an image evenly; bins of unlike sizes are refused.
absl::StatusOr<WindowAttrs> AdaptiveWindow(OpImporter& node, absl::Span<const int64_t> spatial,
                                           const std::vector<int64_t>& results) {
  RETURN_IF_ERROR(CheckNumbers("ksize", results, spatial.size(), 1));
  WindowAttrs w;
  for (size_t i = 0; i < spatial.size(); ++i) {
    if (spatial[i] % results[i] != 0) {
      return node.FailMode(absl::StrCat("adaptive pooling of ", spatial[i], " places to ",
                                        results[i], ", in windows of unlike sizes"),
                           "choose an input size that the results divide");
    }
    w.kernel.push_back(spatial[i] / results[i]);
  }
  w.strides = w.kernel;
  w.dilations.assign(spatial.size(), 1);
  w.before.assign(spatial.size(), 0);
  w.after.assign(spatial.size(), 0);
  return w;
}

// With ceil_mode the last window may go beyond the padding; Paddle keeps one that begins there.
void GrowPads(absl::Span<const int64_t> spatial, WindowAttrs& w) {
  for (size_t i = 0; i < spatial.size(); ++i) {
    const int64_t room = spatial[i] + w.before[i] + w.after[i] - w.kernel[i];
    if (room > 0 && room % w.strides[i] != 0) w.after[i] += w.strides[i] - room % w.strides[i];
  }
}

// The padding that an average without `exclusive` counts. Paddle of before 2.0 divides by the whole
// window. From 2.2 on its windows end where as much padding as in front of the operand ends behind
// it (Pool2dFunctor in phi/kernels/funcs/pooling.cc).
absl::StatusOr<frontend::CountedPads> CountedOf(OpImporter& node, absl::Span<const int64_t> spatial,
                                                const WindowAttrs& w) {
  const frontend::CountedPads whole{w.before, w.after};
  frontend::CountedPads cut = whole;
  bool differs = false;
  for (size_t i = 0; i < spatial.size(); ++i) {
    const int64_t padded = spatial[i] + w.before[i] + w.after[i];
    const int64_t unread = std::max<int64_t>(padded - w.kernel[i], 0) % w.strides[i];
    differs = differs || w.after[i] - unread > w.before[i];
    cut.after[i] = std::min(w.before[i], w.after[i]);
  }
  const int64_t version = node.node().version();
  if (!differs || (version > 0 && version < 2000000)) return whole;
  if (version >= 2002000) return cut;
  return node.FailMode(
      "an average with exclusive = False of windows beyond the padding, which versions of Paddle "
      "divide by unlike numbers",
      "export the model with Paddle 2.2 or later");
}

absl::Status ImportPool(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef x, node.In("X"));
  if (node.ResultCount("Mask") > 0 && node.node().type() != "max_pool2d_with_index") {
    return node.FailMode("the places of the maxima", "export the model without them");
  }
  ASSIGN_OR_RETURN(const bool is_last, IsChannelsLast(node, "data_format"));
  ASSIGN_OR_RETURN(const std::string type, node.StringOr("pooling_type", "max"));
  ASSIGN_OR_RETURN(const bool adaptive, node.BoolOr("adaptive", false));
  ASSIGN_OR_RETURN(const bool global, node.BoolOr("global_pooling", false));
  ASSIGN_OR_RETURN(const bool ceil, node.BoolOr("ceil_mode", false));
  ASSIGN_OR_RETURN(const bool exclusive, node.BoolOr("exclusive", true));
  ASSIGN_OR_RETURN(const std::vector<int64_t> ksize, node.IntsOr("ksize", {}));
  const size_t rank = x->type.shape.size();
  if (rank < 3 || rank > 5 || (type != "max" && type != "avg")) {
    return node.FailMode(
        absl::StrCat("pooling '", Printable(type, 20), "' of ", TypeToString(x->type)),
        "use max or avg over one to three spatial dimensions");
  }
  const std::vector<int64_t> spatial = SpatialOf(x->type.shape, is_last);
  std::vector<int64_t> axes;
  for (size_t i = 0; i < spatial.size(); ++i) {
    axes.push_back(static_cast<int64_t>(i) + (is_last ? 1 : 2));
  }
  const bool is_whole = global || (adaptive && std::all_of(ksize.begin(), ksize.end(),
                                                           [](int64_t k) { return k == 1; }));
  if (is_whole) {
    return node.Give("Out",
                     node.Reduced(type == "max" ? "ReduceMax" : "ReduceMean", x, axes, true));
  }
  WindowAttrs w;
  if (adaptive) {
    ASSIGN_OR_RETURN(w, AdaptiveWindow(node, spatial, ksize));
  } else {
    ASSIGN_OR_RETURN(w, ReadWindow(node, spatial, ksize));
    w.dilations.assign(spatial.size(), 1);
  }
  if (ceil && !adaptive) GrowPads(spatial, w);
  const std::vector<int64_t> none(spatial.size(), 0);
  frontend::CountedPads counted{none, none};
  if (type == "avg" && !exclusive) {
    ASSIGN_OR_RETURN(counted, CountedOf(node, spatial, w));
  }
  ASSIGN_OR_RETURN(const ValueRef last, ToLast(node, x, is_last));
  return node.Give("Out", FromLast(node,
                                   type == "max" ? MaxPooled(node, last, w)
                                                 : AveragePooled(node, last, w, counted),
                                   is_last));
}

// The sizes of the result, one a spatial dimension: operands first, then the scale, then numbers.
absl::StatusOr<std::vector<int64_t>> ResultSizes(OpImporter& node, const std::vector<int64_t>& in,
                                                 std::vector<double>& scales) {
  ASSIGN_OR_RETURN(std::vector<int64_t> sizes, node.IntsAt("OutSize", "SizeTensor", ""));
  ASSIGN_OR_RETURN(std::vector<double> scale, node.FloatsOr("scale", {}));
  if (node.Takes("Scale")) {
    ASSIGN_OR_RETURN(scale, node.ConstantFloats(node.At("Scale"), "Scale"));
  }
  if (scale.size() == 1) scale.assign(in.size(), scale[0]);
  const bool has_scale = scale.size() == in.size() &&
                         std::all_of(scale.begin(), scale.end(), [](double s) { return s > 0; });
  if (sizes.empty() && has_scale) {
    scales = scale;
    for (size_t i = 0; i < in.size(); ++i) {
      const float size = static_cast<float>(in[i]) * static_cast<float>(scale[i]);  // as Paddle
      if (!(size >= 1 && size <= kMaxElements)) return absl::InvalidArgumentError("a wild scale");
      sizes.push_back(static_cast<int64_t>(size));
    }
  }
  constexpr absl::string_view kKeys[] = {"out_d", "out_h", "out_w"};
  for (size_t i = 0; sizes.size() < in.size(); ++i) {
    ASSIGN_OR_RETURN(const int64_t size, node.IntOr(kKeys[i + 3 - in.size()], -1));
    sizes.push_back(size);
  }
  RETURN_IF_ERROR(CheckNumbers("the result's size", sizes, in.size(), 1));
  return sizes;
}

// Paddle steps by 0 places towards a single result, so that it is at the operand's beginning:
// interpolate_op.h and phi/kernels/cpu/interpolate_kernel.cc of 2.x. 3.x steps by the sizes.
absl::Status CheckSingle(OpImporter& node, const frontend::ResizeMode& mode) {
  const int64_t version = node.node().version();
  const bool is_old = !absl::EndsWith(node.node().type(), "_v2");
  if (mode.coordinates != "half_pixel" || is_old || (version > 0 && version < 3000000)) {
    return absl::OkStatus();
  }
  return node.FailMode(
      "resizing to one place by the middles of places, which versions of Paddle do differently",
      "export the model with Paddle 2.x, or with align_mode 1");
}

// align_corners; else align_mode 1 maps by the scale alone, 0 by the middles of places. Nearest
// knows no middles: it rounds down, with align_corners to the nearest. Only operators of 2.x step
// by 1 / scale; those of 1.x do by the sizes.
absl::Status ImportInterp(OpImporter& node) {
  ASSIGN_OR_RETURN(ValueRef x, node.In("X"));
  ASSIGN_OR_RETURN(const bool is_last, IsChannelsLast(node, "data_layout"));
  ASSIGN_OR_RETURN(const bool corners, node.BoolOr("align_corners", true));
  ASSIGN_OR_RETURN(const int64_t align_mode, node.IntOr("align_mode", 1));
  const size_t rank = x->type.shape.size();
  if (rank < 3 || rank > 5) return absl::InvalidArgumentError("resizing takes an image");
  const absl::string_view type = node.node().type();
  frontend::ResizeMode mode;
  const bool is_nearest = absl::StartsWith(type, "nearest");
  mode.mode = is_nearest ? "nearest" : absl::StartsWith(type, "bicubic") ? "cubic" : "linear";
  const bool by_middles = mode.mode == "cubic" || (!is_nearest && align_mode == 0);
  mode.coordinates = corners ? "align_corners" : by_middles ? "half_pixel" : "asymmetric";
  mode.in_float32 = is_nearest;
  const std::vector<int64_t> in = SpatialOf(x->type.shape, is_last);
  std::vector<double> scales;
  ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, ResultSizes(node, in, scales));
  if (sizes == in) return node.Give("Out", std::move(x));  // whatever the scales are
  for (size_t i = 0; i < in.size(); ++i) {
    frontend::ResizeAxis axis{.in = in[i], .out = sizes[i]};
    const bool by_scale = i < scales.size() && absl::EndsWith(type, "_v2");
    axis.scale = by_scale ? scales[i] : static_cast<double>(sizes[i]) / static_cast<double>(in[i]);
    if (sizes[i] == in[i] && (corners || axis.scale == 1)) continue;
    if (sizes[i] == 1) {
      RETURN_IF_ERROR(CheckSingle(node, mode));
      axis.scale = std::numeric_limits<double>::infinity();
    }
    ASSIGN_OR_RETURN(x, ResizeAlong(node, std::move(x), i + (is_last ? 1 : 2), mode, axis));
  }
  return node.Give("Out", std::move(x));
}

constexpr ImportRule kWindowRules[] = {
    {"bicubic_interp", ImportInterp},
    {"bicubic_interp_v2", ImportInterp},
    {"bilinear_interp", ImportInterp},
    {"bilinear_interp_v2", ImportInterp},
    {"conv2d", ImportConv},
    {"conv2d_transpose", ImportConvTranspose},
    {"conv3d", ImportConv},
    {"depthwise_conv2d", ImportConv},
    {"depthwise_conv2d_transpose", ImportConvTranspose},
    {"linear_interp", ImportInterp},
    {"linear_interp_v2", ImportInterp},
    {"max_pool2d_with_index", ImportPool},
    {"nearest_interp", ImportInterp},
    {"nearest_interp_v2", ImportInterp},
    {"pool2d", ImportPool},
    {"pool3d", ImportPool},
};

}  // namespace

absl::Span<const ImportRule> WindowRules() { return kWindowRules; }

}  // namespace npuc::paddle
