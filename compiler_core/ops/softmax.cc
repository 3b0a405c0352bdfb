#include "compiler_core/ops/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "compiler_core/base/status.h"
#include "compiler_core/ops/numeric.h"
#include "compiler_core/ops/shape_util.h"

namespace npuc {
namespace {

// One row of `length` elements, `step` apart.
template <typename C>
void SoftmaxRow(const uint8_t* x, int64_t start, int64_t step, int64_t length, bool log,
                uint8_t* out) {
  double highest = -std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < length; ++i) highest = std::max(highest, C::Load(x, start + i * step));
  double sum = 0;
  for (int64_t i = 0; i < length; ++i) sum += std::exp(C::Load(x, start + i * step) - highest);
  const double log_sum = std::log(sum);
  for (int64_t i = 0; i < length; ++i) {
    const double shifted = C::Load(x, start + i * step) - highest;
    C::Store(out, start + i * step, log ? shifted - log_sum : std::exp(shifted) / sum);
  }
}

}  // namespace

absl::StatusOr<std::vector<TensorType>> InferSoftmax(const OpView& view) {
  RETURN_IF_ERROR(view.CheckInputCount(1, 1));
  RETURN_IF_ERROR(CheckFloat(view));
  const int64_t rank = static_cast<int64_t>(view.inputs[0].shape.size());
  RETURN_IF_ERROR(AxisAttr(view.node, "axis", rank, -1).status());
  return Types{view.inputs[0]};
}

absl::StatusOr<std::vector<Tensor>> RunSoftmax(const Node& node, const Tensor& x, bool log) {
  const Shape& shape = x.shape();
  ASSIGN_OR_RETURN(const int64_t axis,
                   AxisAttr(node, "axis", static_cast<int64_t>(shape.size()), -1));
  const Shape strides = RowMajorStrides(shape);
  Shape rows = shape;
  rows[axis] = std::min<int64_t>(shape[axis], 1);
  std::vector<uint8_t> bytes(x.type().size_bytes());
  RETURN_IF_ERROR(WithFloatCodec(x.dtype(), [&](auto codec) {
    WalkStrided<1>(rows, {strides}, {0}, [&](const std::array<int64_t, 1>& at) {
      SoftmaxRow<decltype(codec)>(x.bytes().data(), at[0], strides[axis], shape[axis], log,
                                  bytes.data());
    });
    return absl::OkStatus();
  }));
  return std::vector<Tensor>{Tensor(x.type(), std::move(bytes))};
}

}  // namespace npuc
