#include "compiler_core/passes/dead_channels.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "compiler_core/ops/op.h"

namespace npuc {
namespace {

size_t Index(ValueId id) { return static_cast<size_t>(id.value()); }

int64_t ChannelCount(const Graph& graph, ValueId value) {
  const Shape& shape = graph.type(value).shape;
  return shape.empty() ? 0 : shape.back();
}

// True where a constant operand of an element-wise node has a number for each channel of the
// result.
bool RunsAlongChannels(const Graph& graph, const Node& node, ValueId constant) {
  const int64_t channels = ChannelCount(graph, node.outputs[0]);
  return channels > 1 && ChannelCount(graph, constant) == channels;
}

// Channels that must go together are one class (a forest of links to a representative).
class Classes {
 public:
  explicit Classes(int64_t count) : next_(static_cast<size_t>(count)) {
    std::iota(next_.begin(), next_.end(), 0);
  }
  int32_t Of(int64_t channel) {
    int32_t at = static_cast<int32_t>(channel);
    while (next_[at] != at) at = next_[at] = next_[next_[at]];
    return at;
  }
  // `a` and `b` are representatives; returns that of both.
  int32_t Join(int32_t a, int32_t b) {
    next_[std::max(a, b)] = std::min(a, b);
    return std::min(a, b);
  }

 private:
  std::vector<int32_t> next_;
};

class Finder {
 public:
  Finder(const Graph& graph, const ChannelFacts& facts)
      : graph_(graph), facts_(facts), uses_(graph.UseCounts()), first_(CountChannels(graph)) {}

  KeptChannels Run() {
    KeptChannels kept;
    kept.channels.resize(static_cast<size_t>(graph_.value_count()));
    if (first_.back() > kMaxGraphChannels) return kept;
    kept.total = first_.back();
    stays_.assign(static_cast<size_t>(first_.back()), false);
    in_doubt_ = first_.back();
    for (int i = 0; i < graph_.node_count(); ++i) JoinOrKeep(NodeId(i));
    for (const GraphOutput& output : graph_.outputs()) KeepAll(output.value);
    if (in_doubt_ == 0) return kept;  // as in most nets
    do {
      while (KeepWhatIsRead()) {
      }
    } while (KeepOneOfEach());
    for (int v = 0; v < graph_.value_count(); ++v) ListChannels(ValueId(v), kept);
    if (kept.removed > 0) {
      for (const Node& node : graph_.nodes()) AddCuts(node, kept);
    }
    return kept;
  }

 private:
  // The number of each value's first channel; behind them the number of all. Constants have none.
  static std::vector<int64_t> CountChannels(const Graph& graph) {
    std::vector<int64_t> first = {0};
    for (int v = 0; v < graph.value_count(); ++v) {
      const bool is_constant = graph.ConstantOf(ValueId(v)) != nullptr;
      first.push_back(first.back() + (is_constant ? 0 : ChannelCount(graph, ValueId(v))));
    }
    return first;
  }

  int64_t Channel(ValueId value, int64_t c) const { return first_[Index(value)] + c; }
  bool IsConstant(ValueId value) const { return graph_.ConstantOf(value) != nullptr; }
  bool Stays(ValueId value, int64_t c) {
    return stays_[static_cast<size_t>(classes_.Of(Channel(value, c)))];
  }
  void Keep(ValueId value, int64_t c) {
    const int32_t one = classes_.Of(Channel(value, c));
    if (stays_[one]) return;
    stays_[one] = true;
    --in_doubt_;
  }
  void KeepAll(ValueId value) {
    if (IsConstant(value)) return;
    for (int64_t c = 0; c < ChannelCount(graph_, value); ++c) Keep(value, c);
  }

  // True where a constant of the node that would be cut is some other node's, too.
  bool SharesConstants(const Node& node) const {
    const bool is_elementwise = TraitsOf(node.op).layout == LayoutRule::kBroadcast;
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
      return IsConstant(input) && uses_[Index(input)] > 1 &&
             (!is_elementwise || RunsAlongChannels(graph_, node, input));
    });
  }

