// Operators that move values: shapes, order, joining, cutting, padding, repeating.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/gather.h"
#include "compiler_core/frontends/common/image.h"
#include "compiler_core/frontends/common/windows.h"
#include "compiler_core/frontends/mxnet/node_import.h"

namespace npuc::mxnet {
namespace {

absl::Status DoesNotFill(const NodeImporter& node, const std::vector<int64_t>& codes) {
  return absl::InvalidArgumentError(
      absl::StrCat(TypeToString(node.type(0)), " does not fill the shape ", ShapeToString(codes)));
}

// Follows the codes of a Reshape (src/operator/tensor/matrix_op-inl.h): 0 copies a dimension, -1 is
// what is left, -2 copies the rest, -3 merges two, -4 splits one into the two numbers behind it.
class ReshapeCodes {
 public:
  ReshapeCodes(Shape from, std::vector<int64_t> codes)
      : from_(std::move(from)), codes_(std::move(codes)) {}

  // nullopt: the codes do not fit the operand's dimensions.
  std::optional<Shape> Follow() {
    for (size_t i = 0; i < codes_.size(); ++i) {
      if (to_.size() > static_cast<size_t>(kMaxRank) || !Take(i)) return std::nullopt;
    }
    if (open_ < 0) return to_;
    int64_t known = 1;
    for (const int64_t dim : to_) known = std::min(known * dim, kMaxElements + 1);
    const int64_t count = ElementCount(from_);
    if (known == 0 || count % known != 0) return std::nullopt;
    to_[static_cast<size_t>(open_)] = count / known;
    return to_;
  }

 private:
  bool Take(size_t& i) {
    const int64_t code = codes_[i];
    const size_t left = from_.size() - std::min(at_, from_.size());
    if (code > 0 || code == -1) {
      if (code > kMaxElements || (code == -1 && open_ >= 0)) return false;
      // MXNet counts the codes here, not the dimensions that they made.
      if (code == -1 && i != to_.size()) return false;
      if (code == -1) open_ = static_cast<int>(to_.size());
      to_.push_back(code == -1 ? 1 : code);
      ++at_;
      return true;
    }
    if (code == 0 && left >= 1) {
      to_.push_back(from_[at_++]);
      return true;
    }
    if (code == -2) {
      while (at_ < from_.size()) to_.push_back(from_[at_++]);
      return true;
    }
    if (code == -3 && left >= 2) {
      to_.push_back(from_[at_] * from_[at_ + 1]);
      at_ += 2;
      return true;
    }
    return code == -4 && left >= 1 && i + 2 < codes_.size() && Split(i);
  }

  bool Split(size_t& i) {
    const int64_t dim = from_[at_++];
    int64_t first = codes_[++i];
    int64_t second = codes_[++i];
    if (first > dim || second > dim) return false;
    if (first == -1 && second > 0) first = dim / second;
    if (second == -1 && first > 0) second = dim / first;
    if (first < 1 || second < 1 || first * second != dim) return false;
    to_.insert(to_.end(), {first, second});
    return true;
  }

