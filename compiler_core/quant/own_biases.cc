#include "compiler_core/quant/own_biases.h"

#include <utility>

#include "compiler_core/ops/layers.h"

namespace npuc {
namespace {

// By node: the bias that its layer shares, or invalid.
std::vector<ValueId> SharedBiases(const Graph& graph) {
  const std::vector<int> uses = graph.UseCounts();
  std::vector<ValueId> shared(static_cast<size_t>(graph.node_count()));
  for (const Layer& layer : GroupLayers(graph)) {
    if (!layer.bias.valid() || uses[static_cast<size_t>(layer.bias.value())] == 1) continue;
    for (const NodeId id : layer.nodes) shared[static_cast<size_t>(id.value())] = layer.bias;
  }
  return shared;
}

}  // namespace

OwnBiases GiveOwnBiases(const Graph& graph) {
  const std::vector<ValueId> shared = SharedBiases(graph);
  OwnBiases own;
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
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) {
      const bool is_shared = input == shared[static_cast<size_t>(i)];
      inputs.push_back(is_shared
                           ? own.graph.AddConst(*graph.ConstantOf(input), graph.def(input).source)
                           : now(input));
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
