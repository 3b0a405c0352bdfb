// Slice, StridedSlice with all its masks, and ReverseV2.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/gather.h"
#include "compiler_core/frontends/tensorflow/node_import.h"

namespace npuc::tf {
namespace {

// A slice of each dimension, and the shape that the result gets afterwards.
struct SlicePlan {
  std::vector<int64_t> begin;
  std::vector<int64_t> size;
  std::vector<int64_t> strides;
  Shape shape;
};

absl::Status EmitSlice(NodeImporter& node, SlicePlan plan) {
  ValueRef value = node.input(0);
  const bool is_whole =
      plan.size == value->type.shape && std::all_of(plan.strides.begin(), plan.strides.end(),
                                                    [](int64_t stride) { return stride == 1; });
  if (!is_whole) {
    ASSIGN_OR_RETURN(value, node.Emit("Slice", {value},
                                      {{"begin", std::move(plan.begin)},
                                       {"size", std::move(plan.size)},
                                       {"strides", std::move(plan.strides)}}));
  }
  ASSIGN_OR_RETURN(value, node.Reshaped(value, std::move(plan.shape)));
  return node.SetOutput(std::move(value));
}

absl::Status ImportSlice(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(3, 3));
  SlicePlan plan;
  ASSIGN_OR_RETURN(plan.begin, node.ConstantInts(1, "begin"));
  ASSIGN_OR_RETURN(plan.size, node.ConstantInts(2, "size"));
  const Shape& shape = node.shape(0);
  if (plan.begin.size() != shape.size() || plan.size.size() != shape.size()) {
    return absl::InvalidArgumentError(absl::StrCat("begin ", ShapeToString(plan.begin),
                                                   " and size ", ShapeToString(plan.size),
                                                   " do not fit ", TypeToString(node.type(0))));
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool begins_inside = plan.begin[i] >= 0 && plan.begin[i] <= shape[i];
    if (begins_inside && plan.size[i] == -1) plan.size[i] = shape[i] - plan.begin[i];
    if (!begins_inside || plan.size[i] < 0 || plan.size[i] > shape[i] - plan.begin[i]) {
      return absl::InvalidArgumentError(absl::StrCat("begin ", plan.begin[i], " and size ",
                                                     plan.size[i], " leave dimension ", i, " of ",
                                                     TypeToString(node.type(0))));
    }
  }
  plan.strides.assign(shape.size(), 1);
  plan.shape = plan.size;
  return EmitSlice(node, std::move(plan));
}

struct Masks {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t ellipsis = 0;
  int64_t new_axis = 0;
  int64_t shrink_axis = 0;
};

absl::StatusOr<Masks> ReadMasks(NodeImporter& node) {
  Masks masks;
  ASSIGN_OR_RETURN(masks.begin, node.IntOr("begin_mask", 0));
  ASSIGN_OR_RETURN(masks.end, node.IntOr("end_mask", 0));
  ASSIGN_OR_RETURN(masks.ellipsis, node.IntOr("ellipsis_mask", 0));
  ASSIGN_OR_RETURN(masks.new_axis, node.IntOr("new_axis_mask", 0));
  ASSIGN_OR_RETURN(masks.shrink_axis, node.IntOr("shrink_axis_mask", 0));
  if ((masks.ellipsis & (masks.ellipsis - 1)) != 0) {
    return node.Fail(DiagnosticKind::kBadAttribute,
                     "attribute 'ellipsis_mask' names more than one dimension",
                     "export the model again");
  }
  return masks;
}

// One dimension by begin, end and stride, clamped as Python slices are.
absl::Status AddRange(int64_t dim, int64_t begin, int64_t end, int64_t stride, bool whole_begin,
                      bool whole_end, SlicePlan& plan) {
  if (stride == 0) return absl::InvalidArgumentError("a stride of 0");
  // Beyond the dimension every stride takes one element.
  stride = std::clamp<int64_t>(stride, -kMaxElements, kMaxElements);
  const int64_t low = stride > 0 ? 0 : -1;
  const int64_t high = stride > 0 ? dim : dim - 1;
  const auto bound = [&](int64_t index) {
    if (index < 0) index = index < -dim ? -1 - dim : index;
    return std::clamp(index < 0 ? index + dim : index, low, high);
  };
  const int64_t from = whole_begin ? (stride > 0 ? low : high) : bound(begin);
  const int64_t to = whole_end ? (stride > 0 ? high : low) : bound(end);
  const int64_t span = stride > 0 ? to - from : from - to;
  const int64_t step = stride > 0 ? stride : -stride;
  const int64_t size = span <= 0 ? 0 : (span + step - 1) / step;
  plan.begin.push_back(size == 0 ? 0 : from);
  plan.size.push_back(size);
  plan.strides.push_back(stride);
  plan.shape.push_back(size);
  return absl::OkStatus();
}

// One dimension by a single index; it leaves the shape.
absl::Status AddIndex(int64_t dim, int64_t index, SlicePlan& plan) {
  ASSIGN_OR_RETURN(plan.begin.emplace_back(),
                   frontend::IndexFromFront(index, dim, /*may_be_negative=*/true));
  plan.size.push_back(1);
  plan.strides.push_back(1);
  return absl::OkStatus();
}

absl::Status ImportStridedSlice(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(4, 4));
  ASSIGN_OR_RETURN(const Masks masks, ReadMasks(node));
  ASSIGN_OR_RETURN(const std::vector<int64_t> begin, node.ConstantInts(1, "begin"));
  ASSIGN_OR_RETURN(const std::vector<int64_t> end, node.ConstantInts(2, "end"));
  ASSIGN_OR_RETURN(const std::vector<int64_t> strides, node.ConstantInts(3, "strides"));
  const Shape& shape = node.shape(0);
  const size_t count = begin.size();
  if (count > 32 || end.size() != count || strides.size() != count) {
    return absl::InvalidArgumentError(absl::StrCat("begin, end and strides have ", count, ", ",
                                                   end.size(), " and ", strides.size(),
                                                   " entries; they must have as many each, up to "
                                                   "32"));
  }
  size_t named = 0;  // dimensions that entries other than the ellipsis and new axes take
  for (size_t i = 0; i < count; ++i) {
    if (((masks.ellipsis | masks.new_axis) >> i & 1) == 0) ++named;
  }
  if (named > shape.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the slice names ", named, " dimensions of ", TypeToString(node.type(0))));
  }
  SlicePlan plan;
  size_t dim = 0;
  const auto add_rest = [&](size_t rest) -> absl::Status {
    for (; rest > 0; --rest, ++dim) {
      RETURN_IF_ERROR(AddRange(shape[dim], 0, 0, 1, true, true, plan));
    }
    return absl::OkStatus();
  };
  bool has_ellipsis = false;
  for (size_t i = 0; i < count; ++i) {
    const auto bit = [&](int64_t mask) { return (mask >> i & 1) != 0; };
    if (bit(masks.ellipsis)) {
      has_ellipsis = true;
      RETURN_IF_ERROR(add_rest(shape.size() - named));
    } else if (bit(masks.new_axis)) {
      plan.shape.push_back(1);
    } else if (bit(masks.shrink_axis)) {
      RETURN_IF_ERROR(AddIndex(shape[dim++], begin[i], plan));
    } else {
      RETURN_IF_ERROR(AddRange(shape[dim++], begin[i], end[i], strides[i], bit(masks.begin),
                               bit(masks.end), plan));
    }
  }
  if (!has_ellipsis) RETURN_IF_ERROR(add_rest(shape.size() - dim));
  return EmitSlice(node, std::move(plan));
}

absl::Status ImportReverse(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(std::vector<int64_t> axes, node.ConstantInts(1, "axes"));
  ASSIGN_OR_RETURN(axes, node.Axes(std::move(axes), node.rank(0)));
  const Shape& shape = node.shape(0);
  SlicePlan plan;
  plan.begin.assign(shape.size(), 0);
  plan.strides.assign(shape.size(), 1);
  plan.size = plan.shape = shape;
  for (int64_t axis : axes) {
    const size_t i = static_cast<size_t>(axis);
    plan.begin[i] = shape[i] == 0 ? 0 : shape[i] - 1;
    plan.strides[i] = -1;
  }
  return EmitSlice(node, std::move(plan));
}

constexpr ImportRule kSliceRules[] = {
    {"ReverseV2", ImportReverse}, {"Slice", ImportSlice}, {"StridedSlice", ImportStridedSlice}};

}  // namespace

absl::Span<const ImportRule> SliceRules() { return kSliceRules; }

}  // namespace npuc::tf
