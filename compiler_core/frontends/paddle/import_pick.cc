// Operators that pick or pad places.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/evaluator.h"
#include "compiler_core/frontends/common/gather.h"
#include "compiler_core/frontends/common/image.h"
#include "compiler_core/frontends/common/selection.h"
#include "compiler_core/frontends/paddle/op_import.h"

namespace npuc::paddle {
namespace {

// start..end of a dimension by `step`. Backwards an end of -1 is the place in front of the first
// element, where Python counts it from the end: Paddle writes it for an end that is left out.
// Source: StridedSliceOutDims in phi/kernels/funcs/strided_slice.h. Until 2.1 a backward step
// counts from the place behind the end (StridedSliceFunctor in fluid/operators/strided_slice_op.h;
// changed by PaddlePaddle/Paddle#34205).
absl::StatusOr<ValueRef> Cut(OpImporter& node, const ValueRef& value, int64_t axis, int64_t start,
                             int64_t end, int64_t step) {
  const int64_t dim = value->type.shape[static_cast<size_t>(axis)];
  step = std::clamp<int64_t>(step, -kMaxElements, kMaxElements);
  if (step == 0) return absl::InvalidArgumentError("a step of 0");
  if (step < 0 && end < -std::max<int64_t>(dim, 1)) {
    return node.FailMode(
        absl::StrCat("an end of ", end, " for ", dim,
                     " places and a negative step, which versions of Paddle read differently"),
        "write an end of -1 to include the first element");
  }
  const auto from_front = [&](int64_t at) {
    return at < 0 ? std::max<int64_t>(at, -dim) + dim : std::min(at, dim);
  };
  const int64_t first = std::min(from_front(start), step > 0 ? dim : dim - 1);
  const int64_t last = step < 0 && end == -1 ? -1 : from_front(end);
  const int64_t room = step > 0 ? last - first : first - last;
  const int64_t size = room <= 0 ? 0 : (room - 1) / std::abs(step) + 1;
  if (size == 0 && !frontend::IsKnown(value)) {
    return absl::InvalidArgumentError(
        absl::StrCat(start, " to ", end, " by ", step, " has none of ", dim, " places"));
  }
  const int64_t version = node.node().version();
  const int64_t rest = size == 0 ? 0 : room - 1 - (size - 1) * std::abs(step);
  if (step > 0 || rest == 0 || version >= 2002000) {
    return node.Sliced(value, axis, size == 0 ? 0 : first, size, size <= 1 ? 1 : step);
  }
  if (version > 0 && version < 2001000) {
    return node.Sliced(value, axis, first - rest, size, size <= 1 ? 1 : step);
  }
  return node.FailMode(absl::StrCat("a step of ", step, " that does not end at the last place in ",
                                    "front of the end, which versions of Paddle read differently"),
                       "export the model with Paddle 2.2 or later");
}

absl::Status ImportSlice(OpImporter& node) {
  ASSIGN_OR_RETURN(ValueRef value, node.In("Input"));
  ASSIGN_OR_RETURN(const std::vector<int64_t> axes, node.RequiredInts("axes"));
  ASSIGN_OR_RETURN(const std::vector<int64_t> starts,
                   node.IntsAt("StartsTensor", "StartsTensorList", "starts"));
  ASSIGN_OR_RETURN(const std::vector<int64_t> ends,
                   node.IntsAt("EndsTensor", "EndsTensorList", "ends"));
  ASSIGN_OR_RETURN(std::vector<int64_t> steps,
                   node.IntsAt("StridesTensor", "StridesTensorList", "strides"));
  if (steps.empty()) steps.assign(axes.size(), 1);
  if (starts.size() != axes.size() || ends.size() != axes.size() || steps.size() != axes.size()) {
    return absl::InvalidArgumentError("axes, starts and ends are of unlike lengths");
  }
  const int64_t rank = RankOf(value);
  for (size_t i = 0; i < axes.size(); ++i) {
    ASSIGN_OR_RETURN(const int64_t axis, node.Axis(axes[i], rank));
    ASSIGN_OR_RETURN(value, Cut(node, value, axis, starts[i], ends[i], steps[i]));
  }
  ASSIGN_OR_RETURN(std::vector<int64_t> gone, node.IntsOr("decrease_axis", {}));
  ASSIGN_OR_RETURN(gone, node.Axes(std::move(gone), rank));
  Shape shape;
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t dim = value->type.shape[static_cast<size_t>(i)];
    if (!std::binary_search(gone.begin(), gone.end(), i)) {
      shape.push_back(dim);
    } else if (dim != 1) {
      return absl::InvalidArgumentError("decrease_axis names a dimension that is not 1");
    }
  }
  // A Paddle of before 2.6 has no scalars: the last dimension stays.
  if (shape.empty() && rank > 0) shape.push_back(1);
  return node.Give("Out", node.Reshaped(value, std::move(shape)));
}

absl::Status PadByMode(OpImporter& node, const ValueRef& x, const std::string& mode, double fill,
                       std::vector<int64_t> paddings) {
  for (const int64_t padding : paddings) {
    if (padding < 0 || padding > kMaxElements) return absl::InvalidArgumentError("a wild padding");
  }
  if (mode == "constant") return node.Give("Out", node.Padded(x, std::move(paddings), fill));
  if (mode == "reflect") return node.Give("Out", frontend::MirrorPadded(node, x, paddings, false));
  if (mode != "edge" && mode != "replicate") {
    return node.FailMode(absl::StrCat("padding '", Printable(mode, 40), "'"),
                         "use constant, reflect or edge");
  }
  ValueRef value = x;
  for (size_t axis = 0; axis < x->type.shape.size(); ++axis) {
    const int64_t dim = x->type.shape[axis];
    if (paddings[2 * axis] + paddings[2 * axis + 1] == 0) continue;
    std::vector<int64_t> indices;
    for (int64_t i = -paddings[2 * axis]; i < dim + paddings[2 * axis + 1]; ++i) {
      indices.push_back(std::clamp<int64_t>(i, 0, dim - 1));
    }
    ASSIGN_OR_RETURN(value, GatherAxis(node, value, static_cast<int64_t>(axis), indices));
  }
  return node.Give("Out", std::move(value));
}

// pad2d: top, bottom, left, right. pad3d: left, right, top, bottom, front, back.
absl::Status ImportPadImage(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef x, node.In("X"));
  ASSIGN_OR_RETURN(const std::vector<int64_t> pads, node.IntsAt("Paddings", "", "paddings"));
  ASSIGN_OR_RETURN(const std::string mode, node.StringOr("mode", "constant"));
  const bool is_3d = node.node().type() == "pad3d";
  ASSIGN_OR_RETURN(const double fill, node.FloatOr(is_3d ? "value" : "pad_value", 0));
  ASSIGN_OR_RETURN(const std::string format,
                   node.StringOr("data_format", is_3d ? "NCDHW" : "NCHW"));
  const size_t spatial = is_3d ? 3 : 2;
  if (x->type.shape.size() != spatial + 2 || pads.size() != 2 * spatial) {
    return absl::InvalidArgumentError(
        absl::StrCat(pads.size(), " paddings of ", TypeToString(x->type)));
  }
  const size_t first = format.back() == 'C' ? 1 : 2;
  std::vector<int64_t> paddings(2 * x->type.shape.size(), 0);
  for (size_t i = 0; i < spatial; ++i) {
    const size_t axis = first + (is_3d ? spatial - 1 - i : i);
    paddings[2 * axis] = pads[2 * i];
    paddings[2 * axis + 1] = pads[2 * i + 1];
  }
  return PadByMode(node, x, mode, fill, std::move(paddings));
}

