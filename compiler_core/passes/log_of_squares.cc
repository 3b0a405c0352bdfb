// The logarithm of a sum of squares and of a number that fp16 does not hold well.
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/graph_builder.h"
#include "compiler_core/passes/apply.h"
#include "compiler_core/passes/rewriter.h"

namespace npuc {
namespace {

// From here on fp16 has all of its 11 bits.
constexpr double kLeastNormalHalf = 0x1p-14;

// Where the values of a node come from, seen from its operand backwards.
struct Squares {
  std::vector<ValueId> roots;   // their squares are summed
  std::optional<AttrMap> axes;  // of a ReduceSum over the one root's square
  std::vector<NodeId> moves;    // what moves the sum to its place, the last one first
  double floor = 0;             // the number that is added
};

class Matcher {
 public:
  explicit Matcher(const Graph& graph) : graph_(graph) {}

  // The squares in the logarithm's operand, if it is such a sum.
  std::optional<Squares> Match(ValueId operand) const {
    const Node& add = graph_.def(operand);
    if (add.op != Op::kAdd || graph_.type(operand).dtype != DType::kFloat32) return std::nullopt;
    for (const size_t side : {size_t{1}, size_t{0}}) {
      const Tensor* number = graph_.ConstantOf(add.inputs[side]);
      if (number == nullptr || number->element_count() != 1) continue;
      const ValueId sum = add.inputs[1 - side];
      Squares squares;
      squares.floor = number->at(0);
      const bool is_small = squares.floor > 0 && squares.floor < kLeastNormalHalf;
      if (!is_small || graph_.type(sum).shape != graph_.type(operand).shape) continue;
      if (!Sum(sum, squares)) return std::nullopt;
      // Nothing is the largest of no elements.
      for (const ValueId root : squares.roots) {
        if (graph_.type(root).element_count() == 0) return std::nullopt;
      }
      return squares;
    }
    return std::nullopt;
  }

 private:
  // x of x * x.
  std::optional<ValueId> Root(ValueId square) const {
    const Node& node = graph_.def(square);
    if (node.op == Op::kSquare) return node.inputs[0];
    if (node.op == Op::kMul && node.inputs[0] == node.inputs[1]) return node.inputs[0];
    return std::nullopt;
  }

  bool Reduced(ValueId sum, Squares& squares) const {
    const Node& node = graph_.def(sum);
    if (node.op != Op::kReduceSum) return false;
    const std::optional<ValueId> root = Root(node.inputs[0]);
    if (!root.has_value()) return false;
    squares.roots = {*root};
    squares.axes = node.attrs;
    return true;
  }

  bool Sum(ValueId sum, Squares& squares) const {
    if (Reduced(sum, squares)) return true;
    const Node& node = graph_.def(sum);
    if (node.op == Op::kAdd) {
      for (const ValueId part : node.inputs) {
        const std::optional<ValueId> root = Root(part);
        if (!root.has_value() || graph_.type(*root).shape != graph_.type(sum).shape) return false;
        squares.roots.push_back(*root);
      }
      return true;
    }
    const std::optional<ValueId> root = Root(sum);
    if (!root.has_value()) return false;
    // The square of a root of a sum of squares is that sum.
    ValueId inner = *root;
    std::vector<NodeId> moves;
    while (graph_.def(inner).op == Op::kTranspose || graph_.def(inner).op == Op::kReshape) {
      moves.push_back(graph_.value(inner).def);
      inner = graph_.def(inner).inputs[0];
    }
    if (graph_.def(inner).op == Op::kSqrt && Reduced(graph_.def(inner).inputs[0], squares)) {
      squares.moves = std::move(moves);
      return true;
    }
    squares.roots = {*root};
    return true;
  }

  const Graph& graph_;
};

// log(sum x^2 + f) = 2 log m + log(sum (x / m)^2 + (sqrt f / m)^2), where m is the largest of all
// |x| and sqrt f: every quotient is at most 1, and none that matters vanishes.
class SquareComposer {
 public:
  SquareComposer(Graph& graph, const NodeSource& source) : builder_(&graph), source_(source) {}

  ValueId Compose(const Squares& squares) {
    const ValueId least =
        builder_.Const(Tensor::ScalarFloat(static_cast<float>(std::sqrt(squares.floor))), source_);
    ValueId most = {};
    for (const ValueId root : squares.roots) {
      ValueId size = Add(Op::kAbs, {root});
      if (squares.axes.has_value()) {
        AttrMap kept = *squares.axes;
        kept["keep_dims"] = true;
        size = Add(Op::kReduceMax, {size}, std::move(kept));
      }
      most = most.valid() ? Add(Op::kMaximum, {most, size}) : size;
    }
    most = Add(Op::kMaximum, {most, least});
    ValueId sum = {};
    for (const ValueId root : squares.roots) {
      ValueId part = Add(Op::kSquare, {Add(Op::kDiv, {root, most})});
      if (squares.axes.has_value()) part = Add(Op::kReduceSum, {part}, *squares.axes);
      sum = sum.valid() ? Add(Op::kAdd, {sum, part}) : part;
    }
    const Shape shape = builder_.type(sum).shape;
    if (builder_.type(most).shape != shape) {
      most = Add(Op::kReshape, {most}, {{"shape", shape}});
    }
    const ValueId rest = Add(Op::kSquare, {Add(Op::kDiv, {least, most})});
    const ValueId fine = Add(Op::kLog, {Add(Op::kAdd, {sum, rest})});
    const ValueId two = builder_.Const(Tensor::ScalarFloat(2), source_);
    ValueId result = Add(Op::kAdd, {Add(Op::kMul, {Add(Op::kLog, {most}), two}), fine});
    for (auto move = squares.moves.rbegin(); move != squares.moves.rend(); ++move) {
      const Node node = builder_.graph().node(*move);
      result = Add(node.op, {result}, node.attrs);
    }
    return result;
  }

 private:
  ValueId Add(Op op, std::vector<ValueId> inputs, AttrMap attrs = {}) {
    const absl::StatusOr<ValueId> value = builder_.AddOne(
        op, inputs, std::move(attrs), DerivedSource(source_, absl::StrCat("squares_", ++parts_)));
    NPUC_CHECK(value.ok());  // the operands' shapes are those of the nodes that were there
    return *value;
  }

  GraphBuilder builder_;
  const NodeSource source_;
  int parts_ = 0;
};

}  // namespace

Graph ApplyLogOfSquares(Graph graph) {
  if (!HasOp(graph, {Op::kLog})) return graph;
  Rewriter rewriter(std::move(graph));
  for (int i = 0; i < rewriter.old().node_count(); ++i) {
    Node node = rewriter.Take(i);
    std::optional<Squares> squares;
    if (node.op == Op::kLog) squares = Matcher(rewriter.graph()).Match(node.inputs[0]);
    if (!squares.has_value()) {
      rewriter.Append(std::move(node));
      continue;
    }
    const ValueId value = SquareComposer(rewriter.graph(), node.source).Compose(*squares);
    rewriter.graph().set_source(rewriter.graph().value(value).def, node.source);
    rewriter.Replace(node, value);
  }
  return rewriter.Finish();
}

}  // namespace npuc
