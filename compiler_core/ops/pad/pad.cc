#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "compiler_core/base/status.h"
#include "compiler_core/ops/move_emit.h"
#include "compiler_core/ops/numeric.h"
#include "compiler_core/ops/shape_util.h"

namespace npuc {
namespace {

absl::StatusOr<std::vector<int64_t>> PaddingsAttr(const Node& node, size_t rank) {
  return BoundedIntsAttr(node, "paddings", 2 * rank, 0, kMaxElements);
}

// Attribute value as an element: integers are exact where doubles are.
Tensor FillOf(const Node& node, DType dtype) {
  const double value = FloatAttrOr(node, "value", 0.0);
  std::vector<uint8_t> bytes(sizeof(value));
  std::memcpy(bytes.data(), &value, sizeof(value));
  return CastTensor(Tensor({DType::kFloat64, {}}, std::move(bytes)), dtype);
}

// Attribute paddings: before and after, dimension by dimension; attribute value (0.0): what fills
// them, converted to the element type.
struct Pad {
  static constexpr OpTraits kTraits = {.layout = LayoutRule::kPad, .integer = IntegerRule::kPad};

  static absl::StatusOr<Types> InferShapes(const OpView& view) {
    RETURN_IF_ERROR(view.CheckInputCount(1, 1));
    RETURN_IF_ERROR(CheckNumeric(view));
    TensorType type = view.inputs[0];
    ASSIGN_OR_RETURN(const std::vector<int64_t> paddings,
                     PaddingsAttr(view.node, type.shape.size()));
    if (view.node.attrs.contains("value")) {
      RETURN_IF_ERROR(FloatAttr(view.node, "value").status());
    }
    for (size_t i = 0; i < type.shape.size(); ++i) {
      type.shape[i] += paddings[2 * i] + paddings[2 * i + 1];
    }
    return Types{std::move(type)};
  }
  static void Facts(const OpView& view, FactMap& facts) {
    // Rules compare the value with a whole number; another value is known by its absence.
    const double value = FloatAttrOr(view.node, "value", 0.0);
    if (std::fabs(value) < 0x1p53 && value == std::floor(value)) {
      facts["value"] = static_cast<int64_t>(value);
    }
  }
  static absl::StatusOr<std::vector<Tensor>> Reference(const Node& node,
                                                       absl::Span<const Tensor> inputs) {
    const Tensor& x = inputs[0];
    TensorType type = x.type();
    ASSIGN_OR_RETURN(const std::vector<int64_t> paddings, PaddingsAttr(node, type.shape.size()));
    for (size_t i = 0; i < type.shape.size(); ++i) {
      type.shape[i] += paddings[2 * i] + paddings[2 * i + 1];
    }
    StridedBlock target{RowMajorStrides(type.shape)};
    for (size_t i = 0; i < type.shape.size(); ++i) {
      target.offset += paddings[2 * i] * target.strides[i];
    }
    const Tensor fill = FillOf(node, type.dtype);
    const int64_t element_size = SizeOf(type.dtype);
    std::vector<uint8_t> bytes(type.size_bytes());
    for (int64_t at = 0; at < type.size_bytes(); at += element_size) {
      std::copy_n(fill.bytes().data(), element_size, bytes.data() + at);
    }
    CopyStrided(x.shape(), element_size, x.bytes().data(), {RowMajorStrides(x.shape())},
                bytes.data(), target);
    return std::vector<Tensor>{Tensor(std::move(type), std::move(bytes))};
  }
  static absl::Status Lower(const OpView& view, LowerContext& context) {
    ASSIGN_OR_RETURN(const Operand a, context.Input(0));
    Shape shape = view.inputs[0].shape;
    ASSIGN_OR_RETURN(const std::vector<int64_t> paddings, PaddingsAttr(view.node, shape.size()));
    for (size_t i = 0; i < shape.size(); ++i) shape[i] += paddings[2 * i] + paddings[2 * i + 1];
    Walk to{0, RowMajorStrides(shape)};
    for (size_t i = 0; i < shape.size(); ++i) to.offset += paddings[2 * i] * to.strides[i];
    const Operand d = context.Output(0);
    const float value = static_cast<float>(FloatAttrOr(view.node, "value", 0.0));
    RETURN_IF_ERROR(EmitFill(context, value, d, ElementCount(shape)));
    return EmitMove(context, view.inputs[0].shape, a, {0, RowMajorStrides(view.inputs[0].shape)}, d,
                    to);
  }
};

}  // namespace

NPUC_DEFINE_OP(Pad)

}  // namespace npuc
