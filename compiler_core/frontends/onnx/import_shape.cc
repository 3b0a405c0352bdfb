// Operators that move values: shapes, order, joining, cutting, padding, repeating.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/gather.h"
#include "compiler_core/frontends/onnx/node_import.h"

namespace npuc::onnx {
namespace {

absl::Status ImportReshape(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(Shape shape, node.ConstantInts(1, "shape"));
  ASSIGN_OR_RETURN(const bool allow_zero, node.BoolOr("allowzero", false));
  int64_t known = 1;
  int64_t* unknown = nullptr;
  if (shape.size() > kMaxRank) return absl::InvalidArgumentError("the shape has too many dims");
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && !allow_zero && i < node.shape(0).size()) shape[i] = node.shape(0)[i];
    if (shape[i] == -1 && unknown == nullptr) {
      unknown = &shape[i];
      continue;
    }
    if (shape[i] < 0 || shape[i] > kMaxElements) {
      return absl::InvalidArgumentError(absl::StrCat("the shape is ", ShapeToString(shape)));
    }
    known = std::min(known * std::max<int64_t>(shape[i], 0), kMaxElements + 1);
  }
  const int64_t count = node.type(0).element_count();
  if (unknown != nullptr) {
    if (known == 0 || count % known != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          TypeToString(node.type(0)), " does not fill the shape ", ShapeToString(shape)));
    }
    *unknown = count / known;
  }
  return node.SetOutput(node.Reshaped(node.input(0), std::move(shape)));
}

absl::Status ImportFlatten(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(int64_t axis, node.IntOr("axis", 1));
  if (axis != node.rank(0)) {
    ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0)));
  }
  Shape shape = {1, 1};
  for (int64_t i = 0; i < node.rank(0); ++i) {
    shape[i < axis ? 0 : 1] *= node.shape(0)[static_cast<size_t>(i)];
  }
  return node.SetOutput(node.Reshaped(node.input(0), std::move(shape)));
}

absl::Status ImportSqueeze(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 2));
  ASSIGN_OR_RETURN(const auto given, node.IntsAt(1, "axes"));
  ASSIGN_OR_RETURN(const std::vector<int64_t> axes,
                   node.Axes(given.value_or(std::vector<int64_t>()), node.rank(0)));
  ASSIGN_OR_RETURN(Shape shape, node.SqueezedShape(axes, !given.has_value()));
  return node.SetOutput(node.Reshaped(node.input(0), std::move(shape)));
}

absl::Status ImportUnsqueeze(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 2));
  ASSIGN_OR_RETURN(const auto given, node.IntsAt(1, "axes"));
  std::vector<int64_t> axes = given.value_or(std::vector<int64_t>());
  const int64_t rank = node.rank(0) + static_cast<int64_t>(axes.size());
  ASSIGN_OR_RETURN(axes, node.Axes(std::move(axes), rank));
  Shape shape = node.shape(0);
  for (const int64_t axis : axes) {
    if (axis > static_cast<int64_t>(shape.size())) {
      return absl::InvalidArgumentError("an axis is named twice");
    }
    shape.insert(shape.begin() + axis, 1);
  }
  return node.SetOutput(node.Reshaped(node.input(0), std::move(shape)));
}

absl::Status ImportTranspose(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  std::vector<int64_t> reversed;
  for (int64_t i = node.rank(0); i-- > 0;) reversed.push_back(i);
  ASSIGN_OR_RETURN(std::vector<int64_t> perm, node.IntsOr("perm", std::move(reversed)));
  return node.SetOutput(node.Transposed(node.input(0), std::move(perm)));
}

absl::Status ImportConcat(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, kMaxInputsPerNode));
  ASSIGN_OR_RETURN(int64_t axis, node.IntOr("axis", 1));
  std::vector<ValueRef> values;
  for (int i = 0; i < node.input_count(); ++i) {
    if (!node.has(i)) return node.ExpectInputs(node.input_count(), kMaxInputsPerNode);
    values.push_back(node.input(i));
  }
  ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0)));
  return node.SetOutput(node.Joined(values, axis));
}

