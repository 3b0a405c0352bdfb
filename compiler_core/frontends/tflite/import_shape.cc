// Operators that move or make values without computing with them.
#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/evaluator.h"
#include "compiler_core/frontends/common/gather.h"
#include "compiler_core/frontends/common/image.h"
#include "compiler_core/frontends/common/positions.h"
#include "compiler_core/frontends/common/shared_rules.h"
#include "compiler_core/frontends/tflite/dilation.h"
#include "compiler_core/frontends/tflite/node_import.h"
#include "npuc/fe/tflite/npuc_tflite_generated.h"

namespace npuc::tflite {
namespace {

// One entry may be -1: what is left of the elements.
absl::StatusOr<Shape> CompletedShape(Shape shape, int64_t elements) {
  if (shape.size() > kMaxRank) return absl::InvalidArgumentError("a shape of more than 8 entries");
  int64_t known = 1;
  auto open = shape.end();
  for (auto it = shape.begin(); it != shape.end(); ++it) {
    if (*it == -1 && open == shape.end()) {
      open = it;
      continue;
    }
    if (*it < 0 || *it > kMaxElements) {
      return absl::InvalidArgumentError(absl::StrCat("a shape entry of ", *it));
    }
    known = std::min(known * *it, kMaxElements + 1);
  }
  if (open != shape.end()) {
    if (known == 0 || elements % known != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(elements, " elements do not fill shape ", ShapeToString(shape)));
    }
    *open = elements / known;
  }
  return shape;
}

absl::Status ImportReshape(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 2));
  Shape shape = node.output(0).type.shape;
  const auto* options = node.raw().options_as_ReshapeOptions();
  if (node.has(1) && node.rank(1) == 1) {  // TensorFlow Lite ignores one of another rank
    ASSIGN_OR_RETURN(shape, node.ResultShape(1));
  } else if (options != nullptr && options->new_shape() != nullptr) {
    if (options->new_shape()->size() > kMaxRank) {
      return absl::InvalidArgumentError("a shape of more than 8 entries");
    }
    shape.assign(options->new_shape()->begin(), options->new_shape()->end());
  }
  ASSIGN_OR_RETURN(shape, CompletedShape(std::move(shape), node.type(0).element_count()));
  return SetReshaped(node, std::move(shape));
}

absl::Status ImportSqueeze(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  const auto* options = node.raw().options_as_SqueezeOptions();
  std::vector<int64_t> axes;
  if (options != nullptr && options->squeeze_dims() != nullptr &&
      options->squeeze_dims()->size() <= kMaxRank) {
    axes.assign(options->squeeze_dims()->begin(), options->squeeze_dims()->end());
  }
  ASSIGN_OR_RETURN(axes, node.Axes(std::move(axes), node.rank(0)));
  const bool all = axes.empty();
  Shape shape;
  for (int64_t i = 0; i < node.rank(0); ++i) {
    const int64_t dim = node.shape(0)[static_cast<size_t>(i)];
    const bool named = std::binary_search(axes.begin(), axes.end(), i);
    if (named && dim != 1) {
      return absl::InvalidArgumentError(absl::StrCat("dimension ", i, " of ", dim, " is squeezed"));
    }
    if (!named && !(all && dim == 1)) shape.push_back(dim);
  }
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
  std::vector<int64_t> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  if (static_cast<int64_t>(perm.size()) != node.rank(0) ||
      std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    return absl::InvalidArgumentError("the permutation does not name every dimension once");
  }
  return node.SetOutput(node.Transposed(node.input(0), std::move(perm)));
}

absl::Status ImportConcatenation(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, kMaxOperandsPerOperator));
  ASSIGN_OR_RETURN(const auto* o, node.Required(node.raw().options_as_ConcatenationOptions()));
  ASSIGN_OR_RETURN(const int64_t axis, node.Axis(o->axis(), node.rank(0)));
  std::vector<ValueRef> parts;
  for (int i = 0; i < node.input_count(); ++i) {
    if (!node.has(i)) return node.ExpectInputs(node.input_count(), kMaxOperandsPerOperator);
    parts.push_back(node.input(i));
  }
  return node.SetActivated(node.Joined(parts, axis), o->activation());
}

absl::Status ImportPack(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, kMaxOperandsPerOperator));
  ASSIGN_OR_RETURN(const auto* o, node.Required(node.raw().options_as_PackOptions()));
  ASSIGN_OR_RETURN(const int64_t axis, node.Axis(o->axis(), node.rank(0) + 1));
  std::vector<ValueRef> parts;
  for (int i = 0; i < node.input_count(); ++i) {
    if (!node.has(i) || node.shape(i) != node.shape(0)) {
      return absl::InvalidArgumentError("operands of unlike shapes");
    }
    Shape shape = node.shape(i);
    shape.insert(shape.begin() + axis, 1);
    ASSIGN_OR_RETURN(parts.emplace_back(), node.Reshaped(node.input(i), std::move(shape)));
  }
  return node.SetOutput(node.Joined(parts, axis));
}

