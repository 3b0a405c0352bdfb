#include "compiler_core/quant/own_constants.h"

#include <map>
#include <utility>

#include "compiler_core/ops/layers.h"

namespace npuc {
namespace {

// The constants of one layer that it cannot share with others; invalid: none.
struct OfLayer {
  ValueId bias;
  ValueId weight;
  int axis = -1;  // of the weight
};

// By node: those of its layer.
std::vector<OfLayer> SharedConstants(const Graph& graph) {
  const std::vector<int> uses = graph.UseCounts();
  std::vector<OfLayer> shared(static_cast<size_t>(graph.node_count()));
  std::map<ValueId, int> axes;  // of weights, for the first layer that reads each
  for (const Layer& layer : GroupLayers(graph)) {
    OfLayer own;
    if (layer.bias.valid() && uses[static_cast<size_t>(layer.bias.value())] > 1) {
      own.bias = layer.bias;
    }
    if (layer.weight.valid()) {
      own.axis = ChannelAxis(graph, layer);
      const bool is_other = axes.emplace(layer.weight, own.axis).first->second != own.axis;
      if (is_other) own.weight = layer.weight;
    }
    for (const NodeId id : layer.nodes) shared[static_cast<size_t>(id.value())] = own;
  }
  return shared;
}

}  // namespace

OwnConstants GiveOwnConstants(const Graph& graph) {
  const std::vector<OfLayer> shared = SharedConstants(graph);
  std::map<std::pair<ValueId, int>, ValueId> weights;  // copies by the weight and its axis
  OwnConstants own;
  own.value.resize(static_cast<size_t>(graph.value_count()));
  const auto now = [&](ValueId old) { return own.value[static_cast<size_t>(old.value())]; };
  own.graph.set_name(graph.name());
  for (int i = 0; i < graph.node_count(); ++i) {
    const Node& node = graph.node(NodeId(i));
    std::vector<TensorType> types;
    for (const ValueId output : node.outputs) types.push_back(graph.type(output));
    if (node.op == Op::kPlaceholder) {
      own.value[static_cast<size_t>(node.outputs[0].value())] =
          own.graph.AddInput(node.source.name, types[0]);
      continue;
    }
    const OfLayer& layer = shared[static_cast<size_t>(i)];
    const auto copy_of = [&](ValueId constant) {
      return own.graph.AddConst(*graph.ConstantOf(constant), graph.def(constant).source);
    };
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) {
      if (input == layer.bias) {
        inputs.push_back(copy_of(input));
      } else if (input == layer.weight) {
        ValueId& copy = weights[{input, layer.axis}];
        if (!copy.valid()) copy = copy_of(input);
        inputs.push_back(copy);
      } else {
        inputs.push_back(now(input));
      }
    }
    const NodeId id =
        own.graph.AddNode(node.op, std::move(inputs), node.attrs, std::move(types), node.source);
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      own.value[static_cast<size_t>(node.outputs[k].value())] = own.graph.node(id).outputs[k];
    }
  }
  for (const GraphOutput& output : graph.outputs()) {
    own.graph.AddOutput({output.name, now(output.value), output.fp16});
  }
  return own;
}

}  // namespace npuc
