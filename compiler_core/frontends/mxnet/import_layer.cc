// Layers with weights, pooling and resizing.
#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/gather.h"
#include "compiler_core/frontends/common/image.h"
#include "compiler_core/frontends/common/selection.h"
#include "compiler_core/frontends/mxnet/window_attrs.h"

namespace npuc::mxnet {
namespace {

using frontend::CountedPads;
using frontend::WindowAttrs;

// data, weight and, unless no_bias, bias.
absl::StatusOr<ValueRef> BiasOf(NodeImporter& node, bool no_bias_by_default) {
  ASSIGN_OR_RETURN(const bool no_bias, node.BoolOr("no_bias", no_bias_by_default));
  RETURN_IF_ERROR(node.ExpectInputs(no_bias ? 2 : 3, no_bias ? 2 : 3));
  if (no_bias) return ValueRef();
  return node.input(2);
}

absl::Status WrongWeight(NodeImporter& node, absl::string_view wanted) {
  return absl::InvalidArgumentError(absl::StrCat("the weight is ", TypeToString(node.type(1)),
                                                 " and the operand ", TypeToString(node.type(0)),
                                                 "; by its attributes the weight is ", wanted));
}

struct ConvAttrs {
  Layout layout;
  WindowAttrs window;
  int64_t groups = 1;
  int64_t filters = 0;
  int64_t channels = 0;
};

absl::StatusOr<ConvAttrs> ReadConv(NodeImporter& node) {
  ConvAttrs conv;
  ASSIGN_OR_RETURN(conv.layout, ReadLayout(node));
  ASSIGN_OR_RETURN(conv.window, ReadWindow(node, conv.layout.spatial));
  ASSIGN_OR_RETURN(conv.groups, node.IntOr("num_group", 1));
  ASSIGN_OR_RETURN(conv.filters, node.RequiredInt("num_filter"));
  conv.channels = conv.layout.is_channels_last ? node.shape(0).back() : node.shape(0)[1];
  const auto is_size = [](int64_t v) { return v >= 1 && v <= kMaxElements; };
  if (is_size(conv.groups) && is_size(conv.filters) && conv.filters % conv.groups == 0 &&
      conv.channels % conv.groups == 0) {
    return conv;
  }
  return absl::InvalidArgumentError(absl::StrCat(conv.filters, " filters in ", conv.groups,
                                                 " groups over ", conv.channels, " channels"));
}

// The weight of the attributes, [first, second / groups, kernel...], or channels last.
Shape WeightShape(const ConvAttrs& conv, int64_t first, int64_t second) {
  Shape shape = {first};
  if (!conv.layout.is_channels_last) shape.push_back(second / conv.groups);
  shape.insert(shape.end(), conv.window.kernel.begin(), conv.window.kernel.end());
  if (conv.layout.is_channels_last) shape.push_back(second / conv.groups);
  return shape;
}

absl::Status ImportConvolution(NodeImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef bias, BiasOf(node, false));
  ASSIGN_OR_RETURN(const ConvAttrs conv, ReadConv(node));
  const Shape wanted = WeightShape(conv, conv.filters, conv.channels);
  if (node.shape(1) != wanted) return WrongWeight(node, ShapeToString(wanted));
  ValueRef weight = node.input(1);
  if (conv.layout.is_channels_last) {
    ASSIGN_OR_RETURN(weight, ChannelsFirst(node, weight));
  }
  ASSIGN_OR_RETURN(weight, WeightLast(node, weight));
  ASSIGN_OR_RETURN(const ValueRef x, ToChannelsLast(node, conv.layout));
  ASSIGN_OR_RETURN(const ValueRef y, Convolved(node, x, weight, bias, conv.window));
  return node.SetOutput(FromChannelsLast(node, conv.layout, y));
}

// The places that the full result of stride * (n - 1) + extent places loses in front and behind.
absl::Status ReadTransposedPads(NodeImporter& node, const Shape& spatial, WindowAttrs& w) {
  const size_t count = spatial.size();
  ASSIGN_OR_RETURN(std::vector<int64_t> extra, SpatialList(node, "adj", count, 0, 0));
  ASSIGN_OR_RETURN(const std::vector<int64_t> target,
                   SpatialList(node, "target_shape", count, 0, 0));
  const bool has_target =
      std::any_of(target.begin(), target.end(), [](int64_t size) { return size != 0; });
  for (size_t i = 0; i < count; ++i) {
    if (has_target) {
      const int64_t total = w.strides[i] * (spatial[i] - 1) + w.Extent(i) - target[i];
      if (total < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("target_shape ", ShapeToString(target), " is more than there is"));
      }
      extra[i] = total % 2;
      w.before[i] = w.after[i] = (total + 1) / 2;
    }
    w.after[i] -= extra[i];
  }
  return absl::OkStatus();
}

