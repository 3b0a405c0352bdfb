#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/move_emit.h"
#include "compiler_core/ops/numeric.h"
#include "compiler_core/ops/shape_util.h"

namespace npuc {
namespace {

absl::StatusOr<std::vector<int64_t>> PermAttr(const Node& node, size_t rank) {
  ASSIGN_OR_RETURN(std::vector<int64_t> perm,
                   BoundedIntsAttr(node, "perm", rank, 0, static_cast<int64_t>(rank) - 1));
  std::vector<bool> seen(rank, false);
  for (const int64_t axis : perm) {
    if (seen[axis]) {
      return absl::InvalidArgumentError(
          absl::StrCat("perm ", ShapeToString(perm), " names axis ", axis, " twice"));
    }
    seen[axis] = true;
  }
  return perm;
}

// Whether the permutation, dimensions of 1 left aside, only swaps a leading group of dimensions
// with the trailing one: then it moves data as the transpose of one matrix does.
bool IsMatrixTranspose(const Shape& shape, const std::vector<int64_t>& perm) {
  std::vector<int64_t> rank_of(shape.size(), 0);
  int64_t count = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    rank_of[i] = count;
    if (shape[i] != 1) ++count;
  }
  int64_t previous = -1;
  for (const int64_t axis : perm) {
    if (shape[axis] == 1) continue;
    if (previous >= 0 && rank_of[axis] != (previous + 1) % count) return false;
    previous = rank_of[axis];
  }
  return true;
}

// Attribute perm: result dimension i is operand dimension perm[i].
struct Transpose {
  static constexpr OpTraits kTraits = {
      .layout = LayoutRule::kFixed, .integer = IntegerRule::kTranspose, .keeps_parameters = true};

  static absl::StatusOr<Types> InferShapes(const OpView& view) {
    RETURN_IF_ERROR(view.CheckInputCount(1, 1));
    const Shape& shape = view.inputs[0].shape;
    ASSIGN_OR_RETURN(const std::vector<int64_t> perm, PermAttr(view.node, shape.size()));
    TensorType type{view.inputs[0].dtype, {}};
    for (const int64_t axis : perm) type.shape.push_back(shape[axis]);
    return Types{std::move(type)};
  }
  static void Facts(const OpView& view, FactMap& facts) {
    const Shape& shape = view.inputs[0].shape;
    const absl::StatusOr<std::vector<int64_t>> perm = PermAttr(view.node, shape.size());
    facts["is_2d_transpose"] = perm.ok() && IsMatrixTranspose(shape, *perm);
  }
  static absl::StatusOr<std::vector<Tensor>> Reference(const Node& node,
                                                       absl::Span<const Tensor> inputs) {
    const Tensor& x = inputs[0];
    ASSIGN_OR_RETURN(const std::vector<int64_t> perm, PermAttr(node, x.shape().size()));
    const Shape strides = RowMajorStrides(x.shape());
    TensorType type{x.dtype(), {}};
    StridedBlock source;
    for (const int64_t axis : perm) {
      type.shape.push_back(x.shape()[axis]);
      source.strides.push_back(strides[axis]);
    }
    std::vector<uint8_t> bytes(type.size_bytes());
    CopyStrided(type.shape, SizeOf(type.dtype), x.bytes().data(), source, bytes.data(),
                {RowMajorStrides(type.shape)});
    return std::vector<Tensor>{Tensor(std::move(type), std::move(bytes))};
  }
  static absl::Status Lower(const OpView& view, LowerContext& context) {
    ASSIGN_OR_RETURN(const Operand a, context.Input(0));
    const Shape& shape = view.inputs[0].shape;
    ASSIGN_OR_RETURN(const std::vector<int64_t> perm, PermAttr(view.node, shape.size()));
    if (IsMatrixTranspose(shape, perm)) {
      // The dimensions that come first in the result are the matrix's columns.
      int64_t columns = 1;
      int64_t last = -1;
      for (const int64_t axis : perm) {
        if (shape[axis] == 1) continue;
        if (axis < last) break;
        last = axis;
        columns *= shape[axis];
      }
      return EmitTranspose(context, a, context.Output(0), ElementCount(shape) / columns, columns);
    }
    const Shape strides = RowMajorStrides(shape);
    Shape result;
    Walk from;
    for (const int64_t axis : perm) {
      result.push_back(shape[axis]);
      from.strides.push_back(strides[axis]);
    }
    return EmitMove(context, result, a, from, context.Output(0), {0, RowMajorStrides(result)});
  }
};

}  // namespace

NPUC_DEFINE_OP(Transpose)

}  // namespace npuc