absl::Status ImportSplit(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 2));
  ASSIGN_OR_RETURN(int64_t axis, node.IntOr("axis", 0));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0)));
  const int64_t dim = node.shape(0)[static_cast<size_t>(axis)];
  ASSIGN_OR_RETURN(auto sizes, node.IntsAt(1, "split"));
  if (!sizes.has_value()) {
    ASSIGN_OR_RETURN(const int64_t parts, node.IntOr("num_outputs", node.node().output_count()));
    if (parts < 1 || parts > kMaxInputsPerNode || parts != node.node().output_count()) {
      return node.BadAttribute(absl::InvalidArgumentError(
          absl::StrCat("attribute 'num_outputs' is ", parts, "; the node has ",
                       node.node().output_count(), " results")));
    }
    // The last part is what is left.
    const int64_t each = (dim + parts - 1) / parts;
    sizes.emplace();
    for (int64_t i = 0; i < parts; ++i) {
      sizes->push_back(std::clamp<int64_t>(dim - i * each, 0, each));
    }
  }
  if (sizes->size() == 1 && (*sizes)[0] == dim) return node.SetOutput(node.input(0));
  ASSIGN_OR_RETURN(
      std::vector<ValueRef> parts,
      node.EmitAll("Split", {node.input(0)}, {{"axis", axis}, {"sizes", *std::move(sizes)}}));
  return node.SetOutputs(std::move(parts));
}

// starts, ends, axes and steps, as operands or, before operator set 10, as attributes.
struct SliceRanges {
  std::vector<int64_t> starts;
  std::vector<int64_t> ends;
  std::vector<int64_t> axes;
  std::vector<int64_t> steps;
};

absl::StatusOr<SliceRanges> ReadSlice(NodeImporter& node) {
  SliceRanges r;
  ASSIGN_OR_RETURN(auto starts, node.IntsAt(1, "starts"));
  ASSIGN_OR_RETURN(auto ends, node.IntsAt(2, "ends"));
  ASSIGN_OR_RETURN(auto axes, node.IntsAt(3, "axes"));
  ASSIGN_OR_RETURN(auto steps, node.IntsAt(4, "steps"));
  r.starts = starts.value_or(std::vector<int64_t>());
  r.ends = ends.value_or(std::vector<int64_t>());
  const size_t count = r.starts.size();
  for (size_t i = 0; i < count && !axes.has_value(); ++i) {
    r.axes.push_back(static_cast<int64_t>(i));
  }
  if (axes.has_value()) r.axes = *axes;
  r.steps = steps.value_or(std::vector<int64_t>(count, 1));
  if (r.ends.size() != count || r.axes.size() != count || r.steps.size() != count) {
    return absl::InvalidArgumentError(absl::StrCat("there are ", count, " starts, ", r.ends.size(),
                                                   " ends, ", r.axes.size(), " axes and ",
                                                   r.steps.size(), " steps"));
  }
  return r;
}

absl::Status ImportSlice(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 5));
  ASSIGN_OR_RETURN(const SliceRanges r, ReadSlice(node));
  ValueRef value = node.input(0);
  for (size_t i = 0; i < r.starts.size(); ++i) {
    ASSIGN_OR_RETURN(const int64_t axis, node.Axis(r.axes[i], node.rank(0)));
    const int64_t dim = value->type.shape[static_cast<size_t>(axis)];
    const int64_t step = std::clamp<int64_t>(r.steps[i], -kMaxElements, kMaxElements);
    if (step == 0) return absl::InvalidArgumentError("a step of 0");
    const auto bound = [&](int64_t at) {
      if (at < 0) at = at < -dim ? -1 : at + dim;
      return step > 0 ? std::clamp<int64_t>(at, 0, dim) : std::clamp<int64_t>(at, -1, dim - 1);
    };
    const int64_t start = r.starts[i] < -dim && step > 0 ? 0 : bound(r.starts[i]);
    const int64_t end = bound(r.ends[i]);
    const int64_t room = step > 0 ? end - start : start - end;
    const int64_t size = room <= 0 ? 0 : (room - 1) / std::abs(step) + 1;
    ASSIGN_OR_RETURN(value,
                     node.Sliced(value, axis, size == 0 ? 0 : start, size, size <= 1 ? 1 : step));
  }
  return node.SetOutput(std::move(value));
}

// Which element of an axis of `dim` each place of the padded axis shows.
absl::StatusOr<std::vector<int64_t>> MirroredIndices(int64_t dim, int64_t before, int64_t after,
                                                     absl::string_view mode) {
  const int64_t size = dim + before + after;
  if (dim < 1 || size < 0 || size > kMaxElements) {
    return absl::InvalidArgumentError(absl::StrCat("pads ", before, " and ", after, " of ", dim));
  }
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < size; ++i) {
    int64_t at = i - before;
    if (mode == "edge") {
      at = std::clamp<int64_t>(at, 0, dim - 1);
    } else if (mode == "wrap") {
      at = (at % dim + dim) % dim;
    } else {
      const int64_t period = std::max<int64_t>(2 * (dim - 1), 1);
      at = (at % period + period) % period;
      at = at < dim ? at : period - at;
    }
    indices.push_back(dim == 1 ? 0 : at);
  }
  return indices;
}

