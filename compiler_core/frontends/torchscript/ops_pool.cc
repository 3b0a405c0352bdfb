// Pooling over windows.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/fp16.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/torchscript/layout.h"
#include "compiler_core/frontends/torchscript/op_call.h"

namespace npuc::pt {
namespace {

constexpr int64_t kMaxSide = int64_t{1} << 16;
constexpr int64_t kMaxDilatedTaps = 1024;
constexpr int64_t kMaxBins = 256;

// Index 0 is height, 1 is width.
struct Window {
  int dims = 2;
  std::vector<int64_t> kernel, stride, padding, dilation;
  std::vector<int64_t> extra;  // behind, so that the last window of ceil_mode fits
};

absl::StatusOr<std::vector<int64_t>> WindowPair(OpCall& call, int arg, int dims,
                                                std::vector<int64_t> fallback, int64_t neutral,
                                                int64_t lowest) {
  ASSIGN_OR_RETURN(std::vector<int64_t> values,
                   call.IntsOf(arg, static_cast<size_t>(dims), std::move(fallback)));
  for (const int64_t value : values) {
    if (value >= lowest && value <= kMaxSide) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the window has ", value, "; allowed are ", lowest, " to ", kMaxSide));
  }
  if (dims == 1) values.insert(values.begin(), neutral);
  return values;
}

int DimsOf(const OpCall& call) { return absl::StrContains(call.name(), "1d") ? 1 : 2; }

// kernel_size, stride, padding at arguments 1 to 3, dilation and ceil_mode where given.
absl::StatusOr<Window> ReadWindow(OpCall& call, int dilation, int ceil_mode, const Shape& image) {
  Window w;
  w.dims = DimsOf(call);
  ASSIGN_OR_RETURN(w.kernel, WindowPair(call, 1, w.dims, {}, 1, 1));
  const std::vector<int64_t> own(w.kernel.end() - w.dims, w.kernel.end());
  ASSIGN_OR_RETURN(w.stride, WindowPair(call, 2, w.dims, own, 1, 1));
  ASSIGN_OR_RETURN(w.padding, WindowPair(call, 3, w.dims, {0}, 0, 0));
  w.dilation = {1, 1};
  if (dilation > 0) {
    ASSIGN_OR_RETURN(w.dilation, WindowPair(call, dilation, w.dims, {1}, 1, 1));
  }
  ASSIGN_OR_RETURN(const bool ceil, call.BoolOr(ceil_mode, false));
  w.extra = {0, 0};
  for (size_t axis = 0; axis < 2; ++axis) {
    if (2 * w.padding[axis] > w.kernel[axis]) {
      return absl::InvalidArgumentError("the padding is more than half of the window");
    }
    const int64_t size = image[1 + axis];
    const int64_t extent = (w.kernel[axis] - 1) * w.dilation[axis] + 1;
    const int64_t room = size + 2 * w.padding[axis] - extent;
    if (room < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("a window of ", extent, " does not fit into ", size + 2 * w.padding[axis]));
    }
    if (!ceil) continue;
    // A further window counts where it begins on the data or the padding in front.
    const int64_t windows = (room + w.stride[axis] - 1) / w.stride[axis] + 1;
    const bool begins_inside = (windows - 1) * w.stride[axis] < size + w.padding[axis];
    const int64_t last = (windows - (begins_inside ? 1 : 2)) * w.stride[axis];
    w.extra[axis] = std::max<int64_t>(last - room, 0);
  }
  return w;
}

AttrMap PoolAttrs(const Window& w, bool with_padding) {
  std::vector<int64_t> pads(4, 0);
  for (size_t axis = 0; axis < 2; ++axis) {
    pads[2 * axis] = with_padding ? w.padding[axis] : 0;
    pads[2 * axis + 1] = pads[2 * axis] + w.extra[axis];
  }
  return {{"kernel", w.kernel}, {"strides", w.stride}, {"pads", std::move(pads)}};
}

absl::StatusOr<ValueRef> PadImage(OpCall& call, const ValueRef& x, const Window& w, double value,
                                  bool with_extra) {
  std::vector<int64_t> paddings(8, 0);
  bool pads = false;
  for (size_t axis = 0; axis < 2; ++axis) {
    paddings[2 + 2 * axis] = w.padding[axis];
    paddings[3 + 2 * axis] = w.padding[axis] + (with_extra ? w.extra[axis] : 0);
    pads |= paddings[3 + 2 * axis] > 0;
  }
  if (!pads) return x;
  return call.EmitUnder(OpCall::kNoRow, "Pad", {x},
                        {{"paddings", std::move(paddings)}, {"value", value}});
}

// A window with gaps: the maximum of one strided slice for each tap.
absl::StatusOr<ValueRef> DilatedMaximum(OpCall& call, const ValueRef& image, const Window& w) {
  if (w.kernel[0] * w.kernel[1] > kMaxDilatedTaps) {
    return call.FailMode(absl::StrCat("a dilated window of more than ", kMaxDilatedTaps, " taps"),
                         "use a smaller window");
  }
  ASSIGN_OR_RETURN(const ValueRef padded, PadImage(call, image, w, -kLargestHalf, true));
  std::vector<int64_t> out(2);
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t extent = (w.kernel[axis] - 1) * w.dilation[axis] + 1;
    out[axis] = (padded->type.shape[1 + axis] - extent) / w.stride[axis] + 1;
  }
  ValueRef best;
  for (int64_t i = 0; i < w.kernel[0]; ++i) {
    ASSIGN_OR_RETURN(const ValueRef rows,
                     call.Sliced(padded, 1, i * w.dilation[0], out[0], w.stride[0]));
    for (int64_t j = 0; j < w.kernel[1]; ++j) {
      ASSIGN_OR_RETURN(ValueRef tap, call.Sliced(rows, 2, j * w.dilation[1], out[1], w.stride[1]));
      if (best != nullptr) {
        ASSIGN_OR_RETURN(tap, call.EmitUnder("MaxPool2d", "Maximum", {best, tap},
                                             {{"fact_dilation_h", w.dilation[0]},
                                              {"fact_dilation_w", w.dilation[1]}}));
      }
      best = std::move(tap);
    }
  }
  return best;
}

