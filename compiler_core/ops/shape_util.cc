#include "compiler_core/ops/shape_util.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"

namespace npuc {

Shape RowMajorStrides(absl::Span<const int64_t> shape) {
  Shape strides(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<int64_t>(shape[i], 1);
  }
  return strides;
}

Shape BroadcastStrides(absl::Span<const int64_t> shape, absl::Span<const int64_t> out) {
  NPUC_CHECK(shape.size() <= out.size());
  const Shape own = RowMajorStrides(shape);
  Shape strides(out.size(), 0);
  const size_t shift = out.size() - shape.size();
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != 1) strides[shift + i] = own[i];
  }
  return strides;
}

absl::StatusOr<Shape> BroadcastShapes(absl::Span<const int64_t> a, absl::Span<const int64_t> b) {
  const absl::Span<const int64_t> longer = a.size() >= b.size() ? a : b;
  const absl::Span<const int64_t> shorter = a.size() >= b.size() ? b : a;
  Shape out(longer.begin(), longer.end());
  const size_t shift = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    int64_t& dim = out[shift + i];
    if (dim == 1) {
      dim = shorter[i];
    } else if (shorter[i] != 1 && shorter[i] != dim) {
      return absl::InvalidArgumentError(absl::StrCat("shapes ", ShapeToString(a), " and ",
                                                     ShapeToString(b), " do not broadcast"));
    }
  }
  return out;
}

absl::StatusOr<int64_t> AxisAttr(const Node& node, absl::string_view name, int64_t rank,
                                 int64_t fallback) {
  int64_t axis = fallback;
  if (node.attrs.contains(name)) {
    ASSIGN_OR_RETURN(axis, IntAttr(node, name));
  }
  if (axis < -rank || axis >= rank) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " ", axis, " is out of range for rank ", rank));
  }
  return axis < 0 ? axis + rank : axis;
}

absl::StatusOr<DType> DTypeAttr(const Node& node, absl::string_view name, DType fallback) {
  if (!node.attrs.contains(name)) return fallback;
  ASSIGN_OR_RETURN(const std::string text, StringAttr(node, name));
  const DType dtype = DTypeFromName(text);
  if (dtype != DType::kInvalid) return dtype;
  return absl::InvalidArgumentError(absl::StrCat(name, " '", text, "' is no element type"));
}

absl::StatusOr<std::vector<int64_t>> BoundedIntsAttr(const Node& node, absl::string_view name,
                                                     size_t count, int64_t lo, int64_t hi) {
  ASSIGN_OR_RETURN(std::vector<int64_t> values, IntsAttr(node, name));
  if (values.size() != count) {
    return absl::InvalidArgumentError(
        absl::StrCat("attribute '", name, "' has ", values.size(), " items; it must have ", count));
  }
  for (const int64_t value : values) {
    if (value < lo || value > hi) {
      return absl::InvalidArgumentError(
          absl::StrCat("attribute '", name, "' holds ", value, "; allowed are ", lo, " to ", hi));
    }
  }
  return values;
}

absl::Status CheckRank(const OpView& view, int operand, int rank) {
  const Shape& shape = view.inputs[operand].shape;
  if (static_cast<int>(shape.size()) == rank) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "operand ", operand, " has shape ", ShapeToString(shape), "; it must have rank ", rank));
}

absl::Status CheckSameDType(const OpView& view) {
  for (const TensorType& type : view.inputs) {
    if (type.dtype != view.inputs[0].dtype) {
      return absl::InvalidArgumentError(absl::StrCat(
          "operands of unlike types ", NameOf(view.inputs[0].dtype), " and ", NameOf(type.dtype)));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckFloat(const OpView& view) {
  if (IsFloat(view.inputs[0].dtype)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("operand of type ", NameOf(view.inputs[0].dtype),
                                                 "; ", NameOf(view.node.op), " takes floats"));
}

absl::Status CheckNumeric(const OpView& view) {
  const DType dtype = view.inputs[0].dtype;
  if (IsFloat(dtype) || IsInteger(dtype)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("operand of type ", NameOf(dtype), "; ",
                                                 NameOf(view.node.op), " takes numbers"));
}

}  // namespace npuc
