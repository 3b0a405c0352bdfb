#include "compiler_core/ops/product.h"

#include <algorithm>
#include <utility>

#include "compiler_core/base/status.h"
#include "compiler_core/lowering/integer/context.h"
#include "compiler_core/ops/shape_util.h"

namespace npuc {
namespace {

// The strides of an operand along batch, rows and columns, and along what is summed.
struct OperandStrides {
  Shape results;
  int64_t inner = 0;
};

OperandStrides StridesOf(const Shape& operand, const Shape& batch, bool transposed, bool is_left) {
  const int64_t along_first = transposed ? 1 : operand.back();
  const int64_t along_last = transposed ? operand.back() : 1;
  OperandStrides strides = {BatchStrides(operand, batch), is_left ? along_last : along_first};
  strides.results.push_back(is_left ? along_first : 0);
  strides.results.push_back(is_left ? 0 : along_last);
  return strides;
}

// Sets the walk; the last extent is what is summed.
absl::Status SetWalk(const ProductGeometry& g, const OperandStrides& a, const OperandStrides& b,
                     integer::Product& c) {
  Shape results = g.batch;
  results.push_back(g.rows);
  results.push_back(g.columns);
  ASSIGN_OR_RETURN(StridedWalk walk, MakeWalk(results, {a.results, b.results}));
  if (walk.extents[0] != 1) {
    return absl::UnimplementedError("matrices that repeat along more than three dimensions");
  }
  const auto behind = [](const integer::Extents& extents, int64_t last) {
    integer::Extents moved = {};
    std::copy(extents.begin() + 1, extents.end(), moved.begin());
    moved.back() = static_cast<int32_t>(last);
    return moved;
  };
  c.extents = behind(walk.extents, g.inner);
  c.a_strides = behind(walk.strides[0], a.inner);
  c.b_strides = behind(walk.strides[1], b.inner);
  return absl::OkStatus();
}

}  // namespace

absl::Status LowerProduct(IntegerContext& context) {
  const Layer& layer = context.layer();
  const Node& root = context.root();
  const Shape& a_shape = context.graph().type(root.inputs[0]).shape;
  const Shape& b_shape = context.graph().type(root.inputs[1]).shape;
  ASSIGN_OR_RETURN(const ProductGeometry g, MakeProductGeometry(root, a_shape, b_shape));
  ASSIGN_OR_RETURN(const Side a, TakeSide(context, root.inputs[0]));
  ASSIGN_OR_RETURN(const Side b, TakeSide(context, root.inputs[1]));
  ASSIGN_OR_RETURN(const QuantParams to, context.ActivationParams(layer.outputs[0]));
  integer::Product c;
  c.a = a.place;
  c.a_type = a.params.dtype;
  c.a_zero = static_cast<int32_t>(a.params.zero_point[0]);
  c.b = b.place;
  c.b_type = b.params.dtype;
  c.b_zero = static_cast<int32_t>(b.params.zero_point[0]);
  RETURN_IF_ERROR(SetWalk(g, StridesOf(a_shape, g.batch, g.transpose_a, true),
                          StridesOf(b_shape, g.batch, g.transpose_b, false), c));
  double product = a.params.scale[0] * b.params.scale[0];
  if (context.exact()) {  // TFLite multiplies these two as floats
    product = static_cast<float>(a.params.scale[0]) * static_cast<float>(b.params.scale[0]);
  }
  // A constant that takes 16 bits less its zero point is one of 8 in the model.
  const bool wide = std::any_of(layer.inputs.begin(), layer.inputs.end(), [&](ValueId input) {
    return SizeOf(context.FindParams(input)->dtype) == 2;
  });
  const auto [factor, rounding] = context.FactorFor(product / to.scale[0], wide);
  c.factors = context.Factors({factor});
  c.rounding = rounding;
  c.result = context.ResultFor(to, context.Output(layer.outputs[0], to));
  context.Emit(c);
  return absl::OkStatus();
}

}  // namespace npuc
