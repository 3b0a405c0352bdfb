#include "compiler_core/frontends/common/windows.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/gather.h"
#include "compiler_core/frontends/common/image.h"

namespace npuc::frontend {
namespace {

// A convolution in two spatial dimensions: x [n,h,w,c], weight [kh,kw,c/groups,o].
absl::StatusOr<ValueRef> Convolve2d(Emitter& node, const ValueRef& x, ValueRef weight,
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
absl::StatusOr<ValueRef> Convolve3d(Emitter& node, ValueRef x, ValueRef weight,
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

absl::StatusOr<ValueRef> WithBias(Emitter& node, absl::StatusOr<ValueRef> sums,
                                  const ValueRef& bias) {
  if (!sums.ok() || bias == nullptr) return sums;
  return node.Emit("Add", {*sums, bias});
}

// The weight [c,o/groups,kernel...] turned by half a turn, as [kernel...,c/groups,o].
absl::StatusOr<ValueRef> TurnedWeight(Emitter& node, ValueRef weight, int64_t groups) {
  const Shape kernel = weight->type.shape;
  for (size_t axis = 2; axis < kernel.size(); ++axis) {
    const int64_t dim = kernel[axis];
    ASSIGN_OR_RETURN(
        weight, node.Sliced(weight, static_cast<int64_t>(axis), dim - 1, dim, dim == 1 ? 1 : -1));
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

// One pooling of the IR over axes `first` and the next of x [n,spatial...,c], which is reshaped to
// an image for it; of a single axis where `pair` is false.
absl::StatusOr<ValueRef> PoolAxes(Emitter& node, absl::string_view op, const ValueRef& x,
                                  const WindowAttrs& w, size_t first, bool pair) {
  const Shape& in = x->type.shape;
  const size_t h = first + 1;
  const size_t after = h + (pair ? 2 : 1);
  Shape image = {1, in[h], pair ? in[h + 1] : 1, 1};
  for (size_t i = 0; i < h; ++i) image[0] *= in[i];
  for (size_t i = after; i < in.size(); ++i) image[3] *= in[i];
  const auto two = [&](const std::vector<int64_t>& list, int64_t other) {
    return std::vector<int64_t>{list[first], pair ? list[first + 1] : other};
  };
  std::vector<int64_t> pads = {w.before[first], w.after[first], 0, 0};
  if (pair) pads = {w.before[first], w.after[first], w.before[first + 1], w.after[first + 1]};
  ASSIGN_OR_RETURN(ValueRef y, node.Reshaped(x, image));
  ASSIGN_OR_RETURN(y, node.Emit(op, {y},
                                {{"kernel", two(w.kernel, 1)},
                                 {"strides", two(w.strides, 1)},
                                 {"pads", std::move(pads)}}));
  Shape out = in;
  out[h] = y->type.shape[1];
  if (pair) out[h + 1] = y->type.shape[2];
  return node.Reshaped(y, std::move(out));
}

// Averages and maxima of windows are those of lines, then of lines of these; averages only where
// all windows are full.
absl::StatusOr<ValueRef> Pool(Emitter& node, absl::string_view op, ValueRef x,
                              const WindowAttrs& w) {
  if (w.kernel.size() == 1) return PoolAxes(node, op, x, w, 0, false);
  if (w.kernel.size() == 2) return PoolAxes(node, op, x, w, 0, true);
  ASSIGN_OR_RETURN(x, PoolAxes(node, op, x, w, 0, false));
  return PoolAxes(node, op, x, w, 1, true);
}

// Windows with gaps: the kernel's taps as slices, of which op2 makes one.
absl::StatusOr<ValueRef> PoolTaps(Emitter& node, absl::string_view op2, ValueRef x,
                                  const WindowAttrs& w) {
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    const int64_t axis = static_cast<int64_t>(i) + 1;
    const int64_t room = x->type.shape[i + 1] - w.Extent(i);
    if (room < 0) return absl::InvalidArgumentError("a window is larger than the padded operand");
    if (w.kernel[i] > kMaxListEntries) return node.FailMode("a window above 4096", "use less");
    const int64_t size = room / w.strides[i] + 1;
    ValueRef best;
    for (int64_t tap = 0; tap < w.kernel[i]; ++tap) {
      ASSIGN_OR_RETURN(const ValueRef part, node.Sliced(x, axis, tap * w.dilations[i], size,
                                                        size == 1 ? 1 : w.strides[i]));
      if (best == nullptr) {
        best = part;
        continue;
      }
      ASSIGN_OR_RETURN(best, node.Emit(op2, {best, part}));
    }
    x = best;
  }
  return x;
}

// Pads the spatial dimensions, and takes the padding off the window's own.
absl::StatusOr<ValueRef> PadSpatial(Emitter& node, const ValueRef& x, const CountedPads& pads,
                                    double fill, WindowAttrs& w) {
  std::vector<int64_t> paddings(2 * x->type.shape.size(), 0);
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    paddings[2 * (i + 1)] = pads.before[i];
    paddings[2 * (i + 1) + 1] = pads.after[i];
    w.before[i] -= pads.before[i];
    w.after[i] -= pads.after[i];
  }
  return node.Padded(x, std::move(paddings), fill);
}

bool HasGaps(const WindowAttrs& w) {
  return std::any_of(w.dilations.begin(), w.dilations.end(), [](int64_t d) { return d != 1; });
}
// Pads that the IR's pooling does not take: as wide as the window.
bool PadsAreWide(const WindowAttrs& w) {
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    if (w.before[i] >= w.kernel[i] || w.after[i] >= w.kernel[i]) return true;
  }
  return false;
}
bool HasPads(const WindowAttrs& w) {
  const auto is_zero = [](int64_t v) { return v == 0; };
  return !std::all_of(w.before.begin(), w.before.end(), is_zero) ||
         !std::all_of(w.after.begin(), w.after.end(), is_zero);
}

// Counts the elements that each window averages over, as a constant [1,spatial...,1].
absl::StatusOr<ValueRef> WindowCounts(Emitter& node, absl::Span<const int64_t> spatial,
                                      const WindowAttrs& w, const CountedPads& counted,
                                      DType dtype) {
  Shape shape = {1};
  std::vector<std::vector<double>> counts;
  for (size_t i = 0; i < spatial.size(); ++i) {
    const int64_t lo = -counted.before[i];
    const int64_t hi = spatial[i] + counted.after[i];
    const int64_t results =
        (spatial[i] + w.before[i] + w.after[i] - w.Extent(i)) / w.strides[i] + 1;
    if (results < 1 || results > kMaxElements || w.kernel[i] > kMaxListEntries) {
      return absl::InvalidArgumentError("a window does not fit into the padded operand");
    }
    auto& line = counts.emplace_back();
    for (int64_t r = 0; r < results; ++r) {
      int64_t count = 0;
      for (int64_t tap = 0; tap < w.kernel[i]; ++tap) {
        const int64_t at = r * w.strides[i] - w.before[i] + tap * w.dilations[i];
        count += at >= lo && at < hi ? 1 : 0;
      }
      line.push_back(static_cast<double>(std::max<int64_t>(count, 1)));
    }
    shape.push_back(results);
  }
  shape.push_back(1);
  RETURN_IF_ERROR(CheckShape(shape));
  std::vector<double> all = {1};
  for (const auto& line : counts) {
    std::vector<double> next;
    for (const double a : all) {
      for (const double b : line) next.push_back(a * b);
    }
    all = std::move(next);
  }
  return node.Floats(std::move(shape), all, dtype);
}

}  // namespace

absl::StatusOr<ValueRef> ChannelsLast(Emitter& node, const ValueRef& value) {
  node.state().diagnostics->Add(
      {.kind = DiagnosticKind::kLayoutTransposed,
       .message = "the node is channels first; it runs channels last between two transposes",
       .file = node.state().file,
       .node = node.source().name,
       .op = node.source().op,
       .fix = "transposes between such nodes cancel"});
  std::vector<int64_t> perm = {0};
  for (int64_t i = 2; i < static_cast<int64_t>(value->type.shape.size()); ++i) perm.push_back(i);
  perm.push_back(1);
  return node.Transposed(value, std::move(perm));
}

absl::StatusOr<ValueRef> ChannelsFirst(Emitter& node, const ValueRef& value) {
  const int64_t rank = static_cast<int64_t>(value->type.shape.size());
  std::vector<int64_t> perm = {0, rank - 1};
  for (int64_t i = 1; i < rank - 1; ++i) perm.push_back(i);
  return node.Transposed(value, std::move(perm));
}

absl::StatusOr<ValueRef> WeightLast(Emitter& node, const ValueRef& weight) {
  std::vector<int64_t> perm;
  for (int64_t i = 2; i < static_cast<int64_t>(weight->type.shape.size()); ++i) perm.push_back(i);
  perm.insert(perm.end(), {1, 0});
  return node.Transposed(weight, std::move(perm));
}

absl::StatusOr<ValueRef> Convolved(Emitter& node, ValueRef x, ValueRef weight, const ValueRef& bias,
                                   WindowAttrs w) {
  const size_t spatial = w.kernel.size();
  if (spatial == 2) return WithBias(node, Convolve2d(node, x, weight, w, 0), bias);
  if (spatial == 3) return WithBias(node, Convolve3d(node, x, weight, w), bias);
  // One dimension is an image of height 1.
  const Shape in = x->type.shape;
  const Shape kernel = weight->type.shape;
  ASSIGN_OR_RETURN(x, node.Reshaped(x, {in[0], 1, in[1], in[2]}));
  ASSIGN_OR_RETURN(weight, node.Reshaped(weight, {1, kernel[0], kernel[1], kernel[2]}));
  for (auto* list : {&w.strides, &w.dilations, &w.kernel}) list->insert(list->begin(), 1);
  for (auto* list : {&w.before, &w.after}) list->insert(list->begin(), 0);
  // The bias belongs to the convolution: behind the Reshape it would be an addition of its own.
  ASSIGN_OR_RETURN(const ValueRef y, WithBias(node, Convolve2d(node, x, weight, w, 0), bias));
  return node.Reshaped(y, {y->type.shape[0], y->type.shape[2], y->type.shape[3]});
}

absl::StatusOr<ValueRef> ConvolvedBack(Emitter& node, ValueRef x, const ValueRef& weight,
                                       const ValueRef& bias, int64_t groups, WindowAttrs w) {
  const size_t count = w.kernel.size();
  std::vector<int64_t> paddings(2 * (count + 2), 0);
  for (size_t i = 0; i < count; ++i) {
    paddings[2 * (i + 1)] = w.Extent(i) - 1 - w.before[i];
    paddings[2 * (i + 1) + 1] = w.Extent(i) - 1 - w.after[i];
  }
  ASSIGN_OR_RETURN(const ValueRef turned, TurnedWeight(node, weight, groups));
  for (size_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(x, Spread(node, std::move(x), static_cast<int64_t>(i) + 1, w.strides[i]));
  }
  ASSIGN_OR_RETURN(x, node.Padded(x, std::move(paddings), 0));
  w.strides.assign(count, 1);
  w.before.assign(count, 0);
  w.after.assign(count, 0);
  return Convolved(node, std::move(x), turned, bias, std::move(w));
}

absl::StatusOr<ValueRef> MaxPooled(Emitter& node, ValueRef x, WindowAttrs w) {
  if (!HasGaps(w) && !PadsAreWide(w)) return Pool(node, "MaxPool", std::move(x), w);
  if (!IsFloat(x->type.dtype)) return node.FailMode("padded windows of integers", "use floats");
  const CountedPads all{w.before, w.after};
  ASSIGN_OR_RETURN(x, PadSpatial(node, x, all, -std::numeric_limits<double>::infinity(), w));
  return PoolTaps(node, "Maximum", std::move(x), w);
}

absl::StatusOr<ValueRef> AveragePooled(Emitter& node, ValueRef x, WindowAttrs w,
                                       const CountedPads& counted) {
  if (!HasGaps(w)) {
    WindowAttrs rest = w;
    for (size_t i = 0; i < w.kernel.size(); ++i) {
      rest.before[i] -= counted.before[i];
      rest.after[i] -= counted.after[i];
    }
    if (!PadsAreWide(rest) && (!HasPads(rest) || w.kernel.size() < 3)) {
      ASSIGN_OR_RETURN(x, PadSpatial(node, x, counted, 0, w));
      return Pool(node, "AvgPool", std::move(x), w);
    }
  }
  const absl::Span<const int64_t> spatial =
      absl::MakeConstSpan(x->type.shape).subspan(1, w.kernel.size());
  ASSIGN_OR_RETURN(const ValueRef counts, WindowCounts(node, spatial, w, counted, x->type.dtype));
  ASSIGN_OR_RETURN(const ValueRef sums, SumPooled(node, std::move(x), std::move(w)));
  return node.Emit("Div", {sums, counts});
}

absl::StatusOr<ValueRef> SumPooled(Emitter& node, ValueRef x, WindowAttrs w) {
  const CountedPads all{w.before, w.after};
  ASSIGN_OR_RETURN(x, PadSpatial(node, x, all, 0, w));
  return PoolTaps(node, "Add", std::move(x), w);
}

}  // namespace npuc::frontend
