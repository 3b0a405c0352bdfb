// Operators that move data without computing: reshapes, transposes, concatenation, splits, padding.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/evaluator.h"
#include "compiler_core/frontends/common/gather.h"
#include "compiler_core/frontends/common/image.h"
#include "compiler_core/frontends/common/positions.h"
#include "compiler_core/frontends/common/selection.h"
#include "compiler_core/frontends/tensorflow/import_dilation.h"
#include "compiler_core/frontends/tensorflow/node_import.h"

namespace npuc::tf {
namespace {

absl::Status SetReshaped(NodeImporter& node, Shape shape) {
  if (FactsOf(*node.input(0)).group != nullptr) {
    RETURN_IF_ERROR(CheckShape(shape));
    if (ElementCount(shape) == node.type(0).element_count()) {
      return node.SetOutput(ReshapedInGroup(node, node.input(0), std::move(shape)));
    }
  }
  return node.SetOutput(node.Reshaped(node.input(0), std::move(shape)));
}

absl::Status ImportReshape(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(Shape shape, node.ConstantInts(1, "shape"));
  const Shape asked = shape;
  int64_t known = 1;
  int unknown = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == -1 && unknown < 0) {
      unknown = static_cast<int>(i);
      continue;
    }
    if (shape[i] < 0 || shape[i] > kMaxElements || known > kMaxElements) {
      return absl::InvalidArgumentError(
          absl::StrCat("the shape ", ShapeToString(asked),
                       " is not one; allowed are dimensions >= 0 and one -1"));
    }
    known *= shape[i];
  }
  const int64_t count = node.type(0).element_count();
  if (unknown >= 0) {
    if (known == 0 || count % known != 0) {
      return absl::InvalidArgumentError(absl::StrCat("a value of ", TypeToString(node.type(0)),
                                                     " does not reshape to ",
                                                     ShapeToString(asked)));
    }
    shape[static_cast<size_t>(unknown)] = count / known;
  }
  return SetReshaped(node, std::move(shape));
}

absl::Status ImportSqueeze(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  const bool old_name = !node.node().HasAttr("squeeze_dims") && node.node().HasAttr("axis");
  ASSIGN_OR_RETURN(std::vector<int64_t> axes, node.IntsOr(old_name ? "axis" : "squeeze_dims", {}));
  ASSIGN_OR_RETURN(axes, node.Axes(std::move(axes), node.rank(0)));
  ASSIGN_OR_RETURN(Shape shape, node.SqueezedShape(axes, axes.empty()));
  return SetReshaped(node, std::move(shape));
}

absl::Status ImportExpandDims(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(int64_t axis, node.ConstantInt(1, "axis"));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0) + 1));
  Shape shape = node.shape(0);
  shape.insert(shape.begin() + axis, 1);
  return SetReshaped(node, std::move(shape));
}

absl::Status ImportTranspose(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(std::vector<int64_t> perm, node.ConstantInts(1, "permutation"));
  for (int64_t& axis : perm) {
    ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0)));
  }
  return node.SetOutput(node.Transposed(node.input(0), std::move(perm)));
}

absl::Status Concatenate(NodeImporter& node, const std::vector<ValueRef>& values, int64_t axis) {
  ASSIGN_OR_RETURN(axis, node.Axis(axis, static_cast<int64_t>(values[0]->type.shape.size())));
  return node.SetOutput(node.Joined(values, axis));
}

absl::Status ImportConcat(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, kMaxInputsPerNode));
  ASSIGN_OR_RETURN(const int64_t axis, node.ConstantInt(0, "axis"));
  std::vector<ValueRef> values;
  for (int i = 1; i < node.input_count(); ++i) values.push_back(node.input(i));
  return Concatenate(node, values, axis);
}

absl::Status ImportConcatV2(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, kMaxInputsPerNode));
  const int last = node.input_count() - 1;
  ASSIGN_OR_RETURN(const int64_t axis, node.ConstantInt(last, "axis"));
  std::vector<ValueRef> values;
  for (int i = 0; i < last; ++i) values.push_back(node.input(i));
  return Concatenate(node, values, axis);
}

absl::Status ImportPack(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, kMaxInputsPerNode));
  ASSIGN_OR_RETURN(int64_t axis, node.IntOr("axis", 0));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0) + 1));
  std::vector<ValueRef> values;
  for (int i = 0; i < node.input_count(); ++i) {
    if (node.shape(i) != node.shape(0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("operand ", i, " is ", TypeToString(node.type(i)), ", operand 0 is ",
                       TypeToString(node.type(0)), "; all must have one shape"));
    }
    Shape shape = node.shape(i);
    shape.insert(shape.begin() + axis, 1);
    ASSIGN_OR_RETURN(values.emplace_back(), node.Reshaped(node.input(i), std::move(shape)));
  }
  return Concatenate(node, values, axis);
}