  const Shape from_;
  const std::vector<int64_t> codes_;
  Shape to_;
  size_t at_ = 0;
  int open_ = -1;
};

// The form of before version 0.8: 0 is what is left, keep_highest keeps the first dimension.
absl::Status ImportOldReshape(NodeImporter& node, Shape target) {
  ASSIGN_OR_RETURN(const bool keep_first, node.BoolOr("keep_highest", false));
  if (keep_first && node.rank(0) > 0) target[0] = node.shape(0)[0];
  std::vector<int64_t> codes = target;
  for (size_t i = keep_first ? 1 : 0; i < codes.size(); ++i) {
    if (codes[i] < 0) return DoesNotFill(node, target);
    if (codes[i] == 0) codes[i] = -1;
  }
  const std::optional<Shape> shape = ReshapeCodes(node.shape(0), codes).Follow();
  if (!shape.has_value()) return DoesNotFill(node, target);
  return node.SetOutput(node.Reshaped(node.input(0), *shape));
}

absl::Status ImportReshape(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(std::vector<int64_t> codes, node.IntsOr("shape", {}));
  ASSIGN_OR_RETURN(Shape target, node.IntsOr("target_shape", {}));
  if (codes.empty() && !target.empty()) return ImportOldReshape(node, std::move(target));
  if (codes.empty()) {
    return node.BadAttribute(absl::NotFoundError("attribute 'shape' is missing or empty"));
  }
  ASSIGN_OR_RETURN(const bool reverse, node.BoolOr("reverse", false));
  Shape from = node.shape(0);
  const std::vector<int64_t> stated = codes;
  if (reverse) {
    if (std::find(codes.begin(), codes.end(), -4) != codes.end()) {
      return node.FailMode("reverse with the code -4", "split the dimension in a Reshape before");
    }
    std::reverse(from.begin(), from.end());
    std::reverse(codes.begin(), codes.end());
  }
  std::optional<Shape> shape = ReshapeCodes(std::move(from), std::move(codes)).Follow();
  if (!shape.has_value()) return DoesNotFill(node, stated);
  if (reverse) std::reverse(shape->begin(), shape->end());
  return node.SetOutput(node.Reshaped(node.input(0), *std::move(shape)));
}

absl::Status ImportFlatten(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  if (node.rank(0) == 0 || node.shape(0)[0] == 0) return DoesNotFill(node, {0, -1});
  const int64_t items = node.shape(0)[0];
  return node.SetOutput(
      node.Reshaped(node.input(0), {items, node.type(0).element_count() / items}));
}

absl::Status ImportReshapeLike(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  for (const absl::string_view part : {"lhs_begin", "lhs_end", "rhs_begin", "rhs_end"}) {
    if (node.node().HasAttr(part)) {
      return node.FailMode(absl::StrCat("attribute '", part, "'"), "reshape all dimensions");
    }
  }
  return node.SetOutput(node.Reshaped(node.input(0), node.shape(1)));
}

absl::Status ImportTranspose(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(std::vector<int64_t> perm, node.IntsOr("axes", {}));
  if (perm.empty()) {
    for (int64_t axis = node.rank(0); axis-- > 0;) perm.push_back(axis);
  }
  return node.SetOutput(node.Transposed(node.input(0), std::move(perm)));
}

absl::Status ImportSwapAxis(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const int64_t first, node.AxisOr("dim1", 0));
  ASSIGN_OR_RETURN(const int64_t second, node.AxisOr("dim2", 0));
  std::vector<int64_t> perm;
  for (int64_t i = 0; i < node.rank(0); ++i) perm.push_back(i);
  std::swap(perm[static_cast<size_t>(first)], perm[static_cast<size_t>(second)]);
  return node.SetOutput(node.Transposed(node.input(0), std::move(perm)));
}

absl::Status ImportExpandDims(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(int64_t axis, node.RequiredInt("axis"));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0) + 1));
  Shape shape = node.shape(0);
  shape.insert(shape.begin() + axis, 1);
  return node.SetOutput(node.Reshaped(node.input(0), std::move(shape)));
}

// MXNet has no scalars: a vector of one element stays one.
absl::StatusOr<ValueRef> Squeezed(NodeImporter& node, const ValueRef& value,
                                  const std::vector<int64_t>& axes) {
  Shape shape;
  for (size_t i = 0; i < value->type.shape.size(); ++i) {
    const bool is_named =
        std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
    const int64_t dim = value->type.shape[i];
    if (is_named && dim != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("dimension ", i, " of ", TypeToString(value->type), " is not 1"));
    }
    if (!is_named && (dim != 1 || !axes.empty())) shape.push_back(dim);
  }
  if (shape.empty()) shape.push_back(1);
  return node.Reshaped(value, std::move(shape));
}

absl::Status ImportSqueeze(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const std::vector<int64_t> axes, node.AxesOr("axis", {}));
  return node.SetOutput(Squeezed(node, node.input(0), axes));
}

absl::StatusOr<std::vector<ValueRef>> AllOperands(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, static_cast<int>(kMaxInputsPerNode)));
  std::vector<ValueRef> values;
  for (int i = 0; i < node.input_count(); ++i) values.push_back(node.input(i));
  return values;
}

