// Convolutions of one to three spatial dimensions.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/gather.h"
#include "compiler_core/frontends/common/image.h"
#include "compiler_core/frontends/onnx/node_import.h"
#include "compiler_core/frontends/onnx/window_attrs.h"

namespace npuc::onnx {
namespace {

using frontend::kMaxRuns;

// A convolution in two spatial dimensions: x [n,h,w,c], weight [kh,kw,c/groups,o].
absl::StatusOr<ValueRef> Convolve2d(NodeImporter& node, const ValueRef& x, ValueRef weight,
                                    const WindowAttrs& w, size_t first) {
  const size_t second = first + 1;
  AttrMap attrs = {{"strides", std::vector<int64_t>{w.strides[first], w.strides[second]}},
                   {"pads", std::vector<int64_t>{w.before[first], w.after[first], w.before[second],
                                                 w.after[second]}},
                   {"dilations", std::vector<int64_t>{w.dilations[first], w.dilations[second]}}};
  const int64_t channels = x->type.shape[3];
  const Shape shape = weight->type.shape;
  // Scales for each of C*M results fit no axis of [H,W,C,M] where both are more than one.
  const bool by_result =
      shape[3] > channels && weight->stored.has_value() && weight->stored->params.axis >= 0;
  const bool is_depthwise = shape[2] == 1 && channels > 1 && shape[3] % channels == 0;
  if (!is_depthwise || by_result) return node.Emit("Conv2D", {x, weight}, std::move(attrs));
  ASSIGN_OR_RETURN(weight,
                   node.Reshaped(weight, {shape[0], shape[1], channels, shape[3] / channels}));
  return node.Emit("DepthwiseConv2D", {x, weight}, std::move(attrs));
}

// [n,d,h,w,c] as images whose channels are those of the kernel's depth taps, one after the other:
// then a convolution in three dimensions is one in two.
absl::StatusOr<ValueRef> Convolve3d(NodeImporter& node, ValueRef x, ValueRef weight,
                                    const WindowAttrs& w) {
  const Shape kernel = weight->type.shape;  // [kd,kh,kw,c,o]
  if (kernel[3] != x->type.shape[4]) {
    return node.FailMode("groups in a convolution of three spatial dimensions", "use one group");
  }
  ASSIGN_OR_RETURN(x, node.Padded(x, {0, 0, w.before[0], w.after[0], 0, 0, 0, 0, 0, 0}, 0));
  const Shape in = x->type.shape;
  if (in[1] < w.Extent(0)) return absl::InvalidArgumentError("the kernel is deeper than the data");
  const int64_t depth = (in[1] - w.Extent(0)) / w.strides[0] + 1;
  std::vector<ValueRef> taps;
  for (int64_t i = 0; i < kernel[0]; ++i) {
    if (taps.size() == kMaxRuns) return node.FailMode("a deeper kernel than 4096", "use less");
    ASSIGN_OR_RETURN(taps.emplace_back(),
                     node.Sliced(x, 1, i * w.dilations[0], depth, depth == 1 ? 1 : w.strides[0]));
  }
  ASSIGN_OR_RETURN(ValueRef images, node.Joined(taps, 4));
  ASSIGN_OR_RETURN(images,
                   node.Reshaped(images, {in[0] * depth, in[2], in[3], kernel[0] * kernel[3]}));
  ASSIGN_OR_RETURN(weight, node.Transposed(weight, {1, 2, 0, 3, 4}));
  ASSIGN_OR_RETURN(weight,
                   node.Reshaped(weight, {kernel[1], kernel[2], kernel[0] * kernel[3], kernel[4]}));
  ASSIGN_OR_RETURN(const ValueRef y, Convolve2d(node, images, weight, w, 1));
  const Shape& out = y->type.shape;
  return node.Reshaped(y, {in[0], depth, out[1], out[2], out[3]});
}

// The sums with the node's bias, where it has one.
absl::StatusOr<ValueRef> WithBias(NodeImporter& node, absl::StatusOr<ValueRef> sums) {
  if (!sums.ok() || !node.has(2)) return sums;
  return node.Emit("Add", {*sums, node.input(2)});
}

// x [n,spatial...,c], weight [kernel...,c/groups,o], the node's bias.
absl::StatusOr<ValueRef> Convolve(NodeImporter& node, ValueRef x, ValueRef weight, WindowAttrs w) {
  const size_t spatial = w.kernel.size();
  if (spatial == 2) return WithBias(node, Convolve2d(node, x, weight, w, 0));
  if (spatial == 3) return WithBias(node, Convolve3d(node, x, weight, w));
  // One dimension is an image of height 1.
  const Shape in = x->type.shape;
  const Shape kernel = weight->type.shape;
  ASSIGN_OR_RETURN(x, node.Reshaped(x, {in[0], 1, in[1], in[2]}));
  ASSIGN_OR_RETURN(weight, node.Reshaped(weight, {1, kernel[0], kernel[1], kernel[2]}));
  for (auto* list : {&w.strides, &w.dilations, &w.kernel}) list->insert(list->begin(), 1);
  for (auto* list : {&w.before, &w.after}) list->insert(list->begin(), 0);
  // The bias belongs to the convolution: behind the Reshape it would be an addition of its own.
  ASSIGN_OR_RETURN(const ValueRef y, WithBias(node, Convolve2d(node, x, weight, w, 0)));
  return node.Reshaped(y, {y->type.shape[0], y->type.shape[2], y->type.shape[3]});
}

absl::Status CheckOperands(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 3));
  if (node.rank(0) >= 3 && node.rank(0) <= 5 && node.rank(1) == node.rank(0)) {
    return absl::OkStatus();
  }
  return node.FailMode(
      absl::StrCat("the operand is ", TypeToString(node.type(0)), " and the weight ",
                   TypeToString(node.type(1)), "; both must have one to three spatial dimensions"),
      "export the model with convolutions of that form");
}

