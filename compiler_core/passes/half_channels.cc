// HalfChannelFacts of dead_channels.h: the channels that always are one number in fp16.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "compiler_core/base/fp16.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/passes/dead_channels.h"

namespace npuc {
namespace {

using Numbers = std::vector<std::optional<double>>;

constexpr double kLargestLost = 0x1p-25;  // fp16 rounds it, and what is smaller, to 0

// A number as fp16 has it; nullopt for what would not be finite, and for what is so small that it
// depends on how often it was rounded whether it is 0.
std::optional<double> Rounded(double value) {
  const double half = RoundToHalf(static_cast<float>(value));
  if (!std::isfinite(half) || (half == 0) != (value == 0)) return std::nullopt;
  return half;
}

class HalfFacts {
 public:
  explicit HalfFacts(const Graph& graph) : graph_(graph) {
    facts_.constants.resize(static_cast<size_t>(graph.value_count()));
    facts_.largest_zero = kLargestLost;
  }

  ChannelFacts Run() {
    if (HasTooManyChannels(graph_)) return std::move(facts_);
    for (int i = 0; i < graph_.node_count(); ++i) {
      const Node& node = graph_.node(NodeId(i));
      if (node.op == Op::kConst || node.inputs.empty()) continue;
      const std::optional<ChannelProduct> product = ChannelProductOf(graph_, node);
      if (product.has_value()) {
        TakeProduct(node, *product);
      } else if (node.op == Op::kDepthwiseConv2D) {
        TakeDepthwise(node);
      } else {
        TakeLinked(node);
      }
    }
    return std::move(facts_);
  }

 private:
  const Numbers& Known(ValueId value) const {
    return facts_.constants[static_cast<size_t>(value.value())];
  }

  void Set(ValueId value, Numbers numbers) {
    const bool any = std::any_of(numbers.begin(), numbers.end(),
                                 [](const auto& number) { return number.has_value(); });
    if (any) facts_.constants[static_cast<size_t>(value.value())] = std::move(numbers);
  }

  bool IsZero(ValueId value, int64_t channel) const {
    const Numbers& known = Known(value);
    return !known.empty() && known[static_cast<size_t>(channel)] == 0.0;
  }

  bool IsLost(const Tensor& weight, int64_t index) const {
    return std::fabs(weight.at(index)) <= facts_.largest_zero;
  }

  std::optional<double> BiasOf(const Node& node, int64_t o) const {
    return node.inputs.size() > 2 ? Rounded(graph_.ConstantOf(node.inputs[2])->at(o)) : 0.0;
  }

  void TakeProduct(const Node& node, const ChannelProduct& product) {
    const Tensor& weight = *graph_.ConstantOf(node.inputs[1]);
    Numbers numbers(static_cast<size_t>(product.out));
    for (int64_t o = 0; o < product.out; ++o) {
      bool varies = false;
      for (int64_t i = 0; i < product.in && !varies; ++i) {
        if (IsZero(node.inputs[0], i)) continue;
        for (int64_t tap = 0; tap < product.taps && !varies; ++tap) {
          varies = !IsLost(weight, product.Index(tap, i, o));
        }
      }
      if (!varies) numbers[static_cast<size_t>(o)] = BiasOf(node, o);
    }
    Set(node.outputs[0], std::move(numbers));
  }

  void TakeDepthwise(const Node& node) {
    const auto links = ChannelLinksOf(graph_, node);
    if (!links.has_value()) return;
    const Tensor& weight = *graph_.ConstantOf(node.inputs[1]);
    const int64_t taps = weight.shape()[0] * weight.shape()[1];
    Numbers numbers(links->size());
    for (const ChannelLink& link : *links) {
      bool varies = false;
      for (int64_t tap = 0; tap < taps && !varies; ++tap) {
        varies = !IsLost(weight, tap * static_cast<int64_t>(links->size()) + link.to) &&
                 !IsZero(node.inputs[0], link.from);
      }
      if (!varies) numbers[static_cast<size_t>(link.to)] = BiasOf(node, link.to);
    }
    Set(node.outputs[0], std::move(numbers));
  }

