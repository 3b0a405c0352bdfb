#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/lowering/integer/context.h"
#include "compiler_core/ops/shape_util.h"

namespace npuc {
namespace {

Operand At(const Operand& place, int64_t elements, DType type) {
  return place.Plus(elements * SizeOf(type));
}

// The layer's operand and result, both with parameters.
struct Ends {
  QuantParams from;
  QuantParams to;
  Operand a;
  Operand d;
};

absl::StatusOr<Ends> EndsOf(IntegerContext& context, int output = 0) {
  const Layer& layer = context.layer();
  Ends ends;
  ASSIGN_OR_RETURN(ends.from, context.ActivationParams(layer.inputs[0]));
  ASSIGN_OR_RETURN(ends.to, context.ActivationParams(layer.outputs[static_cast<size_t>(output)]));
  ASSIGN_OR_RETURN(ends.a, context.Input(layer.inputs[0]));
  ends.d = context.Output(layer.outputs[static_cast<size_t>(output)], ends.to);
  return ends;
}

// Moves extents of the operand, which begin at element `first` of it, to element `to` of the
// result.
absl::Status MoveBlock(IntegerContext& context, const Ends& ends, int64_t first,
                       const Shape& extents, const Shape& a_strides, int64_t to,
                       const Shape& d_strides) {
  if (ElementCount(extents) == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const StridedWalk walk, MakeWalk(extents, {a_strides, d_strides}));
  EmitMove(context, At(ends.a, first, ends.from.dtype), ends.from,
           context.ResultFor(ends.to, At(ends.d, to, ends.to.dtype)), ends.to, walk);
  return absl::OkStatus();
}

absl::Status MoveAll(IntegerContext& context) {
  ASSIGN_OR_RETURN(const Ends ends, EndsOf(context));
  const int64_t count = context.graph().type(context.layer().outputs[0]).element_count();
  return MoveBlock(context, ends, 0, {count}, {1}, 0, {1});
}

}  // namespace

absl::StatusOr<StridedWalk> MakeWalk(const Shape& extents, const std::vector<Shape>& strides) {
  std::vector<int64_t> kept;
  std::vector<std::vector<int64_t>> kept_strides(strides.size());
  for (size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] == 1) continue;
    // A dimension that goes on where the next one ends is one with it, in every operand.
    const bool merges = !kept.empty() && [&] {
      for (size_t i = 0; i < strides.size(); ++i) {
        if (kept_strides[i].back() != strides[i][d] * extents[d]) return false;
      }
      return true;
    }();
    if (merges) {
      kept.back() *= extents[d];
      for (size_t i = 0; i < strides.size(); ++i) kept_strides[i].back() = strides[i][d];
      continue;
    }
    kept.push_back(extents[d]);
    for (size_t i = 0; i < strides.size(); ++i) kept_strides[i].push_back(strides[i][d]);
  }
  if (kept.size() > integer::kMaxExtents) {
    return absl::UnimplementedError("data that moves along more than six dimensions");
  }
  StridedWalk walk;
  walk.strides.resize(strides.size(), integer::Extents{});
  const size_t first = integer::kMaxExtents - kept.size();
  for (size_t d = 0; d < kept.size(); ++d) {
    walk.extents[first + d] = Number(kept[d]);
    for (size_t i = 0; i < strides.size(); ++i) {
      walk.strides[i][first + d] = Number(kept_strides[i][d]);
    }
  }
  return walk;
}

void EmitMove(IntegerContext& context, Operand a, const QuantParams& from, integer::Result result,
              const QuantParams& to, const StridedWalk& walk) {
  integer::Move move;
  move.a = a;
  move.a_type = from.dtype;
  move.extents = walk.extents;
  move.a_strides = walk.strides[0];
  move.d_strides = walk.strides[1];
  move.result = result;
  const bool clamps = result.min > from.qmin || result.max < from.qmax;
  if (!SameParams(from, to) || clamps) {
    move.a_zero = Number(from.zero_point[0]);
    const auto [factors, rounding] =
        context.FactorsFor({{from.scale[0] / to.scale[0], LargestOf(from)}});
    move.factors = context.Factors(factors);
    move.rounding = rounding;
  }
  context.Emit(move);
}

Shape Permuted(const Shape& numbers, absl::Span<const int64_t> perm) {
  Shape permuted;
  for (const int64_t d : perm) permuted.push_back(numbers[static_cast<size_t>(d)]);
  return permuted;
}

absl::StatusOr<Operand> PermutedInput(IntegerContext& context, const QuantParams& params,
                                      const Shape& shape, absl::Span<const int64_t> perm) {
  ASSIGN_OR_RETURN(const Operand a, context.Input(context.layer().inputs[0]));
  const Shape extents = Permuted(shape, perm);
  ASSIGN_OR_RETURN(
      const StridedWalk walk,
      MakeWalk(extents, {Permuted(RowMajorStrides(shape), perm), RowMajorStrides(extents)}));
  const integer::Result copy = {context.Temporary(ElementCount(shape) * SizeOf(params.dtype)),
                                params.dtype, Number(params.zero_point[0]), Number(params.qmin),
                                Number(params.qmax)};
  EmitMove(context, a, params, copy, params, walk);
  return copy.d;
}

absl::Status LowerReshape(IntegerContext& context) {
  const Layer& layer = context.layer();
  ASSIGN_OR_RETURN(const QuantParams from, context.ActivationParams(layer.inputs[0]));
  ASSIGN_OR_RETURN(const QuantParams to, context.ActivationParams(layer.outputs[0]));
  if (!SameParams(from, to)) return MoveAll(context);
  ASSIGN_OR_RETURN(const Operand place, context.Input(layer.inputs[0]));
  context.Alias(layer.outputs[0], place);
  return absl::OkStatus();
}

