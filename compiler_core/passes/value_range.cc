#include "compiler_core/passes/value_range.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler_core/ops/op.h"
#include "compiler_core/passes/float_selection.h"

namespace npuc {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr KnownRange kUnknown = {-kInfinity, kInfinity};
constexpr int kMaxDepth = 12;  // operators between the value and the furthest one that is looked at
// Values and elements of constants that one question may look at. A value that several operators
// read is looked at for each of them, and a concatenation has any number of operands.
constexpr int64_t kMaxLooks = int64_t{1} << 12;

KnownRange Meet(const KnownRange& a, double least, double most) {
  return {std::clamp(a.least, least, most), std::clamp(a.most, least, most)};
}

KnownRange Hull(const KnownRange& a, const KnownRange& b) {
  return {std::min(a.least, b.least), std::max(a.most, b.most)};
}

KnownRange Product(const KnownRange& a, const KnownRange& b) {
  const double corners[] = {a.least * b.least, a.least * b.most, a.most * b.least, a.most * b.most};
  KnownRange range = {kInfinity, -kInfinity};
  for (const double corner : corners) {
    if (std::isnan(corner)) return kUnknown;  // 0 times an unknown bound
    range = Hull(range, {corner, corner});
  }
  return range;
}

KnownRange RangeOfConstant(const Tensor& constant) {
  if (constant.element_count() == 0) return kUnknown;
  KnownRange range = {kInfinity, -kInfinity};
  for (int64_t i = 0; i < constant.element_count(); ++i) {
    const double value = constant.at(i);
    if (std::isnan(value)) return kUnknown;
    range = Hull(range, {value, value});
  }
  return range;
}

KnownRange Quotient(const KnownRange& a, const KnownRange& b) {
  if (b.least <= 0 && b.most >= 0) return kUnknown;
  return Product(a, {1 / b.most, 1 / b.least});
}

// The range of an operator's result from that of its only operand.
KnownRange RangeOfUnary(Op op, const KnownRange& x) {
  switch (op) {
    case Op::kSigmoid:
    case Op::kSoftmax:
      return {0, 1};
    case Op::kTanh:
      return {-1, 1};
    case Op::kRelu:
      return Meet(x, 0, kInfinity);
    case Op::kRelu6:
      return Meet(x, 0, 6);
    case Op::kNeg:
      return {-x.most, -x.least};
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
      return x;
    default:
      return kUnknown;
  }
}

KnownRange RangeOfBinary(Op op, const KnownRange& a, const KnownRange& b) {
  switch (op) {
    case Op::kMaximum:
      return {std::max(a.least, b.least), std::max(a.most, b.most)};
    case Op::kMinimum:
      return {std::min(a.least, b.least), std::min(a.most, b.most)};
    case Op::kAdd:
      return {a.least + b.least, a.most + b.most};
    case Op::kSub:
      return {a.least - b.most, a.most - b.least};
    case Op::kMul:
      return Product(a, b);
    case Op::kDiv:
      return Quotient(a, b);
    default:
      return kUnknown;
  }
}

class Finder {
 public:
  explicit Finder(const Graph& graph) : graph_(graph) {}

  KnownRange RangeAt(ValueId value, int depth) {
    const Tensor* const constant = graph_.ConstantOf(value);
    looks_ += constant == nullptr ? 1 : constant->element_count();
    if (looks_ > kMaxLooks) return kUnknown;
    if (constant != nullptr) return RangeOfConstant(*constant);
    const Node& node = graph_.def(value);
    if (node.attrs.contains(kLeastFact) && node.attrs.contains(kMostFact)) {
      return {static_cast<double>(IntAttrOr(node, kLeastFact, 0)),
              static_cast<double>(IntAttrOr(node, kMostFact, 0))};
    }
    if (depth == kMaxDepth || node.inputs.empty()) return kUnknown;
    const auto of = [&](size_t operand) { return RangeAt(node.inputs[operand], depth + 1); };
    if (node.op == Op::kConcat) {
      KnownRange range = of(0);
      for (size_t i = 1; i < node.inputs.size() && looks_ <= kMaxLooks; ++i) {
        range = Hull(range, of(i));
      }
      return looks_ <= kMaxLooks ? range : kUnknown;
    }
    if (node.inputs.size() == 2) return RangeOfBinary(node.op, of(0), of(1));
    return node.inputs.size() == 1 ? RangeOfUnary(node.op, of(0)) : kUnknown;
  }

 private:
  const Graph& graph_;
  int64_t looks_ = 0;
};

}  // namespace

KnownRange RangeOf(const Graph& graph, ValueId value) { return Finder(graph).RangeAt(value, 0); }

}  // namespace npuc
