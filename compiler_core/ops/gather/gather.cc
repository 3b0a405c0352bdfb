#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/numeric.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/ops/shape_util.h"

namespace npuc {
namespace {

// data [...], indices [...] of integers from 0 on -> the slices of data along attribute axis
// (default 0) that the indices name; the indices' dimensions stand in the axis's place.
struct Gather {
  static constexpr OpTraits kTraits = {.layout = LayoutRule::kFixed, .integer = IntegerRule::kNone};

  static absl::StatusOr<int64_t> AxisOf(const Node& node, const Shape& data) {
    return AxisAttr(node, "axis", static_cast<int64_t>(data.size()), 0);
  }
  static Shape ResultShape(const Shape& data, const Shape& indices, int64_t axis) {
    Shape shape = data;
    shape.erase(shape.begin() + axis);
    shape.insert(shape.begin() + axis, indices.begin(), indices.end());
    return shape;
  }
  static absl::StatusOr<Types> InferShapes(const OpView& view) {
    RETURN_IF_ERROR(view.CheckInputCount(2, 2));
    const TensorType& data = view.inputs[0];
    const TensorType& indices = view.inputs[1];
    if (!IsInteger(indices.dtype)) {
      return absl::InvalidArgumentError(
          absl::StrCat("indices of type ", NameOf(indices.dtype), "; they must be integers"));
    }
    ASSIGN_OR_RETURN(const int64_t axis, AxisOf(view.node, data.shape));
    if (data.shape[static_cast<size_t>(axis)] == 0 && indices.element_count() > 0) {
      return absl::InvalidArgumentError("indices into a dimension of 0");
    }
    return Types{{data.dtype, ResultShape(data.shape, indices.shape, axis)}};
  }
  static void Facts(const OpView& view, FactMap& facts) {}
  // INVALID_ARGUMENT where an index is outside.
  static absl::StatusOr<std::vector<Tensor>> Reference(const Node& node,
                                                       absl::Span<const Tensor> inputs) {
    const Tensor& data = inputs[0];
    const Tensor& indices = inputs[1];
    ASSIGN_OR_RETURN(const int64_t axis, AxisOf(node, data.shape()));
    const int64_t size = data.shape()[static_cast<size_t>(axis)];
    TensorType type{data.dtype(), ResultShape(data.shape(), indices.shape(), axis)};
    std::vector<uint8_t> bytes(static_cast<size_t>(type.size_bytes()));
    const int64_t slice =
        RowMajorStrides(data.shape())[static_cast<size_t>(axis)] * SizeOf(data.dtype());
    const int64_t count = indices.element_count();
    const int64_t outer = bytes.empty() ? 0 : type.size_bytes() / (count * slice);
    for (int64_t i = 0; i < count && outer > 0; ++i) {
      const int64_t index = indices.int_at(i);
      if (index < 0 || index >= size) {
        return absl::InvalidArgumentError(
            absl::StrCat("index ", index, " is outside a dimension of ", size));
      }
      for (int64_t o = 0; o < outer; ++o) {
        std::memcpy(bytes.data() + (o * count + i) * slice,
                    data.bytes().data() + (o * size + index) * slice, static_cast<size_t>(slice));
      }
    }
    return std::vector<Tensor>{Tensor(std::move(type), std::move(bytes))};
  }
};

}  // namespace

NPUC_DEFINE_OP(Gather)

}  // namespace npuc
