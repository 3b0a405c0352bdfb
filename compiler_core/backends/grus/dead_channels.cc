#include "compiler_core/backends/grus/dead_channels.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "compiler_core/passes/dead_channels.h"

namespace npuc {
namespace {

using Range = std::pair<double, double>;

// The least and the greatest value of a convolution's or product's constants, and 0.
Range RangeOf(const Graph& graph, const Node& node) {
  Range range{0, 0};
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    const Tensor* constant = graph.ConstantOf(node.inputs[i]);
    if (constant == nullptr) continue;
    for (const float value : constant->ToFloats()) {
      range.first = std::min<double>(range.first, value);
      range.second = std::max<double>(range.second, value);
    }
  }
  return range;
}

}  // namespace

LiveGraph DropDeadChannels(Graph graph) {
  LiveGraph live;
  live.kept = FindDeadChannels(graph, HalfChannelFacts(graph));
  if (live.kept.removed == 0) {
    live.graph = std::move(graph);
    return live;
  }
  live.graph = KeepChannels(graph, live.kept);
  for (int i = 0; i < graph.node_count(); ++i) {
    const Node& node = graph.node(NodeId(i));
    if (!ChannelProductOf(graph, node).has_value()) continue;
    const Range before = RangeOf(graph, node);
    if (before == RangeOf(live.graph, live.graph.node(NodeId(i)))) continue;
    live.ranges.emplace(graph.def(node.inputs[1]).source.name, before);
  }
  return live;
}

void KeepRanges(const LiveGraph& live, LowerOptions& options) {
  for (const WeightName& weight : WeightNames(live.graph)) {
    const auto range = live.ranges.find(weight.name);
    if (range == live.ranges.end()) continue;
    const WeightChoice& fallback =
        weight.is_convolution ? options.conv_choice : options.default_choice;
    WeightChoice& choice = options.weight_choices.try_emplace(weight.name, fallback).first->second;
    if (!choice.compress) continue;
    if (!choice.min.has_value()) choice.min = range->second.first;
    if (!choice.max.has_value()) choice.max = range->second.second;
  }
}

}  // namespace npuc