absl::Status ImportDeconvolution(NodeImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef bias, BiasOf(node, true));
  ASSIGN_OR_RETURN(ConvAttrs conv, ReadConv(node));
  if (conv.layout.is_channels_last) return node.FailMode("layout NHWC", "use NCHW");
  const Shape wanted = WeightShape(conv, conv.channels, conv.filters);
  if (node.shape(1) != wanted) return WrongWeight(node, ShapeToString(wanted));
  const Shape spatial(node.shape(0).begin() + 2, node.shape(0).end());
  RETURN_IF_ERROR(ReadTransposedPads(node, spatial, conv.window));
  ASSIGN_OR_RETURN(const ValueRef x, ToChannelsLast(node, conv.layout));
  ASSIGN_OR_RETURN(const ValueRef y,
                   ConvolvedBack(node, x, node.input(1), bias, conv.groups, conv.window));
  return node.SetOutput(ChannelsFirst(node, y));
}

absl::Status ImportFullyConnected(NodeImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef bias, BiasOf(node, false));
  ASSIGN_OR_RETURN(const bool flatten, node.BoolOr("flatten", true));
  ASSIGN_OR_RETURN(const int64_t hidden, node.RequiredInt("num_hidden"));
  if (node.rank(0) < 1) return absl::InvalidArgumentError("the operand is a scalar");
  ValueRef x = node.input(0);
  if (flatten) {
    const int64_t items = node.shape(0)[0];
    ASSIGN_OR_RETURN(
        x, node.Reshaped(x, {items, node.type(0).element_count() / std::max<int64_t>(items, 1)}));
  }
  const Shape wanted = {hidden, x->type.shape.back()};
  if (node.shape(1) != wanted) return WrongWeight(node, ShapeToString(wanted));
  ValueRef weight = node.input(1);
  const bool turns = !node.IsConstant(1);  // a constant is turned in advance
  if (!turns) {
    ASSIGN_OR_RETURN(weight, node.Transposed(weight, {1, 0}));
  }
  ASSIGN_OR_RETURN(ValueRef y, node.Emit("MatMul", {x, weight}, {{"transpose_b", turns}}));
  if (bias != nullptr) {
    ASSIGN_OR_RETURN(y, node.Emit("Add", {y, bias}));
  }
  return node.SetOutput(std::move(y));
}

// Windows by pooling_convention: "valid" drops what does not fill one, "full" takes one more for
// the rest, which ends at the padded operand (src/operator/nn/pooling.cc, pool.h).
absl::Status GrowToFull(NodeImporter& node, const Shape& spatial, WindowAttrs& w) {
  ASSIGN_OR_RETURN(const std::string convention, node.StringOr("pooling_convention", "valid"));
  if (convention == "valid") return absl::OkStatus();
  if (convention != "full")
    return node.BadChoice("pooling_convention", convention, "valid or full");
  for (size_t i = 0; i < spatial.size(); ++i) {
    const int64_t room = spatial[i] + 2 * w.before[i] - w.kernel[i];
    if (room <= 0 || room % w.strides[i] == 0) continue;
    const int64_t last = (room / w.strides[i] + 1) * w.strides[i];
    if (last >= spatial[i] + w.before[i]) {
      return node.FailMode("its last window lies behind the operand, where MXNet divides by zero",
                           "use a stride that is not wider than the kernel, or less padding");
    }
    w.after[i] += last - room;
  }
  return absl::OkStatus();
}

