#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/ir/integer/access.h"
#include "compiler_core/lowering/integer/context.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/ops/shape_util.h"

namespace npuc {
namespace {

// A layer's operand as rows along the axis.
struct Rows {
  Operand a;
  QuantParams params;
  int64_t count = 1;
  int64_t length = 1;
};

// TFLite's preparation of its fixed-point softmax for 5 integer bits.
void SetFixed(const QuantParams& from, integer::Softmax& c) {
  c.kind = integer::Softmax::Kind::kFixed;
  const double scaled = std::min(from.scale[0] * (1 << 26), 2147483647.0);
  const Factor factor = MakeFactor(scaled, 31);
  c.multiplier = factor.multiplier;
  c.left = std::clamp(31 - factor.shift, 0, 31);
  c.diff_min = Number(-static_cast<int64_t>(std::floor(31.0 * std::ldexp(1.0, 26 - c.left))));
}

QuantParams Params(DType dtype, double scale) {
  return {.dtype = dtype,
          .qmin = integer::LowestValue(dtype),
          .qmax = integer::HighestValue(dtype),
          .scale = {scale},
          .zero_point = {0}};
}

integer::Result TemporaryFor(IntegerContext& context, const QuantParams& params, int64_t count) {
  return {context.Temporary(count * SizeOf(params.dtype)), params.dtype, 0, Number(params.qmin),
          Number(params.qmax)};
}

// `step`: of the results that the table of exponentials is for.
void EmitSoftmax(IntegerContext& context, const Rows& x, const QuantParams& to, double step,
                 const integer::Result& result) {
  integer::Softmax c;
  c.a = x.a;
  c.a_type = x.params.dtype;
  c.rows = Number(x.count);
  c.length = Number(x.length);
  c.result = result;
  const bool tflites = context.exact() && x.params.dtype == DType::kInt8 &&
                       to.dtype == DType::kInt8 && to.scale[0] == 1.0 / 256 &&
                       to.zero_point[0] == -128;
  // Below 2^-26 a difference has no bits left in TFLite's form, and its sum has 12 integer bits.
  constexpr int64_t kMostOfRow = (1 << 12) - 1;
  if (tflites && x.params.scale[0] >= std::ldexp(1.0, -26) && x.length <= kMostOfRow) {
    SetFixed(x.params, c);
  } else {
    const StoredTable table = MakeExponentialTable(x.params, step, context.settings());
    c.index_bits = table.index_bits;
    c.table = TableConstant(context, table, 4);
    const Factor factor =
        MakeFactor(std::ldexp(1.0, -24) / to.scale[0], context.settings().multiplier_bits);
    c.factors = context.Factors({factor});
  }
  context.Emit(c);
}

// The largest of each row, with the rows' own parameters.
Operand EmitRowMaxima(IntegerContext& context, const Rows& x) {
  integer::Pool c;
  c.a = x.a;
  c.a_type = x.params.dtype;
  c.n = Number(x.count);
  c.in_h = c.window.kernel_h = Number(x.length);
  c.result = TemporaryFor(context, x.params, x.count);
  context.Emit(c);
  return c.result.d;
}

// The logarithm of shares of 16 bits by a table.
Operand EmitLogarithm(IntegerContext& context, Operand a, int64_t count, const StoredTable& table,
                      const QuantParams& to) {
  integer::Lookup c;
  c.a = a;
  c.a_type = DType::kUint16;
  c.index_bits = table.index_bits;
  c.table = TableConstant(context, table, SizeOf(to.dtype));
  c.count = Number(count);
  c.result = TemporaryFor(context, to, count);
  context.Emit(c);
  return c.result.d;
}

// a [rows,length] and b [rows], repeated along the rows.
void EmitByRow(IntegerContext& context, integer::Combine::Kind kind, const Rows& a,
               const QuantParams& b_params, Operand b, const QuantParams& to,
               const integer::Result& result) {
  integer::Combine c;
  c.kind = kind;
  c.a = a.a;
  c.a_type = a.params.dtype;
  c.a_zero = Number(a.params.zero_point[0]);
  c.b = b;
  c.b_type = b_params.dtype;
  c.b_zero = Number(b_params.zero_point[0]);
  SetCombineFactors(context, a.params, b_params, to, c);
  c.extents[4] = Number(a.count);
  c.extents[5] = Number(a.length);
  c.a_strides[4] = c.d_strides[4] = Number(a.length);
  c.a_strides[5] = c.d_strides[5] = 1;
  c.b_strides[4] = 1;
  c.result = result;
  context.Emit(c);
}

// The largest of each row's shares, in parts of `part`; larger ones are cut to 2^16 parts.
Operand EmitLargestShares(IntegerContext& context, const Rows& x, double part, double step) {
  Rows shares = x;
  shares.params = Params(DType::kUint16, part);
  const integer::Result result = TemporaryFor(context, shares.params, x.count * x.length);
  EmitSoftmax(context, x, shares.params, step, result);
  shares.a = result.d;
  return EmitRowMaxima(context, shares);
}

// The logarithm of the largest share of each row. `step`: of the layer's results.
Operand EmitLogarithmOfLargest(IntegerContext& context, const Rows& x, double step,
                               const LargestShare& share, const QuantParams& logarithms) {
  constexpr double kPart = LargestShare::kPart;
  const Operand large = EmitLogarithm(context, EmitLargestShares(context, x, kPart, step), x.count,
                                      share.of_large, logarithms);
  if (share.of_small.entries.empty()) return large;
  Rows sum;
  sum.params = logarithms;
  sum.count = x.count;
  sum.a = large;
  const Operand small =
      EmitLogarithm(context, EmitLargestShares(context, x, kPart * share.cut, step), x.count,
                    share.of_small, logarithms);
  const integer::Result result = TemporaryFor(context, logarithms, x.count);
  EmitByRow(context, integer::Combine::Kind::kAdd, sum, logarithms, small, logarithms, result);
  return result.d;
}

// x - max x + log of the largest share.
void EmitLogSoftmax(IntegerContext& context, const Rows& x, const QuantParams& to,
                    const integer::Result& result) {
  const LargestShare share = MakeLargestShare(x.length);
  const QuantParams logarithms = Params(DType::kInt16, share.step);
  const Operand logarithm = EmitLogarithmOfLargest(context, x, to.scale[0], share, logarithms);
  Rows below = x;
  below.params = Params(DType::kInt16, DistanceStep(x.params));
  const integer::Result of_below = TemporaryFor(context, below.params, x.count * x.length);
  EmitByRow(context, integer::Combine::Kind::kSub, x, x.params, EmitRowMaxima(context, x),
            below.params, of_below);
  below.a = of_below.d;
  EmitByRow(context, integer::Combine::Kind::kAdd, below, logarithms, logarithm, to, result);
}

}  // namespace

absl::Status LowerSoftmaxRows(IntegerContext& context) {
  const Layer& layer = context.layer();
  const bool is_log = context.root().op == Op::kLogSoftmax;
  const Shape& shape = context.graph().type(layer.outputs[0]).shape;
  const int64_t rank = static_cast<int64_t>(shape.size());
  ASSIGN_OR_RETURN(const int64_t axis, AxisAttr(context.root(), "axis", rank, rank - 1));
  ASSIGN_OR_RETURN(const QuantParams to, context.ActivationParams(layer.outputs[0]));
  Rows x;
  ASSIGN_OR_RETURN(x.params, context.ActivationParams(layer.inputs[0]));
  x.length = shape[static_cast<size_t>(axis)];
  x.count = ElementCount(shape) / x.length;
  if (is_log && x.length > 65535) {
    return absl::UnimplementedError("LogSoftmax of rows of more than 65535 elements");
  }
  std::vector<int64_t> rows_last;  // the dimensions, that of the rows last
  int64_t inner = 1;
  for (int64_t d = 0; d < rank; ++d) {
    if (d != axis) rows_last.push_back(d);
    if (d > axis) inner *= shape[static_cast<size_t>(d)];
  }
  rows_last.push_back(axis);
  if (inner == 1) {
    ASSIGN_OR_RETURN(x.a, context.Input(layer.inputs[0]));
  } else {
    ASSIGN_OR_RETURN(x.a, PermutedInput(context, x.params, shape, rows_last));
  }
  const integer::Result result = context.ResultFor(to, context.Output(layer.outputs[0], to));
  integer::Result rows = result;
  if (inner > 1) rows.d = context.Temporary(ElementCount(shape) * SizeOf(to.dtype));
  if (is_log) {
    EmitLogSoftmax(context, x, to, rows);
  } else {
    EmitSoftmax(context, x, to, to.scale[0], rows);
  }
  if (inner == 1) return absl::OkStatus();
  const Shape extents = Permuted(shape, rows_last);
  ASSIGN_OR_RETURN(
      const StridedWalk walk,
      MakeWalk(extents, {RowMajorStrides(extents), Permuted(RowMajorStrides(shape), rows_last)}));
  EmitMove(context, rows.d, to, result, to, walk);
  return absl::OkStatus();
}

}  // namespace npuc