absl::Status ImportConcat(NodeImporter& node) {
  ASSIGN_OR_RETURN(const std::vector<ValueRef> values, AllOperands(node));
  ASSIGN_OR_RETURN(const int64_t axis, node.AxisOr("dim", 1));
  return node.SetOutput(node.Joined(values, axis));
}

absl::Status ImportStack(NodeImporter& node) {
  ASSIGN_OR_RETURN(std::vector<ValueRef> values, AllOperands(node));
  ASSIGN_OR_RETURN(int64_t axis, node.IntOr("axis", 0));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0) + 1));
  Shape shape = node.shape(0);
  shape.insert(shape.begin() + axis, 1);
  for (ValueRef& value : values) {
    ASSIGN_OR_RETURN(value, node.Reshaped(value, shape));
  }
  return node.SetOutput(node.Joined(values, axis));
}

// Parts [begin, end) of an axis, one of one place without that axis where `squeezes` says so.
absl::Status SetParts(NodeImporter& node, int64_t axis, const std::vector<int64_t>& begins,
                      bool squeezes) {
  const int64_t dim = node.shape(0)[static_cast<size_t>(axis)];
  std::vector<ValueRef> parts;
  for (size_t i = 0; i < begins.size(); ++i) {
    const int64_t end = i + 1 < begins.size() ? begins[i + 1] : dim;
    ASSIGN_OR_RETURN(ValueRef part, node.Sliced(node.input(0), axis, begins[i], end - begins[i]));
    if (squeezes) {
      ASSIGN_OR_RETURN(part, Squeezed(node, part, {axis}));
    }
    parts.push_back(std::move(part));
  }
  return node.SetOutputs(std::move(parts));
}

absl::Status ImportSliceChannel(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const int64_t count, node.RequiredInt("num_outputs"));
  ASSIGN_OR_RETURN(const int64_t axis, node.AxisOr("axis", 1));
  ASSIGN_OR_RETURN(const bool squeezes, node.BoolOr("squeeze_axis", false));
  const int64_t dim = node.shape(0)[static_cast<size_t>(axis)];
  if (count < 1 || count > kMaxOutputsPerNode || dim % count != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(count, " parts of axis ", axis, " of ", TypeToString(node.type(0))));
  }
  std::vector<int64_t> begins;
  for (int64_t i = 0; i < count; ++i) begins.push_back(i * (dim / count));
  return SetParts(node, axis, begins, squeezes);
}

// The indices are where each part begins, the first one's 0 among them.
absl::Status ImportSplitV2(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const int64_t axis, node.AxisOr("axis", 0));
  ASSIGN_OR_RETURN(const bool squeezes, node.BoolOr("squeeze_axis", false));
  ASSIGN_OR_RETURN(const int64_t sections, node.IntOr("sections", 0));
  ASSIGN_OR_RETURN(std::vector<int64_t> begins, node.IntsOr("indices", {}));
  const int64_t dim = node.shape(0)[static_cast<size_t>(axis)];
  if (sections > 0) {
    if (dim % sections != 0 || sections > kMaxOutputsPerNode) {
      return absl::InvalidArgumentError(
          absl::StrCat(sections, " parts of axis ", axis, " of ", TypeToString(node.type(0))));
    }
    begins.clear();
    for (int64_t i = 0; i < sections; ++i) begins.push_back(i * (dim / sections));
  }
  if (begins.empty() || begins[0] != 0 || begins.back() > dim ||
      !std::is_sorted(begins.begin(), begins.end())) {
    return absl::InvalidArgumentError(
        absl::StrCat("parts from ", ShapeToString(begins), " of ", TypeToString(node.type(0))));
  }
  return SetParts(node, axis, begins, squeezes);
}

