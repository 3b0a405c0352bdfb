#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/numeric.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/ops/shape_util.h"

namespace npuc {
namespace {

// x [...] -> the index of the largest element along attribute axis (default -1), which goes; the
// first of equal ones. Attribute dtype: "i64" (the default) or "i32".
struct ArgMax {
  static constexpr OpTraits kTraits = {.layout = LayoutRule::kFixed, .integer = IntegerRule::kNone};

  static absl::StatusOr<TensorType> ResultOf(const Node& node, const Shape& from) {
    ASSIGN_OR_RETURN(const DType dtype, DTypeAttr(node, "dtype", DType::kInt64));
    if (dtype != DType::kInt64 && dtype != DType::kInt32) {
      return absl::InvalidArgumentError(
          absl::StrCat("an index of dtype ", NameOf(dtype), "; allowed are i64 and i32"));
    }
    ASSIGN_OR_RETURN(const int64_t axis,
                     AxisAttr(node, "axis", static_cast<int64_t>(from.size()), -1));
    Shape shape = from;
    if (shape[static_cast<size_t>(axis)] == 0) {
      return absl::InvalidArgumentError("no element is the largest of a dimension of 0");
    }
    shape.erase(shape.begin() + axis);
    return TensorType{dtype, std::move(shape)};
  }
  static absl::StatusOr<Types> InferShapes(const OpView& view) {
    RETURN_IF_ERROR(view.CheckInputCount(1, 1));
    RETURN_IF_ERROR(CheckNumeric(view));
    ASSIGN_OR_RETURN(TensorType type, ResultOf(view.node, view.inputs[0].shape));
    return Types{std::move(type)};
  }
  static void Facts(const OpView& view, FactMap& facts) {}
  static absl::StatusOr<std::vector<Tensor>> Reference(const Node& node,
                                                       absl::Span<const Tensor> inputs) {
    const Tensor& x = inputs[0];
    ASSIGN_OR_RETURN(const TensorType type, ResultOf(node, x.shape()));
    ASSIGN_OR_RETURN(const int64_t axis,
                     AxisAttr(node, "axis", static_cast<int64_t>(x.shape().size()), -1));
    const int64_t size = x.shape()[static_cast<size_t>(axis)];
    const int64_t step = RowMajorStrides(x.shape())[static_cast<size_t>(axis)];
    std::vector<int64_t> indices(static_cast<size_t>(type.element_count()));
    RETURN_IF_ERROR(WithCodec(x.dtype(), [&](auto codec) {
      using C = decltype(codec);
      for (size_t i = 0; i < indices.size(); ++i) {
        const int64_t at = static_cast<int64_t>(i);
        const int64_t first = at / step * step * size + at % step;
        auto best = C::Load(x.bytes().data(), first);
        for (int64_t k = 1; k < size; ++k) {
          const auto value = C::Load(x.bytes().data(), first + k * step);
          if (!(value > best)) continue;
          best = value;
          indices[i] = k;
        }
      }
      return absl::OkStatus();
    }));
    return std::vector<Tensor>{CastTensor(Tensor::FromInts(type.shape, indices), type.dtype)};
  }
};

}  // namespace

NPUC_DEFINE_OP(ArgMax)

}  // namespace npuc