absl::Status LowerClamps(IntegerContext& context) { return MoveAll(context); }

absl::Status LowerTranspose(IntegerContext& context) {
  const Node& root = context.root();
  const Shape& in = context.graph().type(root.inputs[0]).shape;
  const Shape& out = context.graph().type(root.outputs[0]).shape;
  ASSIGN_OR_RETURN(const std::vector<int64_t> perm, IntsAttr(root, "perm"));
  ASSIGN_OR_RETURN(const Ends ends, EndsOf(context));
  return MoveBlock(context, ends, 0, out, Permuted(RowMajorStrides(in), perm), 0,
                   RowMajorStrides(out));
}

absl::Status LowerSlice(IntegerContext& context) {
  const Node& root = context.root();
  const Shape& in = context.graph().type(root.inputs[0]).shape;
  ASSIGN_OR_RETURN(const std::vector<int64_t> begin, IntsAttr(root, "begin"));
  ASSIGN_OR_RETURN(const std::vector<int64_t> size, IntsAttr(root, "size"));
  ASSIGN_OR_RETURN(const std::vector<int64_t> steps, IntsAttr(root, "strides"));
  Shape a_strides = RowMajorStrides(in);
  int64_t first = 0;
  for (size_t d = 0; d < in.size(); ++d) {
    first += begin[d] * a_strides[d];
    a_strides[d] *= steps[d];
  }
  ASSIGN_OR_RETURN(const Ends ends, EndsOf(context));
  return MoveBlock(context, ends, first, size, a_strides, 0, RowMajorStrides(size));
}

absl::Status LowerSplit(IntegerContext& context) {
  const Node& root = context.root();
  const Shape& in = context.graph().type(root.inputs[0]).shape;
  ASSIGN_OR_RETURN(const int64_t axis, AxisAttr(root, "axis", static_cast<int64_t>(in.size()), 0));
  const Shape a_strides = RowMajorStrides(in);
  int64_t first = 0;
  for (size_t i = 0; i < root.outputs.size(); ++i) {
    const Shape& part = context.graph().type(root.outputs[i]).shape;
    ASSIGN_OR_RETURN(const Ends ends, EndsOf(context, static_cast<int>(i)));
    RETURN_IF_ERROR(MoveBlock(context, ends, first, part, a_strides, 0, RowMajorStrides(part)));
    first += part[static_cast<size_t>(axis)] * a_strides[static_cast<size_t>(axis)];
  }
  return absl::OkStatus();
}

absl::Status LowerConcat(IntegerContext& context) {
  const Node& root = context.root();
  const Graph& graph = context.graph();
  const Shape& out = graph.type(root.outputs[0]).shape;
  ASSIGN_OR_RETURN(const int64_t axis, AxisAttr(root, "axis", static_cast<int64_t>(out.size()), 0));
  Ends ends;
  ASSIGN_OR_RETURN(ends.to, context.ActivationParams(root.outputs[0]));
  ends.d = context.Output(root.outputs[0], ends.to);
  const Shape d_strides = RowMajorStrides(out);
  int64_t to = 0;
  for (const ValueId input : root.inputs) {
    const Shape& part = graph.type(input).shape;
    if (graph.ConstantOf(input) != nullptr) {
      ends.from = ends.to;
      if (context.FindParams(input) != nullptr) {  // the model's own integers, at their own scale
        ASSIGN_OR_RETURN(ends.from, context.ActivationParams(input));
      }
      ASSIGN_OR_RETURN(const Tensor stored, context.Integers(input, ends.from));
      ends.a = context.Constant({stored.bytes().begin(), stored.bytes().end()});
    } else {
      ASSIGN_OR_RETURN(ends.from, context.ActivationParams(input));
      ASSIGN_OR_RETURN(ends.a, context.Input(input));
    }
    RETURN_IF_ERROR(MoveBlock(context, ends, 0, part, RowMajorStrides(part), to, d_strides));
    to += part[static_cast<size_t>(axis)] * d_strides[static_cast<size_t>(axis)];
  }
  return absl::OkStatus();
}

absl::Status LowerPad(IntegerContext& context) {
  const Node& root = context.root();
  const Shape& in = context.graph().type(root.inputs[0]).shape;
  const Shape& out = context.graph().type(root.outputs[0]).shape;
  ASSIGN_OR_RETURN(const std::vector<int64_t> paddings, IntsAttr(root, "paddings"));
  ASSIGN_OR_RETURN(const Ends ends, EndsOf(context));
  integer::Fill fill;
  fill.count = Number(ElementCount(out));
  fill.result = context.ResultFor(ends.to, ends.d);
  const double value = FloatAttrOr(root, "value", 0.0);
  constexpr int64_t kLarge = int64_t{1} << 40;
  const int64_t stored =
      std::clamp(RoundHalfEven(value / ends.to.scale[0]), -kLarge, kLarge) + ends.to.zero_point[0];
  fill.result.zero = Number(std::clamp(stored, ends.to.qmin, ends.to.qmax));
  context.Emit(fill);
  const Shape d_strides = RowMajorStrides(out);
  int64_t to = 0;
  for (size_t d = 0; d < in.size(); ++d) to += paddings[2 * d] * d_strides[d];
  return MoveBlock(context, ends, 0, in, RowMajorStrides(in), to, d_strides);
}

}  // namespace npuc