absl::Status ImportPad(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef x, node.In("X"));
  ASSIGN_OR_RETURN(std::vector<int64_t> paddings, node.RequiredInts("paddings"));
  ASSIGN_OR_RETURN(const double fill, node.FloatOr("pad_value", 0));
  if (paddings.size() != 2 * x->type.shape.size()) {
    return absl::InvalidArgumentError("paddings need two numbers a dimension");
  }
  return PadByMode(node, x, "constant", fill, std::move(paddings));
}

// Slices of one axis.
absl::Status ImportGather(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef x, node.In("X"));
  ASSIGN_OR_RETURN(const ValueRef index, node.In("Index"));
  ASSIGN_OR_RETURN(int64_t axis, node.IntOr("axis", 0));
  if (node.Takes("Axis")) {
    ASSIGN_OR_RETURN(axis, node.ConstantInt(node.At("Axis"), "Axis"));
  }
  ASSIGN_OR_RETURN(axis, node.Axis(axis, RankOf(x)));
  if (!frontend::IsKnown(index)) {
    return node.Give("Out", frontend::LookedUp(node, x, index, axis, /*may_be_negative=*/true));
  }
  ASSIGN_OR_RETURN(std::vector<int64_t> indices, node.ConstantInts(node.At("Index"), "Index"));
  const int64_t dim = x->type.shape[static_cast<size_t>(axis)];
  for (int64_t& place : indices) {
    if (place < 0) place += dim;
    if (place < 0 || place >= dim) return absl::InvalidArgumentError("an index beyond the axis");
  }
  return node.Give("Out", GatherAxis(node, x, axis, indices));
}

