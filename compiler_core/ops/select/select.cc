#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/numeric.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/ops/shape_util.h"

namespace npuc {
namespace {

// condition [...] of bool, a and b [...] of one type -> a where the condition holds, b elsewhere.
// The three broadcast.
struct Select {
  static constexpr OpTraits kTraits = {.layout = LayoutRule::kFixed, .integer = IntegerRule::kNone};

  static absl::StatusOr<Shape> ShapeOf(const Shape& condition, const Shape& a, const Shape& b) {
    ASSIGN_OR_RETURN(const Shape both, BroadcastShapes(a, b));
    return BroadcastShapes(condition, both);
  }
  static absl::StatusOr<Types> InferShapes(const OpView& view) {
    RETURN_IF_ERROR(view.CheckInputCount(3, 3));
    const TensorType& a = view.inputs[1];
    const TensorType& b = view.inputs[2];
    if (view.inputs[0].dtype != DType::kBool || a.dtype != b.dtype) {
      return absl::InvalidArgumentError(absl::StrCat(
          "condition of type ", NameOf(view.inputs[0].dtype), ", choices of types ",
          NameOf(a.dtype), " and ", NameOf(b.dtype), "; allowed are a bool and two of one type"));
    }
    ASSIGN_OR_RETURN(Shape shape, ShapeOf(view.inputs[0].shape, a.shape, b.shape));
    return Types{{a.dtype, std::move(shape)}};
  }
  static void Facts(const OpView& view, FactMap& facts) {}
  static absl::StatusOr<std::vector<Tensor>> Reference(const Node& node,
                                                       absl::Span<const Tensor> inputs) {
    std::array<Shape, 3> strides;
    ASSIGN_OR_RETURN(Shape shape, ShapeOf(inputs[0].shape(), inputs[1].shape(), inputs[2].shape()));
    for (size_t i = 0; i < 3; ++i) strides[i] = BroadcastStrides(inputs[i].shape(), shape);
    TensorType type{inputs[1].dtype(), std::move(shape)};
    std::vector<uint8_t> bytes(static_cast<size_t>(type.size_bytes()));
    const int64_t size = SizeOf(type.dtype);
    uint8_t* to = bytes.data();
    WalkStrided<3>(type.shape, strides, {0, 0, 0}, [&](const std::array<int64_t, 3>& at) {
      const size_t chosen = inputs[0].bytes()[static_cast<size_t>(at[0])] != 0 ? 1 : 2;
      std::memcpy(to, inputs[chosen].bytes().data() + at[chosen] * size, static_cast<size_t>(size));
      to += size;
    });
    return std::vector<Tensor>{Tensor(std::move(type), std::move(bytes))};
  }
};

}  // namespace

NPUC_DEFINE_OP(Select)

}  // namespace npuc