// Python's [begin:end:step] of an axis.
absl::StatusOr<ValueRef> PythonSlice(NodeImporter& node, const ValueRef& value, int64_t axis,
                                     std::optional<int64_t> begin, std::optional<int64_t> end,
                                     int64_t step) {
  const int64_t dim = value->type.shape[static_cast<size_t>(axis)];
  if (step == 0) return absl::InvalidArgumentError("a step of 0");
  step = std::clamp<int64_t>(step, -kMaxElements, kMaxElements);
  const int64_t lowest = step > 0 ? 0 : -1;
  const int64_t highest = step > 0 ? dim : dim - 1;
  const auto bound = [&](std::optional<int64_t> at, int64_t otherwise) {
    if (!at.has_value()) return otherwise;
    const int64_t clamped = std::clamp<int64_t>(*at, -kMaxElements - dim, kMaxElements);
    return std::clamp<int64_t>(clamped < 0 ? clamped + dim : clamped, lowest, highest);
  };
  const int64_t first = bound(begin, step > 0 ? 0 : dim - 1);
  const int64_t last = bound(end, step > 0 ? dim : -1);
  const int64_t room = step > 0 ? last - first : first - last;
  const int64_t size = room <= 0 ? 0 : (room - 1) / std::abs(step) + 1;
  if (size == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("nothing is left of axis ", axis, " of ", TypeToString(value->type)));
  }
  return node.Sliced(value, axis, first, size, size == 1 ? 1 : step);
}

absl::Status ImportSliceAxis(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const int64_t axis, node.AxisOr("axis", 0));
  ASSIGN_OR_RETURN(const int64_t begin, node.IntOr("begin", 0));
  std::optional<int64_t> end;
  if (node.node().HasAttr("end")) {
    ASSIGN_OR_RETURN(end, node.RequiredInt("end"));
  }
  return node.SetOutput(PythonSlice(node, node.input(0), axis, begin, end, 1));
}

absl::Status ImportSlice(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  std::vector<std::optional<int64_t>> lists[3];
  constexpr absl::string_view kNames[] = {"begin", "end", "step"};
  for (size_t i = 0; i < 3; ++i) {
    auto list = node.node().OptionalInts(kNames[i]);
    if (!list.ok() && !absl::IsNotFound(list.status())) return node.BadAttribute(list.status());
    if (list.ok()) lists[i] = *std::move(list);
  }
  const size_t count = lists[0].size();
  if (lists[2].empty()) lists[2].assign(count, 1);
  if (lists[1].size() != count || lists[2].size() != count || count > node.shape(0).size()) {
    return absl::InvalidArgumentError(absl::StrCat("there are ", count, " begins, ",
                                                   lists[1].size(), " ends and ", lists[2].size(),
                                                   " steps"));
  }
  ValueRef value = node.input(0);
  for (size_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(value, PythonSlice(node, value, static_cast<int64_t>(i), lists[0][i],
                                        lists[1][i], lists[2][i].value_or(1)));
  }
  return node.SetOutput(std::move(value));
}

absl::Status ImportSliceLike(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  std::vector<int64_t> all;
  for (int64_t i = 0; i < node.rank(0); ++i) all.push_back(i);
  ASSIGN_OR_RETURN(const std::vector<int64_t> axes, node.AxesOr("axes", std::move(all)));
  ValueRef value = node.input(0);
  for (const int64_t axis : axes) {
    if (axis >= node.rank(1)) return absl::InvalidArgumentError("the operands' ranks differ");
    ASSIGN_OR_RETURN(
        value, PythonSlice(node, value, axis, 0, node.shape(1)[static_cast<size_t>(axis)], 1));
  }
  return node.SetOutput(std::move(value));
}

// The legacy Crop of an image to h_w, or to the size of a second operand.
absl::Status ImportCrop(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 2));
  ASSIGN_OR_RETURN(const std::vector<int64_t> offset, node.IntsOr("offset", {0, 0}));
  ASSIGN_OR_RETURN(std::vector<int64_t> size, node.IntsOr("h_w", {0, 0}));
  ASSIGN_OR_RETURN(const bool is_centred, node.BoolOr("center_crop", false));
  if (node.rank(0) != 4 || offset.size() != 2 || size.size() != 2 ||
      (node.has(1) && node.rank(1) != 4)) {
    return absl::InvalidArgumentError("operands, offset and h_w are not those of an image");
  }
  ValueRef value = node.input(0);
  for (size_t i = 0; i < 2; ++i) {
    const int64_t dim = node.shape(0)[i + 2];
    if (node.has(1)) size[i] = node.shape(1)[i + 2];
    const int64_t begin = is_centred ? (dim - size[i]) / 2 : offset[i];
    if (size[i] < 1 || begin < 0 || size[i] > dim || begin > dim - size[i]) {
      return absl::InvalidArgumentError(
          absl::StrCat("a crop to ", ShapeToString(size), " of ", TypeToString(node.type(0))));
    }
    ASSIGN_OR_RETURN(value, node.Sliced(value, static_cast<int64_t>(i) + 2, begin, size[i]));
  }
  return node.SetOutput(std::move(value));
}