// A pool of single pixels is a copy, which passes leave out before anyone could hold it against the
// core's rules.
void NoteSinglePixels(OpCall& call, const Window& w, absl::string_view row) {
  if (w.kernel == std::vector<int64_t>{1, 1}) {
    call.NoteRewritten(row, RuleKind::kNotBothOne, "found pool_h = 1, pool_w = 1",
                       "it copies its input, so it is left out");
  }
}

absl::StatusOr<ScriptValue> ImportMaxPool(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ImageLayout layout;
  ASSIGN_OR_RETURN(const ValueRef image, ToImage(call, x, DimsOf(call), layout));
  ASSIGN_OR_RETURN(const Window w, ReadWindow(call, 4, 5, image->type.shape));
  NoteSinglePixels(call, w, "MaxPool2d");
  ValueRef y;
  if (w.dilation != std::vector<int64_t>{1, 1}) {
    ASSIGN_OR_RETURN(y, DilatedMaximum(call, image, w));
  } else {
    ASSIGN_OR_RETURN(y, call.Emit("MaxPool", {image}, PoolAttrs(w, true)));
  }
  return call.Result(FromImage(call, y, layout));
}

absl::StatusOr<ScriptValue> ImportAvgPool(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ImageLayout layout;
  ASSIGN_OR_RETURN(ValueRef image, ToImage(call, x, DimsOf(call), layout));
  ASSIGN_OR_RETURN(Window w, ReadWindow(call, 0, 4, image->type.shape));
  NoteSinglePixels(call, w, "AvgPool2d");
  ASSIGN_OR_RETURN(const bool counts_padding, call.BoolOr(5, true));
  ASSIGN_OR_RETURN(const int64_t divisor, call.IntOr(6, 0));
  // The padding's zeros count: they must be there. What ceil_mode adds does not count, but for a
  // divisor of the model's own.
  if (counts_padding || divisor != 0) {
    ASSIGN_OR_RETURN(image, PadImage(call, image, w, 0, divisor != 0));
    w.padding = {0, 0};
    if (divisor != 0) w.extra = {0, 0};
  }
  ASSIGN_OR_RETURN(ValueRef y, call.Emit("AvgPool", {image}, PoolAttrs(w, true)));
  if (divisor != 0) {
    const auto taps = static_cast<double>(w.kernel[0] * w.kernel[1]);
    ASSIGN_OR_RETURN(y, call.Emit("Mul", {y, call.Scalar(taps / static_cast<double>(divisor))}));
  }
  return call.Result(FromImage(call, y, layout));
}

// One axis of an image reduced to `out` bins, as near to equal as they can be.
absl::StatusOr<ValueRef> ReduceToBins(OpCall& call, const ValueRef& x, int64_t axis, int64_t out,
                                      absl::string_view op) {
  const int64_t size = x->type.shape[axis];
  if (out == size) return x;
  if (out < 1 || out > kMaxBins) {
    return absl::InvalidArgumentError(
        absl::StrCat("an adaptive output of ", out, "; allowed are 1 to ", kMaxBins));
  }
  std::vector<ValueRef> bins;
  for (int64_t i = 0; i < out; ++i) {
    const int64_t begin = i * size / out;
    const int64_t end = ((i + 1) * size + out - 1) / out;
    ASSIGN_OR_RETURN(ValueRef bin, call.Sliced(x, axis, begin, end - begin));
    ASSIGN_OR_RETURN(bin, call.Reduced(op, bin, {axis}, /*keep_dims=*/true));
    bins.push_back(std::move(bin));
  }
  return call.Joined(bins, axis);
}

