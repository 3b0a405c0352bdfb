#include "compiler_core/ops/elementwise.h"

#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/numeric.h"
#include "compiler_core/ops/shape_util.h"

namespace npuc {

absl::StatusOr<std::vector<TensorType>> InferUnary(const OpView& view, bool integers) {
  RETURN_IF_ERROR(view.CheckInputCount(1, 1));
  RETURN_IF_ERROR(integers ? CheckNumeric(view) : CheckFloat(view));
  return Types{view.inputs[0]};
}

absl::StatusOr<std::vector<Tensor>> RunUnary(const Tensor& x, UnaryFloatFn f, UnaryIntFn g) {
  std::vector<uint8_t> bytes(x.type().size_bytes());
  const int64_t count = x.element_count();
  RETURN_IF_ERROR(WithCodec(x.dtype(), [&](auto codec) {
    using C = decltype(codec);
    for (int64_t i = 0; i < count; ++i) {
      if constexpr (std::is_same_v<typename C::Wide, double>) {
        C::Store(bytes.data(), i, f(C::Load(x.bytes().data(), i)));
      } else {
        if (g == nullptr) return absl::UnimplementedError("no kernel for integers");
        C::Store(bytes.data(), i, g(C::Load(x.bytes().data(), i)));
      }
    }
    return absl::OkStatus();
  }));
  return std::vector<Tensor>{Tensor(x.type(), std::move(bytes))};
}

absl::StatusOr<std::vector<TensorType>> InferBinary(const OpView& view, bool integers) {
  RETURN_IF_ERROR(view.CheckInputCount(2, 2));
  RETURN_IF_ERROR(integers ? CheckNumeric(view) : CheckFloat(view));
  RETURN_IF_ERROR(CheckSameDType(view));
  ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(view.inputs[0].shape, view.inputs[1].shape));
  return Types{{view.inputs[0].dtype, std::move(shape)}};
}

absl::StatusOr<std::vector<Tensor>> RunBinary(const Tensor& a, const Tensor& b, BinaryFloatFn f,
                                              BinaryIntFn g) {
  ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(a.shape(), b.shape()));
  const TensorType type{a.dtype(), std::move(shape)};
  std::vector<uint8_t> bytes(type.size_bytes());
  const std::array<Shape, 2> strides = {BroadcastStrides(a.shape(), type.shape),
                                        BroadcastStrides(b.shape(), type.shape)};
  RETURN_IF_ERROR(WithCodec(type.dtype, [&](auto codec) {
    using C = decltype(codec);
    int64_t i = 0;
    bool defined = true;
    WalkStrided<2>(type.shape, strides, {0, 0}, [&](const std::array<int64_t, 2>& at) {
      const auto x = C::Load(a.bytes().data(), at[0]);
      const auto y = C::Load(b.bytes().data(), at[1]);
      if constexpr (std::is_same_v<typename C::Wide, double>) {
        C::Store(bytes.data(), i++, f(x, y));
      } else {
        const std::optional<int64_t> result = g == nullptr ? std::nullopt : g(x, y);
        defined &= result.has_value();
        C::Store(bytes.data(), i++, result.value_or(0));
      }
    });
    if (!defined) {
      return absl::InvalidArgumentError("integer operands without a result, such as x / 0");
    }
    return absl::OkStatus();
  }));
  return std::vector<Tensor>{Tensor(type, std::move(bytes))};
}

}  // namespace npuc