absl::Status ImportPad(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const std::string mode, node.StringOr("mode", "constant"));
  ASSIGN_OR_RETURN(std::vector<int64_t> pads, node.IntsOr("pad_width", {}));
  ASSIGN_OR_RETURN(const double fill, node.FloatOr("constant_value", 0));
  const bool fits = pads.size() == 2 * node.shape(0).size() &&
                    std::all_of(pads.begin(), pads.end(),
                                [](int64_t pad) { return pad >= 0 && pad <= kMaxElements; });
  if (!fits) {
    return node.BadAttribute(absl::InvalidArgumentError(absl::StrCat(
        "attribute 'pad_width' is ", ShapeToString(pads), " for ", TypeToString(node.type(0)))));
  }
  if (mode == "constant") return node.SetOutput(node.Padded(node.input(0), std::move(pads), fill));
  if (mode == "reflect") return node.SetOutput(MirrorPadded(node, node.input(0), pads, false));
  if (mode != "edge") return node.BadChoice("mode", mode, "constant, edge or reflect");
  ValueRef value = node.input(0);
  for (size_t axis = 0; axis < node.shape(0).size(); ++axis) {
    const int64_t dim = node.shape(0)[axis];
    const int64_t size = dim + pads[2 * axis] + pads[2 * axis + 1];
    if (size == dim) continue;
    if (dim < 1 || size > kMaxElements) return absl::InvalidArgumentError("no edge to repeat");
    std::vector<int64_t> indices;
    for (int64_t i = 0; i < size; ++i) {
      indices.push_back(std::clamp<int64_t>(i - pads[2 * axis], 0, dim - 1));
    }
    ASSIGN_OR_RETURN(value, GatherAxis(node, value, static_cast<int64_t>(axis), indices));
  }
  return node.SetOutput(std::move(value));
}

// shape: 0 keeps a dimension.
absl::Status ImportBroadcastTo(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(Shape shape, node.IntsOr("shape", {}));
  if (shape.size() != node.shape(0).size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(TypeToString(node.type(0)), " to ", ShapeToString(shape)));
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) shape[i] = node.shape(0)[i];
  }
  RETURN_IF_ERROR(CheckShape(shape));
  return node.SetOutput(BroadcastTo(node, node.input(0), shape));
}

absl::Status ImportBroadcastAxis(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const std::vector<int64_t> axes, node.IntsOr("axis", {}));
  ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, node.IntsOr("size", {}));
  if (axes.size() != sizes.size()) return absl::InvalidArgumentError("axis and size differ");
  Shape shape = node.shape(0);
  for (size_t i = 0; i < axes.size(); ++i) {
    ASSIGN_OR_RETURN(const int64_t axis, node.Axis(axes[i], node.rank(0)));
    shape[static_cast<size_t>(axis)] = sizes[i];
  }
  RETURN_IF_ERROR(CheckShape(shape));
  return node.SetOutput(BroadcastTo(node, node.input(0), shape));
}

absl::Status ImportBroadcastLike(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  if (node.node().HasAttr("lhs_axes") || node.node().HasAttr("rhs_axes")) {
    return node.FailMode("attribute 'lhs_axes' or 'rhs_axes'", "broadcast all dimensions");
  }
  return node.SetOutput(BroadcastTo(node, node.input(0), node.shape(1)));
}