absl::StatusOr<ValueRef> AdaptivePool(OpCall& call, const ValueRef& image,
                                      const std::vector<int64_t>& out, bool is_max) {
  const Shape& shape = image->type.shape;
  const absl::string_view reduction = is_max ? "ReduceMax" : "ReduceMean";
  if (out[0] == 1 && out[1] == 1) {
    return call.Reduced(reduction, image, {1, 2}, /*keep_dims=*/true);
  }
  const bool divides =
      out[0] >= 1 && out[1] >= 1 && shape[1] % out[0] == 0 && shape[2] % out[1] == 0;
  if (divides) {
    const std::vector<int64_t> kernel = {shape[1] / out[0], shape[2] / out[1]};
    if (kernel == std::vector<int64_t>{1, 1}) return image;
    return call.Emit(
        is_max ? "MaxPool" : "AvgPool", {image},
        {{"kernel", kernel}, {"strides", kernel}, {"pads", std::vector<int64_t>(4, 0)}});
  }
  ASSIGN_OR_RETURN(const ValueRef rows, ReduceToBins(call, image, 1, out[0], reduction));
  return ReduceToBins(call, rows, 2, out[1], reduction);
}

absl::StatusOr<ScriptValue> ImportAdaptivePool(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  const int dims = DimsOf(call);
  const bool is_max = absl::StrContains(call.name(), "max");
  ImageLayout layout;
  ASSIGN_OR_RETURN(const ValueRef image, ToImage(call, x, dims, layout));
  // None stands for the input's own size.
  std::vector<int64_t> out;
  const ScriptValue& wanted = call.arg(1);
  for (int i = 0; i < dims; ++i) {
    const auto size = image->type.shape[static_cast<size_t>(3 - dims + i)];
    if (wanted.IsSequence() && i < static_cast<int>(wanted.list->items.size()) &&
        wanted.list->items[static_cast<size_t>(i)].IsNone()) {
      out.push_back(size);
    } else if (wanted.IsSequence() && i < static_cast<int>(wanted.list->items.size()) &&
               wanted.list->items[static_cast<size_t>(i)].Is(ScriptKind::kInt)) {
      out.push_back(wanted.list->items[static_cast<size_t>(i)].integer);
    } else {
      ASSIGN_OR_RETURN(const auto given, call.IntsOf(1, static_cast<size_t>(dims), {}));
      out.push_back(given[static_cast<size_t>(i)]);
    }
  }
  if (dims == 1) out.insert(out.begin(), 1);
  ASSIGN_OR_RETURN(ValueRef y, AdaptivePool(call, image, out, is_max));
  ASSIGN_OR_RETURN(y, FromImage(call, y, layout));
  const ScriptValue value = call.Result(std::move(y));
  if (!is_max) return value;
  // The indices of the maxima are not computed: whoever uses them is told so.
  return call.state().heap.Tuple({value, ScriptValue::Of(ScriptKind::kUninitialized)});
}

absl::StatusOr<ScriptValue> ImportMaxPoolWithIndices(OpCall& call) {
  ASSIGN_OR_RETURN(const ScriptValue value, ImportMaxPool(call));
  return call.state().heap.Tuple({value, ScriptValue::Of(ScriptKind::kUninitialized)});
}

constexpr absl::string_view kMaxPool = "self kernel_size stride padding dilation ceil_mode";
constexpr absl::string_view kAvgPool =
    "self kernel_size stride padding ceil_mode count_include_pad divisor_override";

constexpr OpRule kPoolRules[] = {
    {"adaptive_avg_pool1d", "self output_size", ImportAdaptivePool},
    {"adaptive_avg_pool2d", "self output_size", ImportAdaptivePool},
    {"adaptive_max_pool1d", "self output_size", ImportAdaptivePool},
    {"adaptive_max_pool2d", "self output_size", ImportAdaptivePool},
    {"avg_pool1d", kAvgPool, ImportAvgPool},
    {"avg_pool2d", kAvgPool, ImportAvgPool},
    {"max_pool1d", kMaxPool, ImportMaxPool},
    {"max_pool1d_with_indices", kMaxPool, ImportMaxPoolWithIndices},
    {"max_pool2d", kMaxPool, ImportMaxPool},
    {"max_pool2d_with_indices", kMaxPool, ImportMaxPoolWithIndices},
};

}  // namespace

absl::Span<const OpRule> PoolRules() { return kPoolRules; }

}  // namespace npuc::pt
