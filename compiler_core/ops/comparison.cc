#include "compiler_core/ops/comparison.h"

#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/numeric.h"
#include "compiler_core/ops/shape_util.h"

namespace npuc {
namespace {

absl::StatusOr<TensorType> ResultOf(const Node& node, const Shape& a, const Shape& b) {
  ASSIGN_OR_RETURN(const DType dtype, DTypeAttr(node, "dtype", DType::kBool));
  if (dtype != DType::kBool && !IsFloat(dtype)) {
    return absl::InvalidArgumentError(absl::StrCat("a comparison with results of dtype ",
                                                   NameOf(dtype), "; allowed are bool and floats"));
  }
  ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(a, b));
  return TensorType{dtype, std::move(shape)};
}

}  // namespace

absl::StatusOr<std::vector<TensorType>> InferComparison(const OpView& view) {
  RETURN_IF_ERROR(view.CheckInputCount(2, 2));
  RETURN_IF_ERROR(CheckSameDType(view));
  ASSIGN_OR_RETURN(TensorType type,
                   ResultOf(view.node, view.inputs[0].shape, view.inputs[1].shape));
  return Types{std::move(type)};
}

absl::StatusOr<std::vector<Tensor>> RunComparison(const Node& node, const Tensor& a,
                                                  const Tensor& b, bool (*f)(double, double),
                                                  bool (*g)(int64_t, int64_t)) {
  ASSIGN_OR_RETURN(const TensorType type, ResultOf(node, a.shape(), b.shape()));
  const std::array<Shape, 2> strides = {BroadcastStrides(a.shape(), type.shape),
                                        BroadcastStrides(b.shape(), type.shape)};
  std::vector<uint8_t> holds(static_cast<size_t>(type.element_count()));
  const DType stored = a.dtype() == DType::kBool ? DType::kUint8 : a.dtype();
  RETURN_IF_ERROR(WithCodec(stored, [&](auto codec) {
    using C = decltype(codec);
    size_t i = 0;
    WalkStrided<2>(type.shape, strides, {0, 0}, [&](const std::array<int64_t, 2>& at) {
      const auto x = C::Load(a.bytes().data(), at[0]);
      const auto y = C::Load(b.bytes().data(), at[1]);
      if constexpr (std::is_same_v<typename C::Wide, double>) {
        holds[i++] = f(x, y) ? 1 : 0;
      } else {
        holds[i++] = g(x, y) ? 1 : 0;
      }
    });
    return absl::OkStatus();
  }));
  return std::vector<Tensor>{
      CastTensor(Tensor({DType::kBool, type.shape}, std::move(holds)), type.dtype)};
}

}  // namespace npuc