absl::Status ImportUnpack(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(int64_t axis, node.IntOr("axis", 0));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0)));
  Shape shape = node.shape(0);
  const int64_t count = shape[static_cast<size_t>(axis)];
  ASSIGN_OR_RETURN(const int64_t num, node.IntOr("num", count));
  if (num != count || count < 1 || count > kMaxInputsPerNode) {
    return absl::InvalidArgumentError(absl::StrCat("attribute 'num' is ", num, ", dimension ", axis,
                                                   " of ", TypeToString(node.type(0)),
                                                   " is not, or is not in 1..", kMaxInputsPerNode));
  }
  node.SetRewritten();
  ASSIGN_OR_RETURN(std::vector<ValueRef> parts,
                   node.EmitAll("Split", {node.input(0)},
                                {{"axis", axis},
                                 {"sizes", std::vector<int64_t>(static_cast<size_t>(count), 1)}}));
  shape.erase(shape.begin() + axis);
  for (ValueRef& part : parts) {
    ASSIGN_OR_RETURN(part, node.Reshaped(part, shape));
  }
  return node.SetOutputs(std::move(parts));
}

absl::Status SplitInto(NodeImporter& node, const ValueRef& value, int64_t axis,
                       std::vector<int64_t> sizes) {
  if (sizes.size() == 1 && sizes[0] == value->type.shape[static_cast<size_t>(axis)]) {
    return node.SetOutput(value);
  }
  ASSIGN_OR_RETURN(std::vector<ValueRef> parts,
                   node.EmitAll("Split", {value}, {{"axis", axis}, {"sizes", std::move(sizes)}}));
  return node.SetOutputs(std::move(parts));
}

absl::Status ImportSplit(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(int64_t axis, node.ConstantInt(0, "axis"));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(1)));
  ASSIGN_OR_RETURN(const int64_t count, node.RequiredInt("num_split"));
  const int64_t dim = node.shape(1)[static_cast<size_t>(axis)];
  if (count < 1 || count > kMaxInputsPerNode || dim % count != 0) {
    return absl::InvalidArgumentError(absl::StrCat("dimension ", axis, " of ",
                                                   TypeToString(node.type(1)),
                                                   " does not split into ", count, " equal parts"));
  }
  return SplitInto(node, node.input(1), axis,
                   std::vector<int64_t>(static_cast<size_t>(count), dim / count));
}

absl::Status ImportSplitV(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(3, 3));
  ASSIGN_OR_RETURN(std::vector<int64_t> sizes, node.ConstantInts(1, "sizes"));
  ASSIGN_OR_RETURN(int64_t axis, node.ConstantInt(2, "axis"));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0)));
  const int64_t dim = node.shape(0)[static_cast<size_t>(axis)];
  int64_t known = 0;
  int64_t* unknown = nullptr;
  for (int64_t& size : sizes) {
    const bool is_rest = size == -1 && unknown == nullptr;
    if (is_rest) unknown = &size;
    if (!is_rest && (size < 0 || size > dim)) {
      return absl::InvalidArgumentError(
          absl::StrCat("sizes ", ShapeToString(sizes), " do not split a dimension of ", dim));
    }
    if (!is_rest) known += size;
  }
  if (unknown != nullptr && known <= dim) *unknown = dim - known;
  return SplitInto(node, node.input(0), axis, std::move(sizes));
}

// Paddings as TensorFlow has them, [rank, 2]; flattened before, after, before, after ...
absl::StatusOr<std::vector<int64_t>> ReadPaddings(NodeImporter& node, int operand, int64_t rank) {
  ASSIGN_OR_RETURN(const Tensor tensor, node.Constant(operand, "paddings"));
  if (!IsInteger(tensor.dtype()) || tensor.shape() != Shape{rank, 2}) {
    return absl::InvalidArgumentError(absl::StrCat("the paddings are ", TypeToString(tensor.type()),
                                                   "; they must be integers [", rank, ",2]"));
  }
  std::vector<int64_t> paddings;
  for (int64_t i = 0; i < 2 * rank; ++i) {
    const int64_t padding = tensor.int_at(i);
    if (padding < 0 || padding > kMaxElements) {
      return absl::InvalidArgumentError(
          absl::StrCat("padding ", i, " is ", padding, "; it must be 0 or more"));
    }
    paddings.push_back(padding);
  }
  return paddings;
}

absl::Status ImportPad(NodeImporter& node) {
  const bool has_value = node.node().op() == "PadV2";
  RETURN_IF_ERROR(node.ExpectInputs(has_value ? 3 : 2, has_value ? 3 : 2));
  ASSIGN_OR_RETURN(std::vector<int64_t> paddings, ReadPaddings(node, 1, node.rank(0)));
  double fill = 0;
  if (has_value) {
    ASSIGN_OR_RETURN(const Tensor value, node.Constant(2, "padding value"));
    if (value.element_count() != 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the padding value is ", TypeToString(value.type()), "; it must be a scalar"));
    }
    fill = value.at(0);
  }
  return node.SetOutput(node.Padded(node.input(0), std::move(paddings), fill));
}