absl::StatusOr<ValueRef> Pooled(NodeImporter& node, const std::string& type, const ValueRef& x,
                                const WindowAttrs& w, const CountedPads& counted) {
  if (type == "max") return MaxPooled(node, x, w);
  if (type == "avg") return AveragePooled(node, x, w, counted);
  if (type == "sum") return SumPooled(node, x, w);
  ASSIGN_OR_RETURN(const int64_t p, node.RequiredInt("p_value"));
  if (type != "lp" || p < 1 || p > 3) {
    return node.BadChoice("pool_type", type, "max, avg, sum, or lp with a p_value from 1 to 3");
  }
  // Powers keep their signs, and so does the root of 3 (pool_utils.h).
  if (p == 1) return SumPooled(node, x, w);
  const Term sizes = Apply("Abs", Term(node, x));
  Term powers = Pow(sizes, 2);
  if (p == 3) powers = powers * Term(node, x);
  RETURN_IF_ERROR(powers.value.status());
  ASSIGN_OR_RETURN(const ValueRef sums, SumPooled(node, *powers.value, w));
  if (p == 2) return Pow(Term(node, sums), 0.5).value;
  const Term root = Pow(Apply("Abs", Term(node, sums)), 1.0 / 3);
  const Term sign(node, frontend::ComputedUnary(node, "Sign", sums));
  return (root * sign).value;
}

absl::StatusOr<ValueRef> PooledGlobally(NodeImporter& node, const std::string& type,
                                        const Layout& layout) {
  std::vector<int64_t> axes;
  for (size_t i = 0; i < layout.spatial; ++i) {
    axes.push_back(static_cast<int64_t>(i) + (layout.is_channels_last ? 1 : 2));
  }
  if (type == "max") return node.Reduced("ReduceMax", node.input(0), axes, true);
  if (type == "avg") return node.Reduced("ReduceMean", node.input(0), axes, true);
  if (type == "sum") return node.Reduced("ReduceSum", node.input(0), axes, true);
  return node.BadChoice("pool_type", type, "max, avg or sum where global_pool is set");
}

absl::Status ImportPooling(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const std::string type, node.StringOr("pool_type", "max"));
  ASSIGN_OR_RETURN(const bool is_global, node.BoolOr("global_pool", false));
  ASSIGN_OR_RETURN(const Layout layout, ReadLayout(node));
  if (is_global) return node.SetOutput(PooledGlobally(node, type, layout));
  ASSIGN_OR_RETURN(WindowAttrs w, ReadWindow(node, layout.spatial));
  w.dilations.assign(layout.spatial, 1);
  ASSIGN_OR_RETURN(const bool count_pad, node.BoolOr("count_include_pad", true));
  const std::vector<int64_t> none(layout.spatial, 0);
  const CountedPads counted = count_pad ? CountedPads{w.before, w.after} : CountedPads{none, none};
  ASSIGN_OR_RETURN(const ValueRef x, ToChannelsLast(node, layout));
  const Shape spatial(x->type.shape.begin() + 1, x->type.shape.end() - 1);
  RETURN_IF_ERROR(GrowToFull(node, spatial, w));
  ASSIGN_OR_RETURN(const ValueRef y, Pooled(node, type, x, w, counted));
  return node.SetOutput(FromChannelsLast(node, layout, y));
}

// MXNet's first pooling pads with zeros, also for maxima, and divides by the whole kernel: it is
// the same as the later one where nothing is padded and all windows are full.
absl::Status ImportPoolingV1(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const bool is_global, node.BoolOr("global_pool", false));
  if (is_global) return ImportPooling(node);
  ASSIGN_OR_RETURN(const Layout layout, ReadLayout(node));
  ASSIGN_OR_RETURN(WindowAttrs w, ReadWindow(node, layout.spatial));
  const WindowAttrs stated = w;
  const Shape spatial(node.shape(0).begin() + 2, node.shape(0).end());
  RETURN_IF_ERROR(GrowToFull(node, spatial, w));
  const auto is_zero = [](int64_t v) { return v == 0; };
  if (w.after == stated.after && std::all_of(w.before.begin(), w.before.end(), is_zero)) {
    return ImportPooling(node);
  }
  return node.FailMode("it pads, or its last window is not full", "use Pooling");
}

