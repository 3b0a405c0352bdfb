#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "compiler_core/base/fp16.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/shape_util.h"
#include "compiler_core/passes/apply.h"
#include "compiler_core/passes/rewriter.h"

namespace npuc {
namespace {

// A node on its way into the new graph, whose operands are in their one form already. A rule may
// change the node in place, or find the value that it equals.
struct Rule {
  const Graph& graph;
  const TensorType& result;  // of the node's first result
  Node& node;

  Op op() const { return node.op; }
  const Node& operand(int i) const { return graph.def(node.inputs[i]); }
  bool OperandIs(int i, std::initializer_list<Op> ops) const {
    const Op op = operand(i).op;
    return std::find(ops.begin(), ops.end(), op) != ops.end();
  }
};

std::vector<int64_t>* Ints(Node& node, absl::string_view name) {
  const auto it = node.attrs.find(name);
  return it == node.attrs.end() ? nullptr : std::get_if<std::vector<int64_t>>(&it->second);
}

// The one value of a constant's elements, where it has one.
std::optional<double> SplatOf(const Tensor* tensor) {
  if (tensor == nullptr || tensor->element_count() == 0) return std::nullopt;
  constexpr int64_t kMaxElementsRead = 4096;  // neutral operands are small; big ones are weights
  if (tensor->element_count() > kMaxElementsRead) return std::nullopt;
  const double first = tensor->at(0);
  for (int64_t i = 1; i < tensor->element_count(); ++i) {
    if (tensor->at(i) != first) return std::nullopt;
  }
  return first;
}

// A constant goes second where the order does not matter.
void ConstantSecond(const Rule& rule) {
  const Op op = rule.op();
  if (op != Op::kAdd && op != Op::kMul && op != Op::kMaximum && op != Op::kMinimum &&
      op != Op::kSquaredDifference) {
    return;
  }
  std::vector<ValueId>& inputs = rule.node.inputs;
  if (rule.graph.ConstantOf(inputs[0]) != nullptr && rule.graph.ConstantOf(inputs[1]) == nullptr) {
    std::swap(inputs[0], inputs[1]);
  }
}

// x + 0, x - 0, x * 1, x / 1, x ** 1 are x; x ** 2 is Square, x ** -1 is Reciprocal. The operand
// must have the result's shape.
std::optional<ValueId> NeutralOperand(const Rule& rule) {
  Node& node = rule.node;
  if (node.inputs.size() != 2 || rule.graph.type(node.inputs[0]) != rule.result) {
    return std::nullopt;
  }
  const Op op = rule.op();
  const bool sum = op == Op::kAdd || op == Op::kSub;
  const bool product = op == Op::kMul || op == Op::kDiv || op == Op::kPow;
  if (!sum && !product) return std::nullopt;
  const std::optional<double> splat = SplatOf(rule.graph.ConstantOf(node.inputs[1]));
  if (!splat.has_value()) return std::nullopt;
  if (*splat == (sum ? 0.0 : 1.0)) return node.inputs[0];
  const bool square = op == Op::kPow && *splat == 2.0;
  if (square || (op == Op::kPow && *splat == -1.0 && IsFloat(rule.result.dtype))) {
    node.op = square ? Op::kSquare : Op::kReciprocal;
    node.inputs.pop_back();
  }
  return std::nullopt;
}

// Functions of functions that add nothing, or skip the inner one.
std::optional<ValueId> ComposedUnary(const Rule& rule) {
  Node& node = rule.node;
  if (node.inputs.size() != 1) return std::nullopt;
  const bool floats = IsFloat(rule.result.dtype);
  if (rule.op() == Op::kRelu) {
    if (rule.OperandIs(0, {Op::kRelu, Op::kRelu6})) return node.inputs[0];
    // Never below zero; an integer's square or absolute value may wrap to below.
    if (floats && rule.OperandIs(0, {Op::kAbs, Op::kSquare, Op::kExp, Op::kSigmoid, Op::kSqrt,
                                     Op::kSoftmax})) {
      return node.inputs[0];
    }
  } else if (rule.op() == Op::kRelu6) {
    if (rule.OperandIs(0, {Op::kRelu6, Op::kSigmoid})) return node.inputs[0];
    if (rule.OperandIs(0, {Op::kRelu})) node.inputs = rule.operand(0).inputs;
  } else if (rule.op() == Op::kNeg) {
    if (rule.OperandIs(0, {Op::kNeg})) return rule.operand(0).inputs[0];
  } else if (rule.op() == Op::kAbs) {
    if (rule.OperandIs(0, {Op::kNeg})) node.inputs = rule.operand(0).inputs;
    if (rule.OperandIs(0, {Op::kAbs})) return node.inputs[0];
    if (floats && rule.OperandIs(0, {Op::kExp, Op::kSigmoid, Op::kSquare, Op::kRelu6}))
      return node.inputs[0];
  } else if (rule.op() == Op::kSquare) {
    if (rule.OperandIs(0, {Op::kNeg, Op::kAbs})) node.inputs = rule.operand(0).inputs;
  }
  return std::nullopt;
}

// Axes count from the front, and are written out.
void PositiveAxis(const Rule& rule) {
  Node& node = rule.node;
  const bool softmax = rule.op() == Op::kSoftmax || rule.op() == Op::kLogSoftmax;
  if (!softmax && rule.op() != Op::kConcat && rule.op() != Op::kSplit) return;
  const int64_t rank = static_cast<int64_t>(rule.graph.type(node.inputs[0]).shape.size());
  const absl::StatusOr<int64_t> axis = AxisAttr(node, "axis", rank, -1);
  NPUC_CHECK(axis.ok());  // the node has passed VerifyGraph
  node.attrs.insert_or_assign("axis", *axis);
}

// A slice of one element or none has stride 1, one of none begins at 0.
void UnitStrides(const Rule& rule) {
  if (rule.op() != Op::kSlice) return;
  const std::vector<int64_t>& size = *Ints(rule.node, "size");
  for (size_t i = 0; i < size.size(); ++i) {
    if (size[i] <= 1) (*Ints(rule.node, "strides"))[i] = 1;
    if (size[i] == 0) (*Ints(rule.node, "begin"))[i] = 0;
  }
}

void BecomeReshape(const Rule& rule) {
  rule.node.op = Op::kReshape;
  rule.node.attrs = {{"shape", rule.result.shape}};
}

// Two transposes are one; one that moves only dimensions of 1 is a Reshape.
void MergedTranspose(const Rule& rule) {
  Node& node = rule.node;
  if (rule.op() != Op::kTranspose) return;
  std::vector<int64_t>& perm = *Ints(node, "perm");
  if (rule.OperandIs(0, {Op::kTranspose})) {
    const Node& inner = rule.operand(0);
    const auto& inner_perm = std::get<std::vector<int64_t>>(inner.attrs.find("perm")->second);
    for (int64_t& axis : perm) axis = inner_perm[axis];
    node.inputs = inner.inputs;
  }
  const Shape& shape = rule.graph.type(node.inputs[0]).shape;
  std::vector<int64_t> moved;
  for (const int64_t axis : perm) {
    if (shape[axis] != 1) moved.push_back(axis);
  }
  if (std::is_sorted(moved.begin(), moved.end())) BecomeReshape(rule);
}

// A reduction over dimensions of 1 changes nothing but the shape.
void ReductionOfOne(const Rule& rule) {
  const Op op = rule.op();
  if (op != Op::kReduceSum && op != Op::kReduceMean && op != Op::kReduceMax) return;
  const Shape& shape = rule.graph.type(rule.node.inputs[0]).shape;
  const std::vector<int64_t>& axes = *Ints(rule.node, "axes");
  const bool one =
      std::all_of(axes.begin(), axes.end(), [&](int64_t axis) { return shape[axis] == 1; });
  if (one && !axes.empty()) BecomeReshape(rule);
}

bool SwapsLastTwo(const std::vector<int64_t>& perm) {
  const int64_t rank = static_cast<int64_t>(perm.size());
  if (rank < 2 || perm[rank - 1] != rank - 2 || perm[rank - 2] != rank - 1) return false;
  return std::is_sorted(perm.begin(), perm.end() - 2);
}

// A product of a transposed matrix says so by its flag.
void TransposedFactor(const Rule& rule) {
  Node& node = rule.node;
  if (rule.op() != Op::kMatMul) return;
  for (int i = 0; i < 2; ++i) {
    const Node& factor = rule.operand(i);
    const absl::string_view flag = i == 0 ? "transpose_a" : "transpose_b";
    bool transposed = BoolAttrOr(node, flag, false);
    if (factor.op == Op::kTranspose &&
        SwapsLastTwo(std::get<std::vector<int64_t>>(factor.attrs.find("perm")->second))) {
      node.inputs[i] = factor.inputs[0];
      transposed = !transposed;
    }
    node.attrs.insert_or_assign(std::string(flag), transposed);
  }
}

// Pads of pads with one value are one.
void MergedPad(const Rule& rule) {
  Node& node = rule.node;
  if (rule.op() != Op::kPad) return;
  node.attrs.try_emplace("value", 0.0);
  const Node& inner = rule.operand(0);
  if (inner.op != Op::kPad) return;
  const double value = FloatAttrOr(node, "value", 0.0);
  const double inner_value = FloatAttrOr(inner, "value", 0.0);
  if (value != inner_value || std::signbit(value) != std::signbit(inner_value)) return;
  const auto& inner_paddings = std::get<std::vector<int64_t>>(inner.attrs.find("paddings")->second);
  std::vector<int64_t>& paddings = *Ints(node, "paddings");
  for (size_t i = 0; i < paddings.size(); ++i) paddings[i] += inner_paddings[i];
  node.inputs = inner.inputs;
}

// The maxima of windows over a border of a number that is taken to lie below all others, which
// converters write for the padding of a MaxPool, are those of windows that leave the border out. As
// a tensor of its own the border would widen the range that an integer core has to hold. Converters
// take -infinity, the lowest number of f32, bf16 or fp16, or -1e9: all at most the lowest of fp16.
void MaximaWithoutBorder(const Rule& rule) {
  Node& node = rule.node;
  if (rule.op() != Op::kMaxPool) return;
  const Node& pad = rule.operand(0);
  if (pad.op != Op::kPad || !(FloatAttrOr(pad, "value", 0.0) <= -kLargestHalf)) return;
  const auto& paddings = std::get<std::vector<int64_t>>(pad.attrs.find("paddings")->second);
  if (paddings[0] != 0 || paddings[1] != 0 || paddings[6] != 0 || paddings[7] != 0) return;
  const std::vector<int64_t>& kernel = *Ints(node, "kernel");
  std::vector<int64_t> pads = *Ints(node, "pads");
  for (size_t i = 0; i < pads.size(); ++i) {
    pads[i] += paddings[i + 2];
    if (pads[i] < 0 || pads[i] >= kernel[i / 2]) return;  // a window might lie in the border
  }
  *Ints(node, "pads") = std::move(pads);
  node.inputs = pad.inputs;
}

// Applies every rule; the value that the node equals, where it needs no node.
std::optional<ValueId> Simplify(const Rule& rule) {
  ConstantSecond(rule);
  PositiveAxis(rule);
  UnitStrides(rule);
  MergedTranspose(rule);
  ReductionOfOne(rule);
  TransposedFactor(rule);
  MergedPad(rule);
  MaximaWithoutBorder(rule);
  if (const std::optional<ValueId> value = NeutralOperand(rule)) return value;
  return ComposedUnary(rule);
}

}  // namespace

Graph ApplyCanonicalize(Graph graph) {
  // Most graphs keep all their nodes: those are changed where they are, up to the first that goes.
  std::optional<ValueId> first;
  int done = 0;
  for (; done < graph.node_count() && !first.has_value(); ++done) {
    Node& node = graph.mutable_node(NodeId(done));
    first = Simplify({graph, graph.type(node.outputs[0]), node});
  }
  if (!first.has_value()) return graph;
  Rewriter rewriter(std::move(graph));
  for (int i = 0; i < done - 1; ++i) rewriter.Append(rewriter.Take(i));
  rewriter.Replace(rewriter.Take(done - 1), *first);
  for (int i = done; i < rewriter.old().node_count(); ++i) {
    Node node = rewriter.Take(i);
    const std::optional<ValueId> value =
        Simplify({rewriter.graph(), rewriter.type(node.outputs[0]), node});
    if (value.has_value()) {
      rewriter.Replace(node, *value);
    } else {
      rewriter.Append(std::move(node));
    }
  }
  return rewriter.Finish();
}

}  // namespace npuc
