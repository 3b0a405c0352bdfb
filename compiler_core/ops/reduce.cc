#include "compiler_core/ops/reduce.h"

#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/numeric.h"
#include "compiler_core/ops/shape_util.h"

namespace npuc {
namespace {

struct ReduceShapes {
  Shape kept;    // as the input, reduced dimensions 1
  Shape result;  // the node's result: kept, or without the reduced dimensions
};

absl::StatusOr<ReduceShapes> ShapesOf(const Node& node, const Shape& input) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> axes, IntsAttr(node, "axes"));
  const bool keep_dims = BoolAttrOr(node, "keep_dims", false);
  ReduceShapes shapes{input, {}};
  int64_t previous = -1;
  for (const int64_t axis : axes) {
    if (axis <= previous || axis >= static_cast<int64_t>(input.size())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "axes ", ShapeToString(axes), " must ascend and lie below rank ", input.size()));
    }
    shapes.kept[axis] = 1;
    previous = axis;
  }
  size_t next = 0;
  for (size_t i = 0; i < input.size(); ++i) {
    const bool reduced = next < axes.size() && axes[next] == static_cast<int64_t>(i);
    if (reduced) ++next;
    if (!reduced || keep_dims) shapes.result.push_back(shapes.kept[i]);
  }
  return shapes;
}

template <typename C>
typename C::Wide Lowest(DType dtype) {
  if constexpr (std::is_same_v<typename C::Wide, double>) {
    return -std::numeric_limits<double>::infinity();
  } else {
    switch (dtype) {
      case DType::kInt8:
        return std::numeric_limits<int8_t>::min();
      case DType::kInt16:
        return std::numeric_limits<int16_t>::min();
      case DType::kInt32:
        return std::numeric_limits<int32_t>::min();
      case DType::kInt64:
        return std::numeric_limits<int64_t>::min();
      default:
        return 0;
    }
  }
}

double LargerOf(double a, double b) { return std::isnan(b) || b > a ? b : a; }
int64_t LargerOf(int64_t a, int64_t b) { return b > a ? b : a; }

template <typename C>
absl::Status Reduce(const Tensor& x, const Shape& kept, Reduction reduction, uint8_t* out) {
  using Wide = typename C::Wide;
  const int64_t out_count = ElementCount(kept);
  const int64_t group = out_count == 0 ? 0 : x.element_count() / out_count;
  std::vector<Wide> totals(out_count,
                           reduction == Reduction::kMax ? Lowest<C>(x.dtype()) : Wide{0});
  WalkStrided<2>(x.shape(), {RowMajorStrides(x.shape()), BroadcastStrides(kept, x.shape())}, {0, 0},
                 [&](const std::array<int64_t, 2>& at) {
                   const Wide value = C::Load(x.bytes().data(), at[0]);
                   Wide& total = totals[at[1]];
                   total = reduction == Reduction::kMax ? LargerOf(total, value)
                                                        : WrapAdd(total, value);
                 });
  if (reduction == Reduction::kMean) {
    if (group == 0 && std::is_same_v<Wide, int64_t>) {
      return absl::InvalidArgumentError("the mean of no integers");
    }
    // Division of double zero by zero gives NaN, as wanted.
    for (Wide& total : totals) total /= static_cast<Wide>(group);
  }
  for (int64_t i = 0; i < out_count; ++i) C::Store(out, i, totals[i]);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<TensorType>> InferReduce(const OpView& view) {
  RETURN_IF_ERROR(view.CheckInputCount(1, 1));
  RETURN_IF_ERROR(CheckNumeric(view));
  ASSIGN_OR_RETURN(ReduceShapes shapes, ShapesOf(view.node, view.inputs[0].shape));
  return Types{{view.inputs[0].dtype, std::move(shapes.result)}};
}

absl::StatusOr<std::vector<Tensor>> RunReduce(const Node& node, const Tensor& x,
                                              Reduction reduction) {
  ASSIGN_OR_RETURN(ReduceShapes shapes, ShapesOf(node, x.shape()));
  TensorType type{x.dtype(), std::move(shapes.result)};
  std::vector<uint8_t> bytes(type.size_bytes());
  RETURN_IF_ERROR(WithCodec(type.dtype, [&](auto codec) {
    return Reduce<decltype(codec)>(x, shapes.kept, reduction, bytes.data());
  }));
  return std::vector<Tensor>{Tensor(std::move(type), std::move(bytes))};
}

}  // namespace npuc
