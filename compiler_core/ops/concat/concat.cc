#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/move_emit.h"
#include "compiler_core/ops/numeric.h"
#include "compiler_core/ops/shape_util.h"

namespace npuc {
namespace {

constexpr int kMaxOperands = 1 << 16;

// Joins one or more operands along attribute axis.
struct Concat {
  static constexpr OpTraits kTraits = {
      .layout = LayoutRule::kJoin, .integer = IntegerRule::kConcat, .listed_as = "ConcatV2"};

  static absl::StatusOr<Types> InferShapes(const OpView& view) {
    RETURN_IF_ERROR(view.CheckInputCount(1, kMaxOperands));
    RETURN_IF_ERROR(CheckSameDType(view));
    TensorType type = view.inputs[0];
    const int64_t rank = static_cast<int64_t>(type.shape.size());
    RETURN_IF_ERROR(IntAttr(view.node, "axis").status());
    ASSIGN_OR_RETURN(const int64_t axis, AxisAttr(view.node, "axis", rank, 0));
    for (size_t i = 1; i < view.inputs.size(); ++i) {
      Shape shape = view.inputs[i].shape;
      if (static_cast<int64_t>(shape.size()) == rank) {
        const int64_t joined = type.shape[axis] + shape[axis];
        shape[axis] = type.shape[axis];
        if (shape == type.shape) {
          type.shape[axis] = joined;
          continue;
        }
      }
      return absl::InvalidArgumentError(
          absl::StrCat("operand ", i, " of shape ", ShapeToString(view.inputs[i].shape),
                       " does not join operand 0 of shape ", ShapeToString(view.inputs[0].shape),
                       " along axis ", axis));
    }
    return Types{std::move(type)};
  }
  static void Facts(const OpView& view, FactMap& facts) {}
  static absl::StatusOr<std::vector<Tensor>> Reference(const Node& node,
                                                       absl::Span<const Tensor> inputs) {
    TensorType type = inputs[0].type();
    ASSIGN_OR_RETURN(const int64_t axis,
                     AxisAttr(node, "axis", static_cast<int64_t>(type.shape.size()), 0));
    type.shape[axis] = 0;
    for (const Tensor& input : inputs) type.shape[axis] += input.shape()[axis];
    std::vector<uint8_t> bytes(type.size_bytes());
    StridedBlock target{RowMajorStrides(type.shape)};
    for (const Tensor& input : inputs) {
      CopyStrided(input.shape(), SizeOf(type.dtype), input.bytes().data(),
                  {RowMajorStrides(input.shape())}, bytes.data(), target);
      target.offset += target.strides[axis] * input.shape()[axis];
    }
    return std::vector<Tensor>{Tensor(std::move(type), std::move(bytes))};
  }
  static absl::Status Lower(const OpView& view, LowerContext& context) {
    const Shape& first = view.inputs[0].shape;
    ASSIGN_OR_RETURN(const int64_t axis,
                     AxisAttr(view.node, "axis", static_cast<int64_t>(first.size()), 0));
    Shape shape = first;
    shape[axis] = 0;
    for (const TensorType& input : view.inputs) shape[axis] += input.shape[axis];
    const Operand d = context.Output(0);
    Walk to{0, RowMajorStrides(shape)};
    for (size_t i = 0; i < view.inputs.size(); ++i) {
      const Shape& part = view.inputs[i].shape;
      ASSIGN_OR_RETURN(const Operand a, context.Input(static_cast<int>(i)));
      RETURN_IF_ERROR(EmitMove(context, part, a, {0, RowMajorStrides(part)}, d, to));
      to.offset += to.strides[axis] * part[axis];
    }
    return absl::OkStatus();
  }
};

}  // namespace

NPUC_DEFINE_OP(Concat)

}  // namespace npuc