  void JoinOrKeep(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.op == Op::kConst) return;
    const bool is_fixed = !facts_.is_fixed.empty() && facts_.is_fixed[id.value()];
    if (!is_fixed && !SharesConstants(node)) {
      if (ChannelProductOf(graph_, node).has_value()) {
        products_.push_back(id);
        return;
      }
      if (const auto links = ChannelLinksOf(graph_, node)) {
        for (const ChannelLink& link : *links) {
          Join(Channel(node.inputs[link.operand], link.from),
               Channel(node.outputs[link.output], link.to));
        }
        return;
      }
    }
    for (const ValueId input : node.inputs) KeepAll(input);
    for (const ValueId output : node.outputs) KeepAll(output);
  }

  void Join(int64_t a, int64_t b) {
    const int32_t x = classes_.Of(a);
    const int32_t y = classes_.Of(b);
    if (x == y) return;
    const bool stays = stays_[x] || stays_[y];
    if (!stays_[x] || !stays_[y]) --in_doubt_;
    stays_[classes_.Join(x, y)] = stays;
  }

  const Tensor& StoredWeight(ValueId value) const {
    const bool has_own =
        !facts_.stored.empty() && facts_.stored[Index(value)].dtype() != DType::kInvalid;
    return has_own ? facts_.stored[Index(value)] : *graph_.ConstantOf(value);
  }

  // True where the product can do without channel i of its operand: its number is known, and adds
  // nothing or moves into the bias.
  bool CanDrop(NodeId id, ValueId operand, int64_t i) const {
    if (facts_.constants.empty() || facts_.constants[Index(operand)].empty()) return false;
    const std::optional<double>& number = facts_.constants[Index(operand)][static_cast<size_t>(i)];
    if (!number.has_value()) return false;
    return *number == 0 || (!facts_.folds.empty() && facts_.folds[id.value()]);
  }

  bool ReadsChannel(const Node& node, const ChannelProduct& product, const Tensor& weight,
                    int64_t i) {
    for (int64_t o = 0; o < product.out; ++o) {
      if (!Stays(node.outputs[0], o)) continue;
      for (int64_t tap = 0; tap < product.taps; ++tap) {
        const double size = std::fabs(weight.at(product.Index(tap, i, o)));
        if (!(size <= facts_.largest_zero)) return true;  // NaN, too
      }
    }
    return false;
  }

  // One round, from the last product to the first; whether a channel more stays.
  bool KeepWhatIsRead() {
    bool changed = false;
    for (auto id = products_.rbegin(); id != products_.rend(); ++id) {
      const Node& node = graph_.node(*id);
      const ChannelProduct product = *ChannelProductOf(graph_, node);
      const Tensor& weight = StoredWeight(node.inputs[1]);
      for (int64_t i = 0; i < product.in; ++i) {
        if (Stays(node.inputs[0], i) || CanDrop(*id, node.inputs[0], i)) continue;
        if (!ReadsChannel(node, product, weight, i)) continue;
        Keep(node.inputs[0], i);
        changed = true;
      }
    }
    return changed;
  }

  // A value has one channel at least.
  bool KeepOneOfEach() {
    bool changed = false;
    for (int v = graph_.value_count() - 1; v >= 0; --v) {
      const ValueId value(v);
      const int64_t count = IsConstant(value) ? 0 : ChannelCount(graph_, value);
      bool any = count == 0;
      for (int64_t c = 0; c < count && !any; ++c) any = Stays(value, c);
      if (any) continue;
      Keep(value, 0);
      changed = true;
    }
    return changed;
  }

  void ListChannels(ValueId value, KeptChannels& kept) {
    const int64_t count = IsConstant(value) ? 0 : ChannelCount(graph_, value);
    std::vector<int64_t> channels;
    channels.reserve(static_cast<size_t>(count));
    for (int64_t c = 0; c < count; ++c) {
      if (Stays(value, c)) channels.push_back(c);
    }
    if (static_cast<int64_t>(channels.size()) == count) return;
    kept.removed += count - static_cast<int64_t>(channels.size());
    kept.channels[Index(value)] = std::move(channels);
  }

  // Lists what remains of the node's constants.
  void AddCuts(const Node& node, KeptChannels& kept) const {
    if (node.op == Op::kConst || node.inputs.empty()) return;
    const std::vector<int64_t>& from = kept.channels[Index(node.inputs[0])];
    const std::vector<int64_t>& to = kept.channels[Index(node.outputs[0])];
    if (from.empty() && to.empty()) return;
    const auto cut_last = [&](ValueId constant) {
      const size_t rank = graph_.type(constant).shape.size();
      if (to.empty() || rank == 0) return;
      ConstantCut cut{constant, std::vector<std::vector<int64_t>>(rank)};
      cut.kept.back() = to;
      kept.cuts.push_back(std::move(cut));
    };
    if (node.op == Op::kConv2D) {
      kept.cuts.push_back({node.inputs[1], {{}, {}, from, to}});
    } else if (node.op == Op::kDepthwiseConv2D) {
      kept.cuts.push_back({node.inputs[1], {{}, {}, from, {}}});
    } else if (node.op == Op::kMatMul) {
      const bool is_turned = BoolAttrOr(node, "transpose_b", false);
      kept.cuts.push_back({node.inputs[1], {is_turned ? to : from, is_turned ? from : to}});
    } else {
      for (const ValueId input : node.inputs) {
        if (IsConstant(input) && RunsAlongChannels(graph_, node, input)) cut_last(input);
      }
      return;
    }
    if (node.inputs.size() > 2) cut_last(node.inputs[2]);
  }

  const Graph& graph_;
  const ChannelFacts& facts_;
  const std::vector<int> uses_;
  const std::vector<int64_t> first_;  // by value id
  Classes classes_{first_.back() > kMaxGraphChannels ? 0 : first_.back()};
  std::vector<bool> stays_;  // by class
  int64_t in_doubt_ = 0;     // classes that do not stay so far
  std::vector<NodeId> products_;
};

