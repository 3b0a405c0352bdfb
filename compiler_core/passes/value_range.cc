#include "compiler_core/passes/value_range.h"

#include <cmath>
#include <limits>

#include "compiler_core/ops/op.h"
#include "compiler_core/passes/float_selection.h"

namespace npuc {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Interval kUnknown;
constexpr int kMaxDepth = 12;  // operators between the value and the furthest one that is looked at
// Values and elements of constants that one question may look at. A value that several operators
// read is looked at for each of them, and a concatenation has any number of operands.
constexpr int64_t kMaxLooks = int64_t{1} << 12;

Interval Quotient(const Interval& a, const Interval& b) {
  if (b.least <= 0 && b.most >= 0) return kUnknown;
  return Product(a, {1 / b.most, 1 / b.least});
}

// The range of an operator's result from that of its only operand.
Interval RangeOfUnary(Op op, const Interval& x) {
  switch (op) {
    case Op::kSigmoid:
    case Op::kSoftmax:
      return {0, 1};
    case Op::kTanh:
      return {-1, 1};
    case Op::kAbs:
    case Op::kExp:
    case Op::kSqrt:
    case Op::kSquare:
      return {0, kInfinity};
    case Op::kReduceSum:
      return x.least >= 0 ? Interval{0, kInfinity} : kUnknown;
    case Op::kFloor:
      return {std::floor(x.least), std::floor(x.most)};
    case Op::kRound:
      return {std::nearbyint(x.least), std::nearbyint(x.most)};
    case Op::kIdentity:
    case Op::kReshape:
    case Op::kSlice:
    case Op::kSplit:
    case Op::kTranspose:
    case Op::kMaxPool:
    case Op::kReduceMax:
    case Op::kReduceMean:
      return x;
    default:
      return IntervalOfResult(op, x).value_or(kUnknown);
  }
}

Interval RangeOfBinary(Op op, const Interval& a, const Interval& b) {
  return op == Op::kDiv ? Quotient(a, b) : IntervalOfResult(op, a, b).value_or(kUnknown);
}

class Finder {
 public:
  explicit Finder(const Graph& graph) : graph_(graph) {}

  Interval RangeAt(ValueId value, int depth) {
    const Tensor* const constant = graph_.ConstantOf(value);
    looks_ += constant == nullptr ? 1 : constant->element_count();
    if (looks_ > kMaxLooks) return kUnknown;
    if (constant != nullptr) return IntervalOf(*constant);
    const Node& node = graph_.def(value);
    if (node.attrs.contains(kLeastFact) && node.attrs.contains(kMostFact)) {
      return {static_cast<double>(IntAttrOr(node, kLeastFact, 0)),
              static_cast<double>(IntAttrOr(node, kMostFact, 0))};
    }
    if (depth == kMaxDepth || node.inputs.empty()) return kUnknown;
    const auto of = [&](size_t operand) { return RangeAt(node.inputs[operand], depth + 1); };
    if (node.op == Op::kConcat) {
      Interval range = of(0);
      for (size_t i = 1; i < node.inputs.size() && looks_ <= kMaxLooks; ++i) {
        range = Hull(range, of(i));
      }
      return looks_ <= kMaxLooks ? range : kUnknown;
    }
    if (node.op == Op::kMul && node.inputs[0] == node.inputs[1]) return {0, kInfinity};
    if (node.inputs.size() == 2) return RangeOfBinary(node.op, of(0), of(1));
    return node.inputs.size() == 1 ? RangeOfUnary(node.op, of(0)) : kUnknown;
  }

 private:
  const Graph& graph_;
  int64_t looks_ = 0;
};

}  // namespace

Interval RangeOf(const Graph& graph, ValueId value) { return Finder(graph).RangeAt(value, 0); }

}  // namespace npuc