absl::Status ImportFlip(OpImporter& node) {
  ASSIGN_OR_RETURN(ValueRef x, node.In("X"));
  ASSIGN_OR_RETURN(std::vector<int64_t> axes, node.RequiredInts("axis"));
  ASSIGN_OR_RETURN(axes, node.Axes(std::move(axes), RankOf(x)));
  for (const int64_t axis : axes) {
    const int64_t dim = x->type.shape[static_cast<size_t>(axis)];
    if (dim <= 1) continue;
    ASSIGN_OR_RETURN(x, node.Sliced(x, axis, dim - 1, dim, -1));
  }
  return node.Give("Out", std::move(x));
}

// Results: the slices along an axis, without it.
absl::Status ImportUnstack(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef x, node.In(node.Takes("X") ? "X" : "Input"));
  ASSIGN_OR_RETURN(int64_t axis, node.IntOr("axis", 0));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, RankOf(x)));
  Shape shape = x->type.shape;
  const int64_t count = shape[static_cast<size_t>(axis)];
  shape.erase(shape.begin() + axis);
  const absl::string_view parameter = node.node().type() == "unbind" ? "Out" : "Y";
  if (count != static_cast<int64_t>(node.ResultCount(parameter))) {
    return absl::InvalidArgumentError(
        absl::StrCat(count, " slices for ", node.ResultCount(parameter), " results"));
  }
  std::vector<ValueRef> parts;
  for (int64_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(const ValueRef part, node.Sliced(x, axis, i, 1));
    ASSIGN_OR_RETURN(parts.emplace_back(), node.Reshaped(part, shape));
  }
  return node.Give(parameter, std::move(parts));
}

// The place of the greatest or least element, of all with `flatten`.
absl::Status ImportArg(OpImporter& node) {
  ASSIGN_OR_RETURN(ValueRef x, node.In("X"));
  ASSIGN_OR_RETURN(int64_t axis, node.IntOr("axis", -1));
  ASSIGN_OR_RETURN(const bool keep_dims, node.BoolOr("keepdims", false));
  ASSIGN_OR_RETURN(const bool flatten, node.BoolOr("flatten", false));
  if (flatten) {
    ASSIGN_OR_RETURN(x, node.Reshaped(x, {ElementCount(x->type.shape)}));
    axis = 0;
  }
  ASSIGN_OR_RETURN(axis, node.Axis(axis, RankOf(x)));
  // A Paddle of before 2.6 has no scalars.
  const bool stays = keep_dims || RankOf(x) == 1;
  return node.Give(
      "Out",
      frontend::ArgOf(
          node, x, {.axis = axis, .keep_dims = stays, .is_min = node.node().type() == "arg_min"}));
}

absl::Status ImportWhere(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef holds, node.In("Condition"));
  ASSIGN_OR_RETURN(const ValueRef a, node.In("X"));
  ASSIGN_OR_RETURN(const ValueRef b, node.In("Y"));
  return node.Give("Out", frontend::Selected(node, holds, a, b));
}

absl::Status ImportOneHot(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef index, node.In("X"));
  ASSIGN_OR_RETURN(int64_t depth, node.IntOr("depth", 0));
  if (node.Takes("depth_tensor")) {
    ASSIGN_OR_RETURN(depth, node.ConstantInt(node.At("depth_tensor"), "depth_tensor"));
  }
  return node.Give("Out", frontend::OneHotOf(node, index, depth, node.Scalar(0), node.Scalar(1),
                                             RankOf(index), /*may_be_negative=*/false));
}

constexpr ImportRule kPickRules[] = {
    {"arg_max", ImportArg},       {"arg_min", ImportArg},     {"flip", ImportFlip},
    {"gather", ImportGather},     {"pad", ImportPad},         {"pad2d", ImportPadImage},
    {"pad3d", ImportPadImage},    {"slice", ImportSlice},     {"strided_slice", ImportSlice},
    {"unbind", ImportUnstack},    {"unstack", ImportUnstack}, {"where", ImportWhere},
    {"one_hot_v2", ImportOneHot},
};

}  // namespace

absl::Span<const ImportRule> PickRules() { return kPickRules; }

}  // namespace npuc::paddle
