#include "compiler_core/ops/product.h"

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/shape_util.h"

namespace npuc {
namespace {

absl::Span<const int64_t> BatchOf(const Shape& shape) {
  return absl::MakeConstSpan(shape).subspan(0, shape.size() - 2);
}

}  // namespace

absl::StatusOr<ProductGeometry> MakeProductGeometry(const Node& node, const Shape& a,
                                                    const Shape& b) {
  for (const Shape* shape : {&a, &b}) {
    if (shape->size() >= 2) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("operand of shape ", ShapeToString(*shape), "; rank 2 or more is needed"));
  }
  ProductGeometry g;
  g.transpose_a = BoolAttrOr(node, "transpose_a", false);
  g.transpose_b = BoolAttrOr(node, "transpose_b", false);
  g.rows = a[a.size() - (g.transpose_a ? 1 : 2)];
  g.inner = a[a.size() - (g.transpose_a ? 2 : 1)];
  g.columns = b[b.size() - (g.transpose_b ? 2 : 1)];
  const int64_t b_inner = b[b.size() - (g.transpose_b ? 1 : 2)];
  if (g.inner != b_inner) {
    return absl::InvalidArgumentError(absl::StrCat(
        "shapes ", ShapeToString(a), g.transpose_a ? " transposed" : "", " and ", ShapeToString(b),
        g.transpose_b ? " transposed" : "", " do not multiply: ", g.inner, " against ", b_inner));
  }
  ASSIGN_OR_RETURN(g.batch, BroadcastShapes(BatchOf(a), BatchOf(b)));
  return g;
}

Shape BatchStrides(const Shape& operand, const Shape& batch) {
  Shape strides = BroadcastStrides(BatchOf(operand), batch);
  const int64_t matrix = operand[operand.size() - 1] * operand[operand.size() - 2];
  for (int64_t& stride : strides) stride *= matrix;
  return strides;
}

}  // namespace npuc