absl::Status ImportUnpack(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const auto* o, node.Required(node.raw().options_as_UnpackOptions()));
  ASSIGN_OR_RETURN(const int64_t axis, node.Axis(o->axis(), node.rank(0)));
  const int64_t count = node.shape(0)[static_cast<size_t>(axis)];
  if (count != o->num() || count > kMaxOperandsPerOperator) {
    return absl::InvalidArgumentError(
        absl::StrCat("a dimension of ", count, " is unpacked into ", o->num()));
  }
  std::vector<ValueRef> parts;
  for (int64_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(const ValueRef part, node.Sliced(node.input(0), axis, i, 1));
    Shape shape = part->type.shape;
    shape.erase(shape.begin() + axis);
    ASSIGN_OR_RETURN(parts.emplace_back(), node.Reshaped(part, std::move(shape)));
  }
  return node.SetOutputs(std::move(parts));
}

absl::Status ImportTile(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const std::vector<int64_t> multiples, node.ConstantInts(1, "multiples"));
  if (static_cast<int64_t>(multiples.size()) != node.rank(0)) {
    return absl::InvalidArgumentError("as many multiples as dimensions are needed");
  }
  ValueRef x = node.input(0);
  for (size_t i = 0; i < multiples.size(); ++i) {
    if (multiples[i] < 1 || multiples[i] > kMaxOperandsPerOperator) {
      return absl::InvalidArgumentError(absl::StrCat("a multiple of ", multiples[i]));
    }
    const std::vector<ValueRef> parts(static_cast<size_t>(multiples[i]), x);
    ASSIGN_OR_RETURN(x, node.Joined(parts, static_cast<int64_t>(i)));
  }
  return node.SetOutput(std::move(x));
}

absl::Status ImportBroadcastTo(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const Shape shape, node.ResultShape(1));
  RETURN_IF_ERROR(CheckShape(shape));
  ASSIGN_OR_RETURN(const Shape joint, BroadcastShape(node.shape(0), shape));
  if (joint != shape)
    return absl::InvalidArgumentError("the operand does not stretch to the shape");
  return node.SetOutput(frontend::BroadcastTo(node, node.input(0), shape));
}

absl::Status ImportSpaceToDepth(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const auto* o, node.Required(node.raw().options_as_SpaceToDepthOptions()));
  return node.SetOutput(frontend::SpaceToDepth(node, node.input(0), o->block_size()));
}

absl::Status ImportDepthToSpace(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const auto* o, node.Required(node.raw().options_as_DepthToSpaceOptions()));
  return node.SetOutput(frontend::DepthToSpace(node, node.input(0), o->block_size()));
}

absl::Status ImportShapeOf(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  const DType dtype = node.output(0).type.dtype == DType::kInt64 ? DType::kInt64 : DType::kInt32;
  const Shape& shape = node.shape(0);
  return node.SetOutput(
      node.MakeConstant(IntTensor(dtype, {static_cast<int64_t>(shape.size())}, shape)));
}

absl::Status ImportRank(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  return node.SetOutput(node.MakeConstant(IntTensor(DType::kInt32, {}, {node.rank(0)})));
}

absl::Status ImportZerosLike(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  const Tensor zero = CastTensor(Tensor::ScalarFloat(0), node.type(0).dtype);
  return node.SetConstant(EvaluateBroadcast(zero, node.shape(0)));
}

absl::Status ImportFill(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const Shape shape, node.ConstantInts(0, "shape"));
  ASSIGN_OR_RETURN(const Tensor value, node.Constant(1, "value"));
  RETURN_IF_ERROR(CheckShape(shape));
  if (value.element_count() != 1) return absl::InvalidArgumentError("the value is no scalar");
  return node.SetConstant(EvaluateBroadcast(value.WithShape({}), shape));
}

// The shape that two shapes broadcast to.
absl::Status ImportBroadcastArgs(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const Shape a, node.ConstantInts(0, "first shape"));
  ASSIGN_OR_RETURN(const Shape b, node.ConstantInts(1, "second shape"));
  RETURN_IF_ERROR(CheckShape(a));
  RETURN_IF_ERROR(CheckShape(b));
  ASSIGN_OR_RETURN(const Shape joint, BroadcastShape(a, b));
  return node.SetOutput(node.MakeConstant(
      IntTensor(node.type(0).dtype, {static_cast<int64_t>(joint.size())}, joint)));
}

constexpr ImportRule kShapeRules[] = {
    {"BROADCAST_ARGS", ImportBroadcastArgs},
    {"BROADCAST_TO", ImportBroadcastTo},
    {"CONCATENATION", ImportConcatenation},
    // Sparse constants are unpacked where they are read.
    {"DENSIFY", frontend::ImportIdentity},
    {"DEPTH_TO_SPACE", ImportDepthToSpace},
    {"EXPAND_DIMS", ImportExpandDims},
    {"FILL", ImportFill},
    {"PACK", ImportPack},
    {"RANGE", frontend::ImportRange},
    {"RANK", ImportRank},
    {"RESHAPE", ImportReshape},
    {"SHAPE", ImportShapeOf},
    {"SPACE_TO_DEPTH", ImportSpaceToDepth},
    {"SPARSE_TO_DENSE", frontend::ImportSparseToDense},
    {"SQUEEZE", ImportSqueeze},
    {"TILE", ImportTile},
    {"TRANSPOSE", ImportTranspose},
    {"UNPACK", ImportUnpack},
    {"WHERE", frontend::ImportNonZero},
    {"ZEROS_LIKE", ImportZerosLike},
};

}  // namespace

absl::Span<const ImportRule> ShapeRules() { return kShapeRules; }

}  // namespace npuc::tflite
