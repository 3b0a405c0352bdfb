#include "compiler_core/frontends/common/gather.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/evaluator.h"

namespace npuc::frontend {

absl::StatusOr<ValueRef> GatherAxis(Emitter& node, const ValueRef& value, int64_t axis,
                                    const std::vector<int64_t>& indices) {
  const int64_t dim = value->type.shape[static_cast<size_t>(axis)];
  if (value->constant.has_value()) {
    const Tensor list = Tensor::FromInts({static_cast<int64_t>(indices.size())}, indices);
    ASSIGN_OR_RETURN(Tensor picked, EvaluateGather(*value->constant, list, axis));
    return node.MakeConstant(std::move(picked));
  }
  std::vector<ValueRef> runs;
  for (size_t i = 0; i < indices.size();) {
    const int64_t first = indices[i];
    NPUC_CHECK(first >= 0 && first < dim);
    const int64_t step = i + 1 < indices.size() ? indices[i + 1] - first : 1;
    int64_t count = 1;
    // A step of 0 would be a stride of 0: such neighbours are separate runs.
    while (step != 0 && i + static_cast<size_t>(count) < indices.size() &&
           indices[i + static_cast<size_t>(count)] == first + count * step) {
      ++count;
    }
    i += static_cast<size_t>(count);
    if (runs.size() == kMaxRuns) {
      return node.FailMode(
          absl::StrCat("its elements are picked in more than ", kMaxRuns, " runs of neighbours"),
          "cut the graph around the node with INPUT_OPS and OUTPUT_OPS");
    }
    ASSIGN_OR_RETURN(runs.emplace_back(),
                     node.Sliced(value, axis, first, count, count == 1 ? 1 : step));
  }
  if (runs.empty()) return node.Sliced(value, axis, 0, 0);
  return node.Joined(runs, axis);
}

absl::StatusOr<ValueRef> GatherFlat(Emitter& node, const ValueRef& flat,
                                    const std::vector<int64_t>& positions, Shape shape) {
  ASSIGN_OR_RETURN(const ValueRef picked, GatherAxis(node, flat, 0, positions));
  return node.Reshaped(picked, std::move(shape));
}

absl::StatusOr<int64_t> IndexFromFront(int64_t index, int64_t dim, bool may_be_negative) {
  if (index < (may_be_negative ? -dim : 0) || index >= dim) {
    return absl::InvalidArgumentError(
        absl::StrCat("index ", index, " is outside a dimension of ", dim));
  }
  return index < 0 ? index + dim : index;
}

absl::StatusOr<std::vector<int64_t>> StartsOfTuples(const Tensor& indices, const Shape& shape,
                                                    int64_t batch_dims, bool may_be_negative) {
  const int64_t length = indices.shape().back();
  const int64_t count = indices.element_count() / length;
  const auto end_of_batch = shape.begin() + batch_dims;
  const int64_t batches = ElementCount(Shape(shape.begin(), end_of_batch));
  const int64_t size = ElementCount(Shape(end_of_batch + length, shape.end()));
  std::vector<int64_t> starts;
  for (int64_t i = 0; i < count; ++i) {
    int64_t start = i / (count / batches);
    for (int64_t k = 0; k < length; ++k) {
      const int64_t dim = end_of_batch[k];
      ASSIGN_OR_RETURN(const int64_t index,
                       IndexFromFront(indices.int_at(i * length + k), dim, may_be_negative));
      start = start * dim + index;
    }
    starts.push_back(start * size);
  }
  return starts;
}

absl::StatusOr<std::vector<int64_t>> PositionsOfElements(const Tensor& indices, const Shape& shape,
                                                         int64_t axis, bool may_be_negative) {
  const Shape& named = indices.shape();
  bool fits = named.size() == shape.size() && IsInteger(indices.dtype()) &&
              indices.element_count() <= kMaxEvaluatedElements;
  for (size_t i = 0; fits && i < named.size(); ++i) {
    fits = static_cast<int64_t>(i) == axis || named[i] <= shape[i];
  }
  if (!fits) {
    return absl::InvalidArgumentError(absl::StrCat("the indices are ", TypeToString(indices.type()),
                                                   " for ", ShapeToString(shape)));
  }
  const int64_t dim = shape[static_cast<size_t>(axis)];
  std::vector<int64_t> positions;
  for (int64_t at = 0; at < indices.element_count(); ++at) {
    ASSIGN_OR_RETURN(const int64_t index, IndexFromFront(indices.int_at(at), dim, may_be_negative));
    int64_t rest = at;
    int64_t stride = 1;
    int64_t position = 0;
    for (size_t i = named.size(); i-- > 0;) {
      const bool is_axis = static_cast<int64_t>(i) == axis;
      position += (is_axis ? index : rest % named[i]) * stride;
      rest /= named[i];
      stride *= shape[i];
    }
    positions.push_back(position);
  }
  return positions;
}

absl::StatusOr<ValueRef> BroadcastTo(Emitter& node, const ValueRef& value, const Shape& shape) {
  if (value->type.shape == shape) return value;
  RETURN_IF_ERROR(CheckShape(shape));
  if (value->constant.has_value()) {
    ASSIGN_OR_RETURN(Tensor all, EvaluateBroadcast(*value->constant, shape));
    return node.MakeConstant(std::move(all));
  }
  ASSIGN_OR_RETURN(const Shape joint, BroadcastShape(value->type.shape, shape));
  if (joint != shape) {
    return absl::InvalidArgumentError(
        absl::StrCat(TypeToString(value->type), " does not broadcast to ", ShapeToString(shape)));
  }
  // A product with ones repeats and changes no value.
  const Tensor one = CastTensor(Tensor::ScalarFloat(1), value->type.dtype);
  ASSIGN_OR_RETURN(Tensor ones, EvaluateBroadcast(one, shape));
  return node.Emit("Mul", {value, node.MakeConstant(std::move(ones))});
}

}  // namespace npuc::frontend