absl::Status ImportConv(NodeImporter& node) {
  RETURN_IF_ERROR(CheckOperands(node));
  const Shape& in = node.shape(0);
  const Shape& kernel = node.shape(1);  // [o,c/groups,kernel...]
  ASSIGN_OR_RETURN(const int64_t groups, node.IntOr("group", 1));
  if (groups < 1 || groups > kMaxElements || kernel[1] * groups != in[1] ||
      kernel[0] % groups != 0) {
    return absl::InvalidArgumentError(absl::StrCat("the operand is ", TypeToString(node.type(0)),
                                                   ", the weight ", TypeToString(node.type(1)),
                                                   " and the groups are ", groups));
  }
  ASSIGN_OR_RETURN(const WindowAttrs w,
                   ReadWindow(node, absl::MakeConstSpan(in).subspan(2),
                              Shape(kernel.begin() + 2, kernel.end()), nullptr));
  std::vector<int64_t> perm;
  for (int64_t i = 2; i < node.rank(1); ++i) perm.push_back(i);
  perm.insert(perm.end(), {1, 0});
  ASSIGN_OR_RETURN(const ValueRef weight, node.Transposed(node.input(1), std::move(perm)));
  ASSIGN_OR_RETURN(const ValueRef x, ChannelsLast(node, node.input(0)));
  ASSIGN_OR_RETURN(const ValueRef y, Convolve(node, x, weight, w));
  return node.SetOutput(ChannelsFirst(node, y));
}

// The weight [c,o/groups,kernel...] turned by half a turn, as [kernel...,c/groups,o].
absl::StatusOr<ValueRef> TurnedWeight(NodeImporter& node, int64_t groups) {
  const Shape& kernel = node.shape(1);
  ValueRef weight = node.input(1);
  for (int64_t axis = 2; axis < node.rank(1); ++axis) {
    const int64_t dim = kernel[static_cast<size_t>(axis)];
    ASSIGN_OR_RETURN(weight, node.Sliced(weight, axis, dim - 1, dim, dim == 1 ? 1 : -1));
  }
  const std::vector<int64_t> taps(kernel.begin() + 2, kernel.end());
  Shape grouped = {groups, kernel[0] / groups, kernel[1]};
  grouped.insert(grouped.end(), taps.begin(), taps.end());
  ASSIGN_OR_RETURN(weight, node.Reshaped(weight, grouped));
  std::vector<int64_t> perm;
  for (int64_t i = 3; i < static_cast<int64_t>(grouped.size()); ++i) perm.push_back(i);
  perm.insert(perm.end(), {1, 0, 2});
  ASSIGN_OR_RETURN(weight, node.Transposed(weight, std::move(perm)));
  Shape shape = taps;
  shape.insert(shape.end(), {kernel[0] / groups, groups * kernel[1]});
  return node.Reshaped(weight, std::move(shape));
}