  // The number of an operand's channel: of a constant that has one for each channel, or one alone.
  std::optional<double> NumberOf(const Node& node, size_t operand, int64_t channel) const {
    const ValueId value = node.inputs[operand];
    const Tensor* constant = graph_.ConstantOf(value);
    if (constant == nullptr) {
      const Numbers& known = Known(value);
      return known.empty() ? std::nullopt : known[static_cast<size_t>(channel)];
    }
    const int64_t last = constant->shape().empty() ? 1 : constant->shape().back();
    if (constant->element_count() != last) return std::nullopt;
    return Rounded(constant->at(last == 1 ? 0 : channel));
  }

  static std::optional<double> Binary(Op op, double a, double b) {
    switch (op) {
      case Op::kAdd:
        return Rounded(a + b);
      case Op::kSub:
        return Rounded(a - b);
      case Op::kMul:
        return Rounded(a * b);
      case Op::kMaximum:
        return std::max(a, b);
      case Op::kMinimum:
        return std::min(a, b);
      default:
        return std::nullopt;
    }
  }

  // The result of an operator with one activation, or with two that are both known.
  std::optional<double> Result(const Node& node, int64_t from, int64_t to) const {
    if (TraitsOf(node.op).layout == LayoutRule::kBroadcast && node.inputs.size() == 2) {
      const std::optional<double> a = NumberOf(node, 0, to);
      const std::optional<double> b = NumberOf(node, 1, to);
      return a.has_value() && b.has_value() ? Binary(node.op, *a, *b) : std::nullopt;
    }
    const std::optional<double> x = NumberOf(node, 0, from);
    if (!x.has_value()) return std::nullopt;
    switch (node.op) {
      case Op::kRelu:
        return std::max(*x, 0.0);
      case Op::kRelu6:
        return std::clamp(*x, 0.0, 6.0);
      case Op::kIdentity:
      case Op::kReshape:
      case Op::kSlice:
      case Op::kMaxPool:
      case Op::kReduceMax:
        return x;
      case Op::kPad:
        return *x == FloatAttrOr(node, "value", 0.0) ? x : std::nullopt;
      case Op::kAvgPool:
      case Op::kReduceMean:
      case Op::kReduceSum:
        return *x == 0 ? x : std::nullopt;
      default:
        return std::nullopt;
    }
  }

  // True where nothing is known of an activation, and so of a result that needs all operands.
  bool HasUnknownOperand(const Node& node) const {
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
      return graph_.ConstantOf(input) == nullptr && Known(input).empty();
    });
  }

  void TakeLinked(const Node& node) {
    if (node.op == Op::kConcat || node.outputs.size() != 1) return TakeMoved(node);
    if (HasUnknownOperand(node)) return;
    const auto links = ChannelLinksOf(graph_, node);
    if (!links.has_value()) return;
    Numbers numbers(static_cast<size_t>(graph_.type(node.outputs[0]).shape.back()));
    for (const ChannelLink& link : *links) {
      numbers[static_cast<size_t>(link.to)] = Result(node, link.from, link.to);
    }
    Set(node.outputs[0], std::move(numbers));
  }

  // Concat and Split: a channel of the result has one number where all that it comes from has.
  void TakeMoved(const Node& node) {
    const auto links = ChannelLinksOf(graph_, node);
    if (!links.has_value()) return;
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const size_t count = static_cast<size_t>(graph_.type(node.outputs[k]).shape.back());
      Numbers numbers(count);
      std::vector<bool> varies(count, false);
      for (const ChannelLink& link : *links) {
        if (link.output != k) continue;
        const size_t to = static_cast<size_t>(link.to);
        const std::optional<double> number = NumberOf(node, link.operand, link.from);
        varies[to] = varies[to] || !number.has_value() ||
                     (numbers[to].has_value() && *numbers[to] != *number);
        numbers[to] = number;
      }
      for (size_t c = 0; c < count; ++c) {
        if (varies[c]) numbers[c] = std::nullopt;
      }
      Set(node.outputs[k], std::move(numbers));
    }
  }

  const Graph& graph_;
  ChannelFacts facts_;
};

}  // namespace

ChannelFacts HalfChannelFacts(const Graph& graph) { return HalfFacts(graph).Run(); }

}  // namespace npuc