absl::Status ImportTile(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(std::vector<int64_t> reps, node.IntsOr("reps", {}));
  ValueRef value = node.input(0);
  Shape shape = node.shape(0);
  if (shape.size() < reps.size()) shape.insert(shape.begin(), reps.size() - shape.size(), 1);
  reps.insert(reps.begin(), shape.size() - reps.size(), 1);
  ASSIGN_OR_RETURN(value, node.Reshaped(value, shape));
  for (size_t axis = 0; axis < reps.size(); ++axis) {
    if (reps[axis] < 1 || reps[axis] > static_cast<int64_t>(kMaxInputsPerNode)) {
      return absl::InvalidArgumentError(absl::StrCat(reps[axis], " repetitions"));
    }
    if (reps[axis] == 1) continue;
    const std::vector<ValueRef> copies(static_cast<size_t>(reps[axis]), value);
    ASSIGN_OR_RETURN(value, node.Joined(copies, static_cast<int64_t>(axis)));
  }
  return node.SetOutput(std::move(value));
}

// [N,C,...] images; MXNet orders the channels of a block as depth, then place (mode DCR).
absl::Status ImportDepthToSpace(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const int64_t block, node.RequiredInt("block_size"));
  if (node.rank(0) != 4) return absl::InvalidArgumentError("the operand is no image");
  ASSIGN_OR_RETURN(ValueRef x, ChannelsLast(node, node.input(0)));
  ASSIGN_OR_RETURN(x, DepthToSpace(node, x, block));
  return node.SetOutput(ChannelsFirst(node, x));
}
absl::Status ImportSpaceToDepth(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const int64_t block, node.RequiredInt("block_size"));
  if (node.rank(0) != 4) return absl::InvalidArgumentError("the operand is no image");
  ASSIGN_OR_RETURN(ValueRef x, ChannelsLast(node, node.input(0)));
  ASSIGN_OR_RETURN(x, SpaceToDepth(node, x, block));
  return node.SetOutput(ChannelsFirst(node, x));
}

template <int kValue>
absl::Status ImportFilled(NodeImporter& node) {
  Shape shape;
  if (node.input_count() > 0) {
    RETURN_IF_ERROR(node.ExpectInputs(1, 1));
    shape = node.shape(0);
  } else {
    ASSIGN_OR_RETURN(shape, node.IntsOr("shape", {}));
    RETURN_IF_ERROR(CheckShape(shape));
  }
  const int64_t count = ElementCount(shape);
  if (count > (1 << 20)) return node.FailMode("a constant of more than 2^20 elements", "use less");
  return node.SetOutput(node.Floats(
      std::move(shape), std::vector<double>(static_cast<size_t>(count), kValue), DType::kFloat32));
}

constexpr ImportRule kShapeRules[] = {
    {"Concat", ImportConcat},
    {"Crop", ImportCrop},
    {"Flatten", ImportFlatten},
    {"Pad", ImportPad},
    {"Reshape", ImportReshape},
    {"SliceChannel", ImportSliceChannel},
    {"SwapAxis", ImportSwapAxis},
    {"_ones", ImportFilled<1>},
    {"_split_v2", ImportSplitV2},
    {"_zeros", ImportFilled<0>},
    {"broadcast_axes", ImportBroadcastAxis},
    {"broadcast_axis", ImportBroadcastAxis},
    {"broadcast_like", ImportBroadcastLike},
    {"broadcast_to", ImportBroadcastTo},
    {"concat", ImportConcat},
    {"crop", ImportSlice},
    {"depth_to_space", ImportDepthToSpace},
    {"expand_dims", ImportExpandDims},
    {"flatten", ImportFlatten},
    {"ones_like", ImportFilled<1>},
    {"pad", ImportPad},
    {"reshape", ImportReshape},
    {"reshape_like", ImportReshapeLike},
    {"slice", ImportSlice},
    {"slice_axis", ImportSliceAxis},
    {"slice_like", ImportSliceLike},
    {"space_to_depth", ImportSpaceToDepth},
    {"split", ImportSliceChannel},
    {"squeeze", ImportSqueeze},
    {"stack", ImportStack},
    {"swapaxes", ImportSwapAxis},
    {"tile", ImportTile},
    {"transpose", ImportTranspose},
    {"zeros_like", ImportFilled<0>},
};

}  // namespace

absl::Span<const ImportRule> ShapeRules() { return kShapeRules; }

}  // namespace npuc::mxnet
