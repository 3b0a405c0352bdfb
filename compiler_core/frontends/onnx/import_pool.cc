// Pooling over windows of one to three spatial dimensions, and over everything.
#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/onnx/node_import.h"
#include "compiler_core/frontends/onnx/window_attrs.h"

namespace npuc::onnx {
namespace {

// One pooling of the IR over axes `first` and the next of x [n,spatial...,c], which is reshaped to
// an image for it; of a single axis where `pair` is false.
absl::StatusOr<ValueRef> PoolAxes(NodeImporter& node, absl::string_view op, const ValueRef& x,
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
absl::StatusOr<ValueRef> Pool(NodeImporter& node, absl::string_view op, ValueRef x,
                              const WindowAttrs& w) {
  if (w.kernel.size() == 1) return PoolAxes(node, op, x, w, 0, false);
  if (w.kernel.size() == 2) return PoolAxes(node, op, x, w, 0, true);
  ASSIGN_OR_RETURN(x, PoolAxes(node, op, x, w, 0, false));
  return PoolAxes(node, op, x, w, 1, true);
}

// Windows with gaps: the kernel's taps as slices, of which op2 makes one.
absl::StatusOr<ValueRef> PoolTaps(NodeImporter& node, absl::string_view op2, ValueRef x,
                                  const WindowAttrs& w) {
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    const int64_t axis = static_cast<int64_t>(i) + 1;
    const int64_t room = x->type.shape[i + 1] - w.Extent(i);
    if (room < 0) return absl::InvalidArgumentError("a window is larger than the padded operand");
    if (w.kernel[i] > kMaxInputsPerNode) return node.FailMode("a window above 4096", "use less");
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

// Pads the spatial dimensions, and clears the window's own pads.
absl::StatusOr<ValueRef> PadSpatial(NodeImporter& node, const ValueRef& x, WindowAttrs& w,
                                    double fill) {
  std::vector<int64_t> paddings(2 * x->type.shape.size(), 0);
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    paddings[2 * (i + 1)] = w.before[i];
    paddings[2 * (i + 1) + 1] = w.after[i];
    w.before[i] = w.after[i] = 0;
  }
  return node.Padded(x, std::move(paddings), fill);
}

absl::Status CheckRank(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  if (node.rank(0) >= 3 && node.rank(0) <= 5) return absl::OkStatus();
  return node.FailMode(absl::StrCat("the operand is ", TypeToString(node.type(0)),
                                    "; it must have one to three spatial dimensions"),
                       "export the model with pooling of that form");
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

absl::Status ImportMaxPool(NodeImporter& node) {
  RETURN_IF_ERROR(CheckRank(node));
  if (node.WantsOutput(1)) {
    return node.FailMode("it gives the indices of the maxima",
                         "export the model without its second result");
  }
  std::vector<int64_t> grown;
  ASSIGN_OR_RETURN(WindowAttrs w,
                   ReadWindow(node, absl::MakeConstSpan(node.shape(0)).subspan(2), {}, &grown));
  ASSIGN_OR_RETURN(ValueRef x, ChannelsLast(node, node.input(0)));
  if (!HasGaps(w) && !PadsAreWide(w)) {
    ASSIGN_OR_RETURN(x, Pool(node, "MaxPool", x, w));
  } else {
    if (!IsFloat(x->type.dtype)) return node.FailMode("padded windows of integers", "use floats");
    ASSIGN_OR_RETURN(x, PadSpatial(node, x, w, -std::numeric_limits<double>::infinity()));
    ASSIGN_OR_RETURN(x, PoolTaps(node, "Maximum", x, w));
  }
  return node.SetOutput(ChannelsFirst(node, x));
}

// How many elements each window averages over, as a constant [1,spatial...,1]; padding, also that
// which ceil_mode adds, counts where count_include_pad says so.
absl::StatusOr<ValueRef> WindowCounts(NodeImporter& node, absl::Span<const int64_t> spatial,
                                      const WindowAttrs& w, bool include_pad, DType dtype) {
  Shape shape = {1};
  std::vector<std::vector<double>> counts;
  for (size_t i = 0; i < spatial.size(); ++i) {
    const int64_t lo = include_pad ? -w.before[i] : 0;
    const int64_t hi = spatial[i] + (include_pad ? w.after[i] : 0);
    const int64_t results =
        (spatial[i] + w.before[i] + w.after[i] - w.Extent(i)) / w.strides[i] + 1;
    if (results < 1 || results > kMaxElements || w.kernel[i] > kMaxInputsPerNode) {
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

// Sums of windows, divided by how many elements each has.
absl::StatusOr<ValueRef> AverageBySums(NodeImporter& node, const ValueRef& x, WindowAttrs w,
                                       bool include_pad) {
  const absl::Span<const int64_t> spatial =
      absl::MakeConstSpan(x->type.shape).subspan(1, w.kernel.size());
  ASSIGN_OR_RETURN(const ValueRef counts,
                   WindowCounts(node, spatial, w, include_pad, x->type.dtype));
  ASSIGN_OR_RETURN(ValueRef sums, PadSpatial(node, x, w, 0));
  ASSIGN_OR_RETURN(sums, PoolTaps(node, "Add", sums, w));
  return node.Emit("Div", {sums, counts});
}

absl::Status ImportAveragePool(NodeImporter& node) {
  RETURN_IF_ERROR(CheckRank(node));
  std::vector<int64_t> grown;
  ASSIGN_OR_RETURN(WindowAttrs w,
                   ReadWindow(node, absl::MakeConstSpan(node.shape(0)).subspan(2), {}, &grown));
  ASSIGN_OR_RETURN(const bool include_pad, node.BoolOr("count_include_pad", false));
  ASSIGN_OR_RETURN(ValueRef x, ChannelsLast(node, node.input(0)));
  const auto is_zero = [](int64_t v) { return v == 0; };
  const bool has_pads = !std::all_of(w.before.begin(), w.before.end(), is_zero) ||
                        !std::all_of(w.after.begin(), w.after.end(), is_zero);
  const bool is_plain = !HasGaps(w) && !PadsAreWide(w);
  if (is_plain && include_pad) {
    ASSIGN_OR_RETURN(x, PadSpatial(node, x, w, 0));
    ASSIGN_OR_RETURN(x, Pool(node, "AvgPool", x, w));
  } else if (is_plain && !include_pad && (!has_pads || w.kernel.size() < 3)) {
    ASSIGN_OR_RETURN(x, Pool(node, "AvgPool", x, w));
  } else {
    ASSIGN_OR_RETURN(x, AverageBySums(node, x, w, include_pad));
  }
  return node.SetOutput(ChannelsFirst(node, x));
}

// (sum of |x|^p) ^ (1/p)
absl::Status ImportLpPool(NodeImporter& node) {
  RETURN_IF_ERROR(CheckRank(node));
  ASSIGN_OR_RETURN(const int64_t p, node.IntOr("p", 2));
  if (p < 1 || p > 64) return node.FailMode(absl::StrCat("p is ", p), "use p from 1 to 64");
  std::vector<int64_t> grown;
  ASSIGN_OR_RETURN(WindowAttrs w,
                   ReadWindow(node, absl::MakeConstSpan(node.shape(0)).subspan(2), {}, &grown));
  ASSIGN_OR_RETURN(ValueRef x, ChannelsLast(node, node.input(0)));
  Term powers = Apply("Abs", Term(node, x));
  if (p != 1) powers = p == 2 ? Apply("Square", powers) : Pow(powers, static_cast<double>(p));
  RETURN_IF_ERROR(powers.value.status());
  ASSIGN_OR_RETURN(ValueRef sums, PadSpatial(node, *powers.value, w, 0));
  ASSIGN_OR_RETURN(sums, PoolTaps(node, "Add", sums, w));
  Term root(node, sums);
  if (p != 1) root = p == 2 ? Apply("Sqrt", root) : Pow(root, 1.0 / static_cast<double>(p));
  RETURN_IF_ERROR(root.value.status());
  return node.SetOutput(ChannelsFirst(node, *root.value));
}

std::vector<int64_t> SpatialAxes(const NodeImporter& node) {
  std::vector<int64_t> axes;
  for (int64_t i = 2; i < node.rank(0); ++i) axes.push_back(i);
  return axes;
}

absl::Status ImportGlobalAverage(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  return node.SetOutput(node.Reduced("ReduceMean", node.input(0), SpatialAxes(node), true));
}
absl::Status ImportGlobalMax(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  return node.SetOutput(node.Reduced("ReduceMax", node.input(0), SpatialAxes(node), true));
}

constexpr ImportRule kRules[] = {
    {"AveragePool", ImportAveragePool}, {"GlobalAveragePool", ImportGlobalAverage},
    {"GlobalMaxPool", ImportGlobalMax}, {"LpPool", ImportLpPool},
    {"MaxPool", ImportMaxPool},
};

}  // namespace

absl::Span<const ImportRule> PoolRules() { return kRules; }

}  // namespace npuc::onnx