// A shape's own numbers in a node's attributes, where the result lost channels.
AttrMap AttrsFor(const Node& node, const Shape& result) {
  AttrMap attrs = node.attrs;
  if (node.op == Op::kReshape) attrs.insert_or_assign("shape", result);
  if (node.op == Op::kSlice) attrs.insert_or_assign("size", result);
  return attrs;
}

}  // namespace

KeptChannels FindDeadChannels(const Graph& graph, const ChannelFacts& facts) {
  return Finder(graph, facts).Run();
}

Graph KeepChannels(const Graph& graph, const KeptChannels& kept,
                   const std::map<ValueId, Tensor>& replaced) {
  std::map<ValueId, Tensor> constants = replaced;
  for (const ConstantCut& cut : kept.cuts) {
    if (!constants.contains(cut.constant)) {
      constants.emplace(cut.constant, CutTensor(*graph.ConstantOf(cut.constant), cut));
    }
  }
  Graph result;
  result.set_name(graph.name());
  result.Reserve(graph.node_count(), graph.value_count());
  for (const Node& node : graph.nodes()) {
    const auto constant = node.op == Op::kConst ? constants.find(node.outputs[0]) : constants.end();
    if (constant != constants.end()) {
      result.AddConst(constant->second, node.source);
      continue;
    }
    std::vector<TensorType> types;
    for (const ValueId output : node.outputs) {
      TensorType type = graph.type(output);
      const std::vector<int64_t>& channels = kept.channels[Index(output)];
      if (!channels.empty()) type.shape.back() = static_cast<int64_t>(channels.size());
      types.push_back(std::move(type));
    }
    const bool is_cut = !kept.channels[Index(node.outputs[0])].empty();
    AttrMap attrs = is_cut ? AttrsFor(node, types[0].shape) : node.attrs;
    result.AddNode(node.op, node.inputs, std::move(attrs), std::move(types), node.source);
  }
  for (const GraphOutput& output : graph.outputs()) result.AddOutput(output);
  return result;
}

}  // namespace npuc
