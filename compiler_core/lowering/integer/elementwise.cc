#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/integer/access.h"
#include "compiler_core/lowering/integer/context.h"
#include "compiler_core/ops/layers.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/ops/shape_util.h"

namespace npuc {
namespace {

int32_t Number(int64_t value) { return static_cast<int32_t>(value); }

integer::Combine::Kind KindOf(Op op) {
  if (op == Op::kSub) return integer::Combine::Kind::kSub;
  if (op == Op::kMul) return integer::Combine::Kind::kMul;
  if (op == Op::kMaximum) return integer::Combine::Kind::kMax;
  return op == Op::kMinimum ? integer::Combine::Kind::kMin : integer::Combine::Kind::kAdd;
}

// One operand: an activation, or a constant laid with the weights.
struct Side {
  Operand place;
  QuantParams params;
};

absl::StatusOr<Side> TakeSide(IntegerContext& context, ValueId value) {
  Side side;
  ASSIGN_OR_RETURN(side.params, context.ActivationParams(value));
  if (context.graph().ConstantOf(value) == nullptr) {
    ASSIGN_OR_RETURN(side.place, context.Input(value));
    return side;
  }
  ASSIGN_OR_RETURN(const Tensor stored, context.Integers(value, side.params));
  side.place = context.Constant({stored.bytes().begin(), stored.bytes().end()});
  return side;
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

// Factors of the command, by its scales. Source: TFLite's kernels, which shift operands of 8 bits
// by 20 and those of 16 bits by 15. A result of much finer steps than theirs needs more.
void SetFactors(IntegerContext& context, const QuantParams& a, const QuantParams& b,
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
  } else {
    constexpr int kFineShift = 30;
    c.left = SizeOf(a.dtype) > 1 || SizeOf(b.dtype) > 1 ? 15 : 20;
    std::tie(factors, c.rounding) = context.FactorsFor(SumScalings(a, b, d, c.left));
    if (c.rounding == Rounding::kUp) {
      c.left = kFineShift;
      std::tie(factors, c.rounding) = context.FactorsFor(SumScalings(a, b, d, c.left));
    }
  }
  c.factors = context.Factors(factors);
}

// One node of a function, by the values that are known: constants and earlier results.
absl::Status Evaluate(const Graph& graph, const Node& node, std::map<ValueId, Tensor>& values) {
  std::vector<Tensor> inputs;
  for (const ValueId input : node.inputs) {
    const Tensor* constant = graph.ConstantOf(input);
    if (constant == nullptr) {
      inputs.push_back(values.at(input));
    } else if (constant->element_count() == 1) {
      inputs.push_back(constant->WithShape({}));
    } else {
      return absl::UnimplementedError(
          absl::StrCat(NameOf(node.op), " with a constant that is not one number"));
    }
  }
  ASSIGN_OR_RETURN(std::vector<Tensor> results, DefOf(node.op).reference(node, inputs));
  values.insert_or_assign(node.outputs[0], std::move(results[0]));
  return absl::OkStatus();
}

// The result of the layer's function at every real value that the operand's integers stand for.
absl::StatusOr<std::vector<double>> Sampled(IntegerContext& context,
                                            const std::vector<float>& points) {
  const Layer& layer = context.layer();
  const Shape shape = {static_cast<int64_t>(points.size())};
  std::map<ValueId, Tensor> known = {{layer.inputs[0], Tensor::FromFloats(shape, points)}};
  for (const NodeId id : layer.nodes) {
    RETURN_IF_ERROR(Evaluate(context.graph(), context.graph().node(id), known));
  }
  const Tensor& result = known.at(layer.outputs[0]);
  std::vector<double> values;
  for (int64_t i = 0; i < result.element_count(); ++i) values.push_back(result.at(i));
  return values;
}

// Entries of a table: the stored result at each point.
std::vector<uint8_t> TableBytes(const IntegerContext& context, const QuantParams& to,
                                const std::vector<double>& values) {
  const size_t size = static_cast<size_t>(SizeOf(to.dtype));
  std::vector<uint8_t> bytes(values.size() * size);
  for (size_t i = 0; i < values.size(); ++i) {
    constexpr int64_t kLarge = int64_t{1} << 40;
    const double scaled = values[i] / to.scale[0];
    const int64_t rounded = context.exact() ? RoundHalfAway(scaled) : RoundHalfEven(scaled);
    const int64_t stored =
        std::clamp(std::clamp(rounded, -kLarge, kLarge) + to.zero_point[0], to.qmin, to.qmax);
    std::memcpy(bytes.data() + i * size, &stored, size);  // little-endian
  }
  return bytes;
}

// The integers that a table has entries for: each of 8 bits, else 2^bits + 1 at equal distances.
std::vector<float> PointsOf(const QuantParams& from, int index_bits) {
  const int64_t lowest = integer::LowestValue(from.dtype);
  const int64_t entries = integer::TableEntries(from.dtype, index_bits);
  const int64_t step = SizeOf(from.dtype) == 1 ? 1 : int64_t{1} << (16 - index_bits);
  std::vector<float> points;
  for (int64_t i = 0; i < entries; ++i) {
    const int64_t stored = lowest + i * step - from.zero_point[0];
    points.push_back(static_cast<float>(static_cast<double>(stored) * from.scale[0]));
  }
  return points;
}

int IndexBits(const IntegerContext& context, const QuantParams& from) {
  if (SizeOf(from.dtype) == 1) return 8;
  // A function of several operators may bend anywhere: Relu6 inside of HardSwish.
  constexpr int kBitsOfBentFunction = 12;
  const int least = context.layer().nodes.size() > 1 ? kBitsOfBentFunction : kMinLutBits;
  return std::clamp(context.settings().lut_bits, least, kMaxLutBits);
}

}  // namespace

absl::Status LowerCombine(IntegerContext& context) {
  const Node& root = context.root();
  const Graph& graph = context.graph();
  const Shape& out = graph.type(root.outputs[0]).shape;
  ASSIGN_OR_RETURN(const Side a, TakeSide(context, root.inputs[0]));
  ASSIGN_OR_RETURN(const Side b, TakeSide(context, root.inputs[1]));
  const ValueId result = context.layer().outputs[0];
  ASSIGN_OR_RETURN(const QuantParams to, context.ActivationParams(result));
  ASSIGN_OR_RETURN(const StridedWalk walk,
                   MakeWalk(out, {BroadcastStrides(graph.type(root.inputs[0]).shape, out),
                                  BroadcastStrides(graph.type(root.inputs[1]).shape, out),
                                  RowMajorStrides(out)}));
  integer::Combine c;
  c.kind = KindOf(root.op);
  c.a = a.place;
  c.a_type = a.params.dtype;
  c.a_zero = Number(a.params.zero_point[0]);
  c.b = b.place;
  c.b_type = b.params.dtype;
  c.b_zero = Number(b.params.zero_point[0]);
  SetFactors(context, a.params, b.params, to, c);
  c.extents = walk.extents;
  c.a_strides = walk.strides[0];
  c.b_strides = walk.strides[1];
  c.d_strides = walk.strides[2];
  c.result = context.ResultFor(to, context.Output(result, to));
  context.Emit(c);
  return absl::OkStatus();
}

absl::Status LowerActivation(IntegerContext& context) {
  const Layer& layer = context.layer();
  const bool only_clamps =
      std::all_of(layer.nodes.begin(), layer.nodes.end(), [&context](NodeId id) {
        return ClampOf(context.graph(), context.graph().node(id)).has_value();
      });
  return only_clamps ? LowerClamps(context) : LowerFunction(context);
}

absl::Status LowerFunction(IntegerContext& context) {
  const Layer& layer = context.layer();
  if (layer.inputs.size() != 1) {
    return absl::UnimplementedError(absl::StrCat(NameOf(context.root().op), " of two activations"));
  }
  ASSIGN_OR_RETURN(const QuantParams from, context.ActivationParams(layer.inputs[0]));
  ASSIGN_OR_RETURN(const QuantParams to, context.ActivationParams(layer.outputs[0]));
  integer::Lookup c;
  ASSIGN_OR_RETURN(c.a, context.Input(layer.inputs[0]));
  c.a_type = from.dtype;
  c.index_bits = IndexBits(context, from);
  ASSIGN_OR_RETURN(const std::vector<double> values,
                   Sampled(context, PointsOf(from, c.index_bits)));
  c.table = context.Constant(TableBytes(context, to, values));
  c.count = Number(context.graph().type(layer.outputs[0]).element_count());
  c.result = context.ResultFor(to, context.Output(layer.outputs[0], to));
  context.Emit(c);
  return absl::OkStatus();
}

namespace {

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

}  // namespace

absl::Status LowerSoftmaxRows(IntegerContext& context) {
  const Layer& layer = context.layer();
  const Shape& shape = context.graph().type(layer.outputs[0]).shape;
  const int64_t rank = static_cast<int64_t>(shape.size());
  ASSIGN_OR_RETURN(const int64_t axis, AxisAttr(context.root(), "axis", rank, rank - 1));
  const int64_t length = shape[static_cast<size_t>(axis)];
  ASSIGN_OR_RETURN(const QuantParams from, context.ActivationParams(layer.inputs[0]));
  ASSIGN_OR_RETURN(const QuantParams to, context.ActivationParams(layer.outputs[0]));
  std::vector<int64_t> rows_last;  // the dimensions, that of the rows last
  int64_t inner = 1;
  for (int64_t d = 0; d < rank; ++d) {
    if (d != axis) rows_last.push_back(d);
    if (d > axis) inner *= shape[static_cast<size_t>(d)];
  }
  rows_last.push_back(axis);
  integer::Softmax c;
  if (inner == 1) {
    ASSIGN_OR_RETURN(c.a, context.Input(layer.inputs[0]));
  } else {
    ASSIGN_OR_RETURN(c.a, PermutedInput(context, from, shape, rows_last));
  }
  c.a_type = from.dtype;
  c.length = Number(length);
  c.rows = Number(ElementCount(shape) / length);
  const bool tflites = context.exact() && from.dtype == DType::kInt8 && to.dtype == DType::kInt8 &&
                       to.scale[0] == 1.0 / 256 && to.zero_point[0] == -128;
  // Below 2^-26 a difference has no bits left in TFLite's form.
  if (tflites && from.scale[0] >= std::ldexp(1.0, -26)) {
    SetFixed(from, c);
  } else {
    c.index_bits = IndexBits(context, from);
    c.table = context.Constant(ExponentialTable(from, c.index_bits));
    const Factor factor =
        MakeFactor(std::ldexp(1.0, -24) / to.scale[0], context.settings().multiplier_bits);
    c.factors = context.Factors({factor});
  }
  const integer::Result result = context.ResultFor(to, context.Output(layer.outputs[0], to));
  c.result = result;
  if (inner == 1) {
    context.Emit(c);
    return absl::OkStatus();
  }
  c.result.d = context.Temporary(ElementCount(shape) * SizeOf(to.dtype));
  context.Emit(c);
  const Shape extents = Permuted(shape, rows_last);
  ASSIGN_OR_RETURN(
      const StridedWalk walk,
      MakeWalk(extents, {RowMajorStrides(extents), Permuted(RowMajorStrides(shape), rows_last)}));
  EmitMove(context, c.result.d, to, result, to, walk);
  return absl::OkStatus();
}

}  // namespace npuc
