#include <algorithm>
#include <cmath>
#include <cstring>
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

// exp(-scale * distance) at each entry, the last one 2^30.
std::vector<uint8_t> ExponentialTable(const QuantParams& from, int index_bits) {
  constexpr double kOne = 1 << 30;
  const int64_t entries = integer::TableEntries(from.dtype, index_bits);
  const bool wide = SizeOf(from.dtype) > 1;
  const double step = wide ? std::ldexp(1.0, 16 - index_bits) : 1;
  // Place 65535 is the largest value's own; a table of 2^bits + 1 entries goes one further.
  const double top = wide ? 65535 / step : static_cast<double>(entries - 1);
  std::vector<uint8_t> bytes(static_cast<size_t>(entries) * 4);
  for (int64_t i = 0; i < entries; ++i) {
    const double distance = (top - static_cast<double>(i)) * step * from.scale[0];
    const uint32_t entry = static_cast<uint32_t>(
        std::min<int64_t>(RoundHalfEven(kOne * std::exp(-distance)), int64_t{1} << 31));
    std::memcpy(bytes.data() + i * 4, &entry, 4);
  }
  return bytes;
}

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

void EmitSoftmax(IntegerContext& context, const Rows& x, const QuantParams& to,
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
  // Below 2^-26 a difference has no bits left in TFLite's form.
  if (tflites && x.params.scale[0] >= std::ldexp(1.0, -26)) {
    SetFixed(x.params, c);
  } else {
    c.index_bits = IndexBits(context, x.params);
    c.table = context.Constant(ExponentialTable(x.params, c.index_bits));
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

// The logarithm of 16-bit fractions of one.
Operand EmitLogarithm(IntegerContext& context, Operand a, int64_t count, const QuantParams& to) {
  constexpr int kIndexBits = 12;
  std::vector<uint8_t> table;
  for (int64_t i = 0; i < integer::TableEntries(DType::kUint16, kIndexBits); ++i) {
    const double fraction = std::max(std::ldexp(static_cast<double>(i), -kIndexBits), 0x1p-16);
    const int64_t stored = RoundHalfEven(std::log(fraction) / to.scale[0]);
    const int16_t entry = static_cast<int16_t>(std::clamp(stored, to.qmin, to.qmax));
    table.resize(table.size() + sizeof(entry));
    std::memcpy(table.data() + table.size() - sizeof(entry), &entry, sizeof(entry));
  }
  integer::Lookup c;
  c.a = a;
  c.a_type = DType::kUint16;
  c.index_bits = kIndexBits;
  c.table = context.Constant(table);
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

// x - max x + log of the largest share: that share is one by the sum of all e^(x - max x).
void EmitLogSoftmax(IntegerContext& context, const Rows& x, const QuantParams& to,
                    const integer::Result& result) {
  Rows shares = x;
  shares.params = Params(DType::kUint16, 0x1p-16);
  const integer::Result of_shares = TemporaryFor(context, shares.params, x.count * x.length);
  EmitSoftmax(context, x, shares.params, of_shares);
  shares.a = of_shares.d;
  const QuantParams logarithms = Params(DType::kInt16, 16 * std::log(2.0) / INT16_MAX);
  const Operand logarithm =
      EmitLogarithm(context, EmitRowMaxima(context, shares), x.count, logarithms);
  Rows below = x;
  const double steps = SizeOf(x.params.dtype) > 1 ? UINT16_MAX : UINT8_MAX;
  below.params = Params(DType::kInt16, x.params.scale[0] * steps / INT16_MAX);
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
    EmitSoftmax(context, x, to, rows);
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
