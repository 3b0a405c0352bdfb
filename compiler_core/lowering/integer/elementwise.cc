#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/integer/access.h"
#include "compiler_core/lowering/integer/context.h"
#include "compiler_core/ops/layers.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/ops/shape_util.h"
#include "compiler_core/ops/stored_table.h"

namespace npuc {
namespace {

integer::Combine::Kind KindOf(Op op) {
  if (op == Op::kSub || op == Op::kGreater) return integer::Combine::Kind::kSub;
  if (op == Op::kMul) return integer::Combine::Kind::kMul;
  if (op == Op::kDiv) return integer::Combine::Kind::kDiv;
  if (op == Op::kMaximum) return integer::Combine::Kind::kMax;
  return op == Op::kMinimum ? integer::Combine::Kind::kMin : integer::Combine::Kind::kAdd;
}

// How the operands and the result of a sum, a difference or the larger of two are scaled, where
// both operands are shifted left first.
std::vector<Scaling> SumScalings(const QuantParams& a, const QuantParams& b, const QuantParams& d,
                                 int left) {
  const double twice = 2 * std::max(a.scale[0], b.scale[0]);
  const int64_t largest_a = LargestOf(a) << left;
  const int64_t largest_b = LargestOf(b) << left;
  const int64_t largest_sum = (largest_a + largest_b) / 2 + 1;  // each is halved at least
  return {{a.scale[0] / twice, largest_a},
          {b.scale[0] / twice, largest_b},
          {twice / (std::ldexp(1.0, left) * d.scale[0]), largest_sum}};
}

bool Jumps(Op op) { return op == Op::kFloor || op == Op::kRound; }

// Floor and Round of stored numbers of 2^-bits each, as whole numbers. Floor takes half of 1 away
// and rounds upwards: its halves are whole numbers.
integer::Move WholeNumbers(IntegerContext& context, Op op, int bits) {
  integer::Move move;
  move.a_zero = op == Op::kFloor && bits > 0 ? 1 << (bits - 1) : 0;
  move.factors = context.Factors({Factor{.multiplier = 1, .shift = bits}});
  move.rounding = op == Op::kFloor ? Rounding::kUp : Rounding::kEven;
  return move;
}

// The power of two that a scale of at most 1 is, as bits behind the point; -1: it is none.
int BitsBehindPoint(const QuantParams& params) {
  int exponent = 0;
  const bool is_power = std::frexp(params.scale[0], &exponent) == 0.5;
  return is_power && exponent <= 1 && exponent >= -14 ? 1 - exponent : -1;
}

// A constant divisor as the factor that it stands for, in 16 bits.
absl::StatusOr<Side> TakeReciprocals(IntegerContext& context, ValueId divisor) {
  const Tensor& values = *context.graph().ConstantOf(divisor);
  std::vector<double> reciprocals;
  double largest = 0;
  for (int64_t i = 0; i < values.element_count(); ++i) {
    reciprocals.push_back(1 / values.at(i));
    largest = std::max(largest, std::fabs(reciprocals.back()));
  }
  if (!std::isfinite(largest) || largest == 0) {
    return absl::UnimplementedError("Div by a constant of which an element is 0 or infinite");
  }
  Side side;
  side.params = {.dtype = DType::kInt16,
                 .qmin = INT16_MIN,
                 .qmax = INT16_MAX,
                 .scale = {largest / INT16_MAX},
                 .zero_point = {0}};
  std::vector<int64_t> stored;
  for (const double reciprocal : reciprocals) {
    stored.push_back(RoundHalfEven(reciprocal / side.params.scale[0]));
  }
  side.place = context.Constant(stored, sizeof(int16_t));
  return side;
}

// The square of a difference: a difference in 16 bits, then its product with itself. Source:
// TFLite's kernel, which shifts operands of 8 bits by 7, so that a difference has at most 15.
void EmitSquare(IntegerContext& context, const QuantParams& a, const QuantParams& b,
                const QuantParams& to, integer::Combine c) {
  const bool is_wide = SizeOf(a.dtype) > 1 || SizeOf(b.dtype) > 1;
  c.left = is_wide ? 0 : 7;
  const double unit = (is_wide ? 4 : 2) * std::max(a.scale[0], b.scale[0]);
  std::vector<Factor> factors;
  std::tie(factors, c.rounding) = context.FactorsFor({{a.scale[0] / unit, LargestOf(a) << c.left},
                                                      {b.scale[0] / unit, LargestOf(b) << c.left},
                                                      {1, INT16_MAX}});
  c.kind = integer::Combine::Kind::kSub;
  c.factors = context.Factors(factors);
  const integer::Result result = c.result;
  int64_t count = 1;
  for (const int32_t extent : c.extents) count *= extent;
  c.result = {context.Temporary(count * 2), DType::kInt16, 0, INT16_MIN, INT16_MAX};
  context.Emit(c);
  integer::Combine square = c;
  square.kind = integer::Combine::Kind::kMul;
  square.a = square.b = c.result.d;
  square.a_type = square.b_type = DType::kInt16;
  square.a_zero = square.b_zero = square.left = 0;
  square.a_strides = square.b_strides = c.d_strides;
  const double step = std::ldexp(unit, -c.left);
  std::tie(factors, square.rounding) =
      context.FactorsFor({{}, {}, {step * step / to.scale[0], int64_t{INT16_MAX} * INT16_MAX}});
  square.factors = context.Factors(factors);
  square.result = result;
  context.Emit(square);
}

// The difference of two operands, cut to 0 and 1. Both are rounded to one 64th of the larger step
// first, where factors of 15 bits leave equal numbers of 8 bits equal. Then each difference but 0
// reaches 1.
void EmitGreater(IntegerContext& context, const QuantParams& a, const QuantParams& b,
                 QuantParams to, integer::Combine c) {
  c.left = 7;
  const int64_t one = std::max<int64_t>(RoundHalfEven(1 / to.scale[0]), 1);
  c.result.min = std::max(c.result.min, Number(to.zero_point[0]));
  c.result.max = std::min(c.result.max, Number(std::min(to.zero_point[0] + one, to.qmax)));
  const double unit = std::ldexp(2 * std::max(a.scale[0], b.scale[0]), -c.left);
  to.scale[0] = unit / static_cast<double>(one);
  std::vector<Factor> factors;
  std::tie(factors, c.rounding) = context.FactorsFor(SumScalings(a, b, to, c.left));
  c.factors = context.Factors(factors);
  context.Emit(std::move(c));
}

}  // namespace

void SetCombineFactors(IntegerContext& context, const QuantParams& a, const QuantParams& b,
                       const QuantParams& d, integer::Combine& c) {
  std::vector<Factor> factors;
  if (c.kind == integer::Combine::Kind::kMul) {
    double product = a.scale[0] * b.scale[0] / d.scale[0];
    if (context.exact()) {
      product = static_cast<float>(a.scale[0]) * static_cast<float>(b.scale[0]) /
                static_cast<float>(d.scale[0]);
    }
    std::tie(factors, c.rounding) =
        context.FactorsFor({{}, {}, {product, LargestOf(a) * LargestOf(b)}});
  } else if (c.kind == integer::Combine::Kind::kDiv) {
    // So many bits of the quotient that its factor is about 2^-20: what it lacks is far below a
    // step of the result.
    constexpr int kFactorBits = 20;
    const double quotient = a.scale[0] / (b.scale[0] * d.scale[0]);
    c.left = std::clamp(std::ilogb(quotient) + 1 + kFactorBits, 0, 30);
    std::tie(factors, c.rounding) =
        context.FactorsFor({{}, {}, {std::ldexp(quotient, -c.left), LargestOf(a) << c.left}});
  } else {
    constexpr int kFineShift = 30;
    constexpr double kCoarseUnit = 0.25;  // of the shifted operands, in steps of the result
    c.left = SizeOf(a.dtype) > 1 || SizeOf(b.dtype) > 1 ? 15 : 20;
    const std::vector<Scaling> scalings = SumScalings(a, b, d, c.left);
    std::tie(factors, c.rounding) = context.FactorsFor(scalings);
    // TensorFlow Lite has no maximum of two scales, so that there its shift is no rule.
    const bool is_extremum =
        c.kind == integer::Combine::Kind::kMax || c.kind == integer::Combine::Kind::kMin;
    const bool is_coarse = is_extremum && scalings.back().value > kCoarseUnit;
    if (c.rounding == Rounding::kUp || is_coarse) {
      c.left = kFineShift;
      std::tie(factors, c.rounding) = context.FactorsFor(SumScalings(a, b, d, c.left));
    }
  }
  c.factors = context.Factors(factors);
}

absl::Status LowerCombine(IntegerContext& context) {
  const Node& root = context.root();
  const Graph& graph = context.graph();
  const Shape& out = graph.type(root.outputs[0]).shape;
  ASSIGN_OR_RETURN(const Side a, TakeSide(context, root.inputs[0]));
  const bool by_constants = root.op == Op::kDiv && graph.ConstantOf(root.inputs[1]) != nullptr;
  ASSIGN_OR_RETURN(const Side b, by_constants ? TakeReciprocals(context, root.inputs[1])
                                              : TakeSide(context, root.inputs[1]));
  const ValueId result = context.layer().outputs[0];
  ASSIGN_OR_RETURN(const QuantParams to, context.ActivationParams(result));
  ASSIGN_OR_RETURN(const StridedWalk walk,
                   MakeWalk(out, {BroadcastStrides(graph.type(root.inputs[0]).shape, out),
                                  BroadcastStrides(graph.type(root.inputs[1]).shape, out),
                                  RowMajorStrides(out)}));
  integer::Combine c;
  c.kind = by_constants ? integer::Combine::Kind::kMul : KindOf(root.op);
  c.a = a.place;
  c.a_type = a.params.dtype;
  c.a_zero = Number(a.params.zero_point[0]);
  c.b = b.place;
  c.b_type = b.params.dtype;
  c.b_zero = Number(b.params.zero_point[0]);
  c.extents = walk.extents;
  c.a_strides = walk.strides[0];
  c.b_strides = walk.strides[1];
  c.d_strides = walk.strides[2];
  c.result = context.ResultFor(to, context.Output(result, to));
  if (root.op == Op::kSquaredDifference) {
    EmitSquare(context, a.params, b.params, to, std::move(c));
  } else if (root.op == Op::kGreater) {
    EmitGreater(context, a.params, b.params, to, std::move(c));
  } else {
    SetCombineFactors(context, a.params, b.params, to, c);
    context.Emit(c);
  }
  return absl::OkStatus();
}

// One Floor or Round of 16-bit numbers whose scale is a power of two, without the table that would
// have an entry for each.
absl::Status LowerWholeNumbers(IntegerContext& context, const QuantParams& from,
                               const QuantParams& to) {
  const Layer& layer = context.layer();
  const int64_t count = context.graph().type(layer.outputs[0]).element_count();
  ASSIGN_OR_RETURN(const StridedWalk walk, MakeWalk({count}, {{1}, {1}}));
  integer::Move move = WholeNumbers(context, context.root().op, BitsBehindPoint(from));
  ASSIGN_OR_RETURN(move.a, context.Input(layer.inputs[0]));
  move.a_type = from.dtype;
  move.extents = walk.extents;
  move.a_strides = walk.strides[0];
  move.d_strides = walk.strides[1];
  QuantParams whole = from;
  whole.scale = {1};
  const bool ends = SameParams(whole, to);
  move.result = context.ResultFor(whole, ends ? context.Output(layer.outputs[0], to)
                                              : context.Temporary(count * SizeOf(whole.dtype)));
  if (!ends) {
    move.result.min = Number(whole.qmin);
    move.result.max = Number(whole.qmax);
  }
  const Operand place = move.result.d;
  context.Emit(std::move(move));
  if (!ends) {
    EmitMove(context, place, whole, context.ResultFor(to, context.Output(layer.outputs[0], to)), to,
             walk);
  }
  return absl::OkStatus();
}

Operand TableConstant(IntegerContext& context, const StoredTable& table, int64_t entry_bytes) {
  // The comparison is of numbers that rounding made.
  if (table.worst_steps > kMostTableSteps + 1e-6) {
    context.Warn(DiagnosticKind::kTableCoarse,
                 absl::StrFormat("its table of 2^%d entries is up to %.1f steps of the result off; "
                                 "%.1f are allowed",
                                 table.index_bits, table.worst_steps, kMostTableSteps),
                 absl::StrCat("remove lut_items_in_bits, or set it to ", table.needed_bits));
  }
  return context.Constant(table.entries, entry_bytes);
}

absl::Status LowerActivation(IntegerContext& context) {
  const Layer& layer = context.layer();
  const bool only_clamps =
      std::all_of(layer.nodes.begin(), layer.nodes.end(), [&context](NodeId id) {
        return ClampOf(context.graph(), context.graph().node(id)).has_value();
      });
  return only_clamps ? LowerClamps(context) : LowerFunction(context);
}

// True for a Div that is no function of one value.
bool DividesElements(const IntegerContext& context) {
  const Node& root = context.root();
  if (root.op != Op::kDiv || context.layer().nodes.size() != 1) return false;
  return std::none_of(root.inputs.begin(), root.inputs.end(), [&context](ValueId input) {
    const Tensor* constant = context.graph().ConstantOf(input);
    return constant != nullptr && constant->element_count() == 1;
  });
}

absl::Status LowerFunction(IntegerContext& context) {
  const Layer& layer = context.layer();
  if (DividesElements(context)) return LowerCombine(context);
  if (layer.inputs.size() != 1) {
    return absl::UnimplementedError(absl::StrCat(NameOf(context.root().op), " of two activations"));
  }
  ASSIGN_OR_RETURN(const QuantParams from, context.ActivationParams(layer.inputs[0]));
  ASSIGN_OR_RETURN(const QuantParams to, context.ActivationParams(layer.outputs[0]));
  if (layer.nodes.size() == 1 && Jumps(context.root().op) && from.dtype == DType::kInt16 &&
      from.zero_point[0] == 0 && BitsBehindPoint(from) >= 0) {
    return LowerWholeNumbers(context, from, to);
  }
  integer::Lookup c;
  ASSIGN_OR_RETURN(c.a, context.Input(layer.inputs[0]));
  c.a_type = from.dtype;
  ASSIGN_OR_RETURN(const StoredTable table,
                   MakeFunctionTable(context.graph(), layer, from, to, context.settings()));
  c.index_bits = table.index_bits;
  c.table = TableConstant(context, table, SizeOf(to.dtype));
  c.count = Number(context.graph().type(layer.outputs[0]).element_count());
  c.result = context.ResultFor(to, context.Output(layer.outputs[0], to));
  context.Emit(c);
  return absl::OkStatus();
}

}  // namespace npuc