// The pads of the convolution over the spread operand: the kernel's reach less the node's own pads,
// and what output_padding adds behind.
absl::Status TransposedPads(NodeImporter& node, absl::Span<const int64_t> spatial, WindowAttrs& w) {
  const size_t count = spatial.size();
  ASSIGN_OR_RETURN(std::vector<int64_t> extra,
                   node.IntsOr("output_padding", std::vector<int64_t>(count, 0)));
  RETURN_IF_ERROR(CheckSpatial(node, "output_padding", extra, count, 0));
  ASSIGN_OR_RETURN(const std::string auto_pad, node.StringOr("auto_pad", "NOTSET"));
  ASSIGN_OR_RETURN(std::vector<int64_t> wanted, node.IntsOr("output_shape", {}));
  if (wanted.size() == count + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (wanted.empty() && same) {
    for (size_t i = 0; i < count; ++i) wanted.push_back(spatial[i] * w.strides[i]);
  }
  if (!wanted.empty()) RETURN_IF_ERROR(CheckSpatial(node, "output_shape", wanted, count, 1));
  for (size_t i = 0; i < count; ++i) {
    const int64_t full = w.strides[i] * (spatial[i] - 1) + extra[i] + w.Extent(i);
    if (!wanted.empty()) {
      const int64_t total = full - wanted[i];
      w.before[i] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      if (!same) w.before[i] = total / 2;
      w.after[i] = total - w.before[i];
    }
    w.before[i] = w.Extent(i) - 1 - w.before[i];
    w.after[i] = w.Extent(i) - 1 - w.after[i] + extra[i];
  }
  return absl::OkStatus();
}

absl::Status ImportConvTranspose(NodeImporter& node) {
  RETURN_IF_ERROR(CheckOperands(node));
  const Shape& in = node.shape(0);
  const Shape& kernel = node.shape(1);  // [c,o/groups,kernel...]
  ASSIGN_OR_RETURN(const int64_t groups, node.IntOr("group", 1));
  if (groups < 1 || groups > kMaxElements || kernel[0] != in[1] || kernel[0] % groups != 0) {
    return absl::InvalidArgumentError(absl::StrCat("the operand is ", TypeToString(node.type(0)),
                                                   ", the weight ", TypeToString(node.type(1)),
                                                   " and the groups are ", groups));
  }
  const absl::Span<const int64_t> spatial = absl::MakeConstSpan(in).subspan(2);
  ASSIGN_OR_RETURN(WindowAttrs w,
                   ReadWindow(node, spatial, Shape(kernel.begin() + 2, kernel.end()), nullptr));
  RETURN_IF_ERROR(TransposedPads(node, spatial, w));
  ASSIGN_OR_RETURN(const ValueRef weight, TurnedWeight(node, groups));
  ASSIGN_OR_RETURN(ValueRef x, ChannelsLast(node, node.input(0)));
  for (size_t i = 0; i < w.strides.size(); ++i) {
    ASSIGN_OR_RETURN(
        x, frontend::Spread(node, std::move(x), static_cast<int64_t>(i) + 1, w.strides[i]));
  }
  std::vector<int64_t> paddings(2 * in.size(), 0);
  for (size_t i = 0; i < spatial.size(); ++i) {
    paddings[2 * (i + 1)] = w.before[i];
    paddings[2 * (i + 1) + 1] = w.after[i];
  }
  ASSIGN_OR_RETURN(x, node.Padded(x, std::move(paddings), 0));
  w.strides.assign(spatial.size(), 1);
  w.before.assign(spatial.size(), 0);
  w.after.assign(spatial.size(), 0);
  ASSIGN_OR_RETURN(const ValueRef y, Convolve(node, x, weight, w));
  return node.SetOutput(ChannelsFirst(node, y));
}

constexpr ImportRule kRules[] = {{"Conv", ImportConv}, {"ConvTranspose", ImportConvTranspose}};

}  // namespace

absl::Span<const ImportRule> ConvRules() { return kRules; }

}  // namespace npuc::onnx