// Pads in the order before of every axis, after of every axis.
absl::StatusOr<std::vector<int64_t>> ReadPads(NodeImporter& node) {
  ASSIGN_OR_RETURN(const auto given, node.IntsAt(1, "pads"));
  const std::vector<int64_t> pads = given.value_or(std::vector<int64_t>());
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < node.rank(0); ++i) axes.push_back(i);
  if (node.has(3)) {
    ASSIGN_OR_RETURN(axes, node.ConstantInts(3, "axes"));
  }
  std::vector<int64_t> paddings(2 * node.shape(0).size(), 0);
  if (pads.size() != 2 * axes.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("there are ", pads.size(), " pads for ", axes.size(), " axes"));
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    ASSIGN_OR_RETURN(const int64_t axis, node.Axis(axes[i], node.rank(0)));
    for (const bool is_after : {false, true}) {
      const int64_t pad = pads[i + (is_after ? axes.size() : 0)];
      if (pad < -kMaxElements || pad > kMaxElements) {
        return absl::InvalidArgumentError(absl::StrCat("a pad of ", pad));
      }
      paddings[static_cast<size_t>(2 * axis) + (is_after ? 1 : 0)] = pad;
    }
  }
  return paddings;
}

absl::Status ImportPad(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 4));
  ASSIGN_OR_RETURN(const std::string mode, node.StringOr("mode", "constant"));
  ASSIGN_OR_RETURN(const std::vector<int64_t> paddings, ReadPads(node));
  if (mode == "constant") {
    ASSIGN_OR_RETURN(double fill, node.FloatOr("value", 0));
    if (node.has(2)) {
      ASSIGN_OR_RETURN(const Tensor value, node.Constant(2, "padding value"));
      if (value.element_count() != 1) {
        return absl::InvalidArgumentError("the padding value must be one element");
      }
      fill = value.at(0);
      constexpr double kFirstInexactInteger = 0x1p53;  // 2^53 + 1 is the same double
      if (IsInteger(value.dtype()) && std::fabs(fill) >= kFirstInexactInteger) {
        return node.FailMode(absl::StrCat("a padding value of ", value.int_at(0)),
                             "pad with a value nearer to 0 than 2^53");
      }
    }
    return node.SetOutput(node.Padded(node.input(0), paddings, fill));
  }
  if (mode != "reflect" && mode != "edge" && mode != "wrap") {
    return node.BadAttribute(absl::InvalidArgumentError(
        absl::StrCat("attribute 'mode' is '", Printable(mode),
                     "'; allowed are constant, reflect, edge and wrap")));
  }
  ValueRef value = node.input(0);
  for (int64_t axis = 0; axis < node.rank(0); ++axis) {
    const size_t at = static_cast<size_t>(2 * axis);
    if (paddings[at] == 0 && paddings[at + 1] == 0) continue;
    ASSIGN_OR_RETURN(const std::vector<int64_t> indices,
                     MirroredIndices(value->type.shape[static_cast<size_t>(axis)], paddings[at],
                                     paddings[at + 1], mode));
    ASSIGN_OR_RETURN(value, GatherAxis(node, value, axis, indices));
  }
  return node.SetOutput(std::move(value));
}

absl::Status ImportExpand(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(Shape shape, node.ConstantInts(1, "shape"));
  RETURN_IF_ERROR(CheckShape(shape));
  // The shapes broadcast against each other.
  Shape joint = node.shape(0);
  while (joint.size() < shape.size()) joint.insert(joint.begin(), 1);
  while (shape.size() < joint.size()) shape.insert(shape.begin(), 1);
  for (size_t i = 0; i < joint.size(); ++i) {
    if (joint[i] == 1) joint[i] = shape[i];
  }
  return node.SetOutput(BroadcastTo(node, node.input(0), joint));
}