absl::Status ImportMirrorPad(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const std::string mode, node.StringOr("mode", ""));
  if (mode != "REFLECT" && mode != "SYMMETRIC") {
    return node.Fail(DiagnosticKind::kBadAttribute,
                     absl::StrCat("attribute 'mode' is '", Printable(mode),
                                  "'; it must be REFLECT or SYMMETRIC"),
                     "export the model again");
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> paddings, ReadPaddings(node, 1, node.rank(0)));
  node.SetRewritten();
  return node.SetOutput(frontend::MirrorPadded(node, node.input(0), paddings, mode == "SYMMETRIC"));
}

absl::Status ImportBroadcastTo(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const Shape shape, node.ConstantInts(1, "shape"));
  return node.SetOutput(frontend::BroadcastTo(node, node.input(0), shape));
}

// Rows of a run-time value at known indices: a slice of each run of neighbours, joined.
absl::StatusOr<ValueRef> GatherRuns(NodeImporter& node, const Tensor& indices, int64_t axis) {
  const Shape& from = node.shape(0);
  const int64_t dim = from[static_cast<size_t>(axis)];
  if (!IsInteger(indices.dtype()) || indices.element_count() < 1 ||
      indices.element_count() > kMaxInputsPerNode) {
    return node.FailMode(absl::StrCat("the indices are ", TypeToString(indices.type())),
                         absl::StrCat("gather by 1 to ", kMaxInputsPerNode, " integers"));
  }
  std::vector<ValueRef> runs;
  for (int64_t i = 0; i < indices.element_count();) {
    const int64_t first = indices.int_at(i);
    int64_t count = 0;
    while (i < indices.element_count() && indices.int_at(i) == first + count) ++count, ++i;
    if (first < 0 || first + count > dim) {
      return absl::InvalidArgumentError(absl::StrCat("indices ", first, " to ", first + count - 1,
                                                     " are outside of dimension ", axis, " of ",
                                                     TypeToString(node.type(0))));
    }
    ASSIGN_OR_RETURN(runs.emplace_back(), node.Sliced(node.input(0), axis, first, count));
  }
  ASSIGN_OR_RETURN(const ValueRef joined, node.Joined(runs, axis));
  Shape shape = from;
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, indices.shape().begin(), indices.shape().end());
  return node.Reshaped(joined, std::move(shape));
}

absl::Status ImportGather(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 3));
  ASSIGN_OR_RETURN(const int64_t batch_dims, node.IntOr("batch_dims", 0));
  if (batch_dims != 0) return node.FailMode("batch_dims is not 0", "rebuild the model without it");
  int64_t axis = 0;
  if (node.input_count() == 3) {
    ASSIGN_OR_RETURN(axis, node.ConstantInt(2, "axis"));
  }
  ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0)));
  if (!node.IsConstant(1)) {
    return node.SetOutput(frontend::LookedUp(node, node.input(0), node.input(1), axis,
                                             /*may_be_negative=*/false));
  }
  ASSIGN_OR_RETURN(const Tensor indices, node.Constant(1, "indices"));
  if (!node.IsConstant(0)) {
    node.SetRewritten();
    return node.SetOutput(GatherRuns(node, indices, axis));
  }
  return node.SetConstant(EvaluateGather(*node.input(0)->constant, indices, axis));
}

absl::Status ImportTile(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const std::vector<int64_t> multiples, node.ConstantInts(1, "multiples"));
  if (static_cast<int64_t>(multiples.size()) != node.rank(0)) {
    return absl::InvalidArgumentError(absl::StrCat("there are ", multiples.size(),
                                                   " multiples for ", TypeToString(node.type(0))));
  }
  node.SetRewritten();
  ValueRef value = node.input(0);
  for (size_t axis = 0; axis < multiples.size(); ++axis) {
    const int64_t count = multiples[axis];
    if (count < 1 || count > kMaxInputsPerNode) {
      return node.FailMode(absl::StrCat("multiple ", axis, " is ", count),
                           absl::StrCat("tile 1 to ", kMaxInputsPerNode, " times"));
    }
    const std::vector<ValueRef> copies(static_cast<size_t>(count), value);
    ASSIGN_OR_RETURN(value, node.Joined(copies, static_cast<int64_t>(axis)));
  }
  return node.SetOutput(std::move(value));
}

constexpr ImportRule kShapeRules[] = {
    {"BroadcastTo", ImportBroadcastTo},
    {"Concat", ImportConcat},
    {"ConcatV2", ImportConcatV2},
    {"ExpandDims", ImportExpandDims},
    {"Gather", ImportGather},
    {"GatherV2", ImportGather},
    {"MirrorPad", ImportMirrorPad},
    {"Pack", ImportPack},
    {"Pad", ImportPad},
    {"PadV2", ImportPad},
    {"Reshape", ImportReshape},
    {"SparseToDense", frontend::ImportSparseToDense},
    {"Split", ImportSplit},
    {"SplitV", ImportSplitV},
    {"Squeeze", ImportSqueeze},
    {"Tile", ImportTile},
    {"Transpose", ImportTranspose},
    {"Unpack", ImportUnpack},
    {"Where", frontend::ImportNonZero},
};

}  // namespace

absl::Span<const ImportRule> ShapeRules() { return kShapeRules; }

}  // namespace npuc::tf