// Each operand is repeated to the size of the first one times `scale`.
absl::Status UpSampleNearest(NodeImporter& node, int64_t scale) {
  ASSIGN_OR_RETURN(const std::string mode, node.StringOr("multi_input_mode", "concat"));
  RETURN_IF_ERROR(node.ExpectInputs(1, static_cast<int>(kMaxInputsPerNode)));
  std::vector<ValueRef> parts;
  for (int i = 0; i < node.input_count(); ++i) {
    if (node.rank(i) != 4) return absl::InvalidArgumentError("an operand is no image");
    frontend::ImageResize resize{.is_linear = false};
    for (size_t axis = 0; axis < 2; ++axis) {
      resize.size[axis] = node.shape(0)[axis + 2] * scale;
      if (node.shape(i)[axis + 2] < 1 || resize.size[axis] % node.shape(i)[axis + 2] != 0) {
        return absl::InvalidArgumentError(absl::StrCat("an operand is ", TypeToString(node.type(i)),
                                                       ", which does not divide ",
                                                       resize.size[axis]));
      }
    }
    ASSIGN_OR_RETURN(ValueRef x, ChannelsLast(node, node.input(i)));
    ASSIGN_OR_RETURN(x, ResizedImage(node, x, resize));
    ASSIGN_OR_RETURN(parts.emplace_back(), ChannelsFirst(node, x));
  }
  if (parts.size() == 1) return node.SetOutput(parts[0]);
  if (mode == "concat") return node.SetOutput(node.Joined(parts, 1));
  if (mode != "sum") return node.BadChoice("multi_input_mode", mode, "concat or sum");
  ValueRef sum = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) {
    ASSIGN_OR_RETURN(sum, node.Emit("Add", {sum, parts[i]}));
  }
  return node.SetOutput(std::move(sum));
}

// A depthwise transposed convolution with a weight [C,1,k,k] of the model.
absl::Status UpSampleBilinear(NodeImporter& node, int64_t scale) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  const int64_t kernel = 2 * scale - scale % 2;
  const int64_t channels = node.rank(0) == 4 ? node.shape(0)[1] : 0;
  const Shape wanted = {channels, 1, kernel, kernel};
  if (channels < 1 || node.shape(1) != wanted) return WrongWeight(node, ShapeToString(wanted));
  const int64_t pad = scale / 2;  // ceil((scale - 1) / 2)
  WindowAttrs w = {{kernel, kernel}, {scale, scale}, {1, 1}, {pad, pad}, {pad, pad}};
  ASSIGN_OR_RETURN(const ValueRef x, ChannelsLast(node, node.input(0)));
  ASSIGN_OR_RETURN(const ValueRef y,
                   ConvolvedBack(node, x, node.input(1), nullptr, channels, std::move(w)));
  return node.SetOutput(ChannelsFirst(node, y));
}

absl::Status ImportUpSampling(NodeImporter& node) {
  ASSIGN_OR_RETURN(const int64_t scale, node.RequiredInt("scale"));
  ASSIGN_OR_RETURN(const std::string type, node.StringOr("sample_type", "nearest"));
  if (scale < 1 || scale > 64) {
    return node.FailMode(absl::StrCat("a scale of ", scale), "use one from 1 to 64");
  }
  if (type == "nearest") return UpSampleNearest(node, scale);
  if (type == "bilinear") return UpSampleBilinear(node, scale);
  return node.BadChoice("sample_type", type, "nearest or bilinear");
}