absl::Status ImportTile(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const std::vector<int64_t> repeats, node.ConstantInts(1, "repeats"));
  if (static_cast<int64_t>(repeats.size()) != node.rank(0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("there are ", repeats.size(), " repeats for ", TypeToString(node.type(0))));
  }
  ValueRef value = node.input(0);
  for (size_t axis = 0; axis < repeats.size(); ++axis) {
    if (repeats[axis] < 1 || repeats[axis] > kMaxInputsPerNode) {
      return node.FailMode(absl::StrCat("repeat ", axis, " is ", repeats[axis]),
                           absl::StrCat("repeat 1 to ", kMaxInputsPerNode, " times"));
    }
    const std::vector<ValueRef> copies(static_cast<size_t>(repeats[axis]), value);
    ASSIGN_OR_RETURN(value, node.Joined(copies, static_cast<int64_t>(axis)));
  }
  return node.SetOutput(std::move(value));
}

absl::Status ImportDepthToSpace(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const int64_t b, node.RequiredInt("blocksize"));
  ASSIGN_OR_RETURN(const std::string mode, node.StringOr("mode", "DCR"));
  const Shape& s = node.shape(0);
  if (node.rank(0) != 4 || b < 1 || b > 4096 || s[1] % (b * b) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("block ", b, " does not divide the channels of ", TypeToString(node.type(0))));
  }
  const int64_t c = s[1] / (b * b);
  const bool is_dcr = mode == "DCR";
  ASSIGN_OR_RETURN(ValueRef y,
                   node.Reshaped(node.input(0), is_dcr ? Shape{s[0], b, b, c, s[2], s[3]}
                                                       : Shape{s[0], c, b, b, s[2], s[3]}));
  ASSIGN_OR_RETURN(y, node.Transposed(y, is_dcr ? std::vector<int64_t>{0, 3, 4, 1, 5, 2}
                                                : std::vector<int64_t>{0, 1, 4, 2, 5, 3}));
  return node.SetOutput(node.Reshaped(y, {s[0], c, s[2] * b, s[3] * b}));
}

absl::Status ImportSpaceToDepth(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const int64_t b, node.RequiredInt("blocksize"));
  const Shape& s = node.shape(0);
  if (node.rank(0) != 4 || b < 1 || b > 4096 || s[2] % b != 0 || s[3] % b != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("block ", b, " does not divide ", TypeToString(node.type(0))));
  }
  ASSIGN_OR_RETURN(ValueRef y,
                   node.Reshaped(node.input(0), {s[0], s[1], s[2] / b, b, s[3] / b, b}));
  ASSIGN_OR_RETURN(y, node.Transposed(y, {0, 3, 5, 1, 2, 4}));
  return node.SetOutput(node.Reshaped(y, {s[0], s[1] * b * b, s[2] / b, s[3] / b}));
}

absl::Status ImportCenterCropPad(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const std::vector<int64_t> wanted, node.ConstantInts(1, "shape"));
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < node.rank(0); ++i) axes.push_back(i);
  ASSIGN_OR_RETURN(axes, node.IntsOr("axes", axes));
  if (wanted.size() != axes.size()) return absl::InvalidArgumentError("shape and axes differ");
  std::vector<int64_t> paddings(2 * node.shape(0).size(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    ASSIGN_OR_RETURN(const int64_t axis, node.Axis(axes[i], node.rank(0)));
    if (wanted[i] < 0 || wanted[i] > kMaxElements) {
      return absl::InvalidArgumentError(absl::StrCat("a dimension of ", wanted[i]));
    }
    const size_t at = static_cast<size_t>(axis);
    const int64_t more = wanted[i] - node.shape(0)[at];
    // The odd element comes behind, or is cut there.
    const int64_t before = more >= 0 ? more / 2 : -((-more) / 2);
    paddings[2 * at] = before;
    paddings[2 * at + 1] = more - before;
  }
  return node.SetOutput(node.Padded(node.input(0), std::move(paddings), 0));
}

constexpr ImportRule kShapeRules[] = {
    {"CenterCropPad", ImportCenterCropPad},
    {"Concat", ImportConcat},
    {"DepthToSpace", ImportDepthToSpace},
    {"Expand", ImportExpand},
    {"Flatten", ImportFlatten},
    {"Pad", ImportPad},
    {"Reshape", ImportReshape},
    {"Slice", ImportSlice},
    {"SpaceToDepth", ImportSpaceToDepth},
    {"Split", ImportSplit},
    {"Squeeze", ImportSqueeze},
    {"Tile", ImportTile},
    {"Transpose", ImportTranspose},
    {"Unsqueeze", ImportUnsqueeze},
};

}  // namespace

absl::Span<const ImportRule> ShapeRules() { return kShapeRules; }

}  // namespace npuc::onnx