absl::Status ImportBilinearResize(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const std::string mode, node.StringOr("mode", "size"));
  ASSIGN_OR_RETURN(const bool align_corners, node.BoolOr("align_corners", true));
  if (mode != "size") return node.BadChoice("mode", mode, "size");
  if (node.rank(0) != 4) return absl::InvalidArgumentError("the operand is no image");
  frontend::ImageResize resize{.align_corners = align_corners, .half_pixel_centers = true};
  const std::array<absl::string_view, 2> sizes = {"height", "width"};
  const std::array<absl::string_view, 2> scales = {"scale_height", "scale_width"};
  for (size_t i = 0; i < 2; ++i) {
    ASSIGN_OR_RETURN(const double scale, node.FloatOr(scales[i], 0));
    ASSIGN_OR_RETURN(resize.size[i], node.IntOr(sizes[i], 1));
    if (node.node().HasAttr(scales[i]) && scale > 0 && scale < 4096) {
      resize.size[i] = static_cast<int64_t>(scale * static_cast<double>(node.shape(0)[i + 2]));
    }
  }
  ASSIGN_OR_RETURN(ValueRef x, ChannelsLast(node, node.input(0)));
  ASSIGN_OR_RETURN(x, ResizedImage(node, x, resize));
  return node.SetOutput(ChannelsFirst(node, x));
}

// Windows as even as the sizes allow; they are even where the result divides the operand.
absl::Status ImportAdaptivePooling(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  if (node.rank(0) != 4) return absl::InvalidArgumentError("the operand is no image");
  ASSIGN_OR_RETURN(std::vector<int64_t> size, node.IntsOr("output_size", {}));
  if (size.empty()) size = {1};
  if (size.size() == 1) size.push_back(size[0]);
  WindowAttrs w = {{}, {}, {1, 1}, {0, 0}, {0, 0}};
  for (size_t i = 0; i < 2; ++i) {
    const int64_t in = node.shape(0)[i + 2];
    if (size.size() != 2 || size[i] < 1 || in % size[i] != 0 || in < 1) {
      return node.FailMode(absl::StrCat("windows of unequal sizes: ", TypeToString(node.type(0)),
                                        " to ", ShapeToString(size)),
                           "use a size that divides the operand's");
    }
    w.kernel.push_back(in / size[i]);
    w.strides.push_back(in / size[i]);
  }
  if (size[0] == 1 && size[1] == 1) {
    return node.SetOutput(node.Reduced("ReduceMean", node.input(0), {2, 3}, true));
  }
  ASSIGN_OR_RETURN(ValueRef x, ChannelsLast(node, node.input(0)));
  ASSIGN_OR_RETURN(x, AveragePooled(node, x, w, {{0, 0}, {0, 0}}));
  return node.SetOutput(ChannelsFirst(node, x));
}

// The last axis of the first operand with the first axis of the second.
absl::Status ImportDot(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const bool transpose_a, node.BoolOr("transpose_a", false));
  ASSIGN_OR_RETURN(const bool transpose_b, node.BoolOr("transpose_b", false));
  if (node.rank(0) != 2 || node.rank(1) != 2) {
    return node.FailMode(
        absl::StrCat("operands ", TypeToString(node.type(0)), " and ", TypeToString(node.type(1))),
        "use matrices");
  }
  return node.EmitOutput("MatMul", {node.input(0), node.input(1)},
                         {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
}

absl::Status ImportBatchDot(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const bool transpose_a, node.BoolOr("transpose_a", false));
  ASSIGN_OR_RETURN(const bool transpose_b, node.BoolOr("transpose_b", false));
  if (node.rank(0) != 3 || node.rank(1) != 3) {
    return absl::InvalidArgumentError("an operand is no list of matrices");
  }
  return node.EmitOutput("MatMul", {node.input(0), node.input(1)},
                         {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
}

constexpr ImportRule kLayerRules[] = {
    {"Convolution", ImportConvolution, 1},
    {"Convolution_v1", ImportConvolution, 1},
    {"Deconvolution", ImportDeconvolution, 1},
    {"FullyConnected", ImportFullyConnected, 1},
    {"Pooling", ImportPooling},
    {"Pooling_v1", ImportPoolingV1},
    {"UpSampling", ImportUpSampling},
    {"_contrib_AdaptiveAvgPooling2D", ImportAdaptivePooling},
    {"_contrib_BilinearResize2D", ImportBilinearResize},
    {"batch_dot", ImportBatchDot},
    {"dot", ImportDot},
};

}  // namespace

absl::Span<const ImportRule> LayerRules() { return kLayerRules; }

}  // namespace npuc::mxnet
