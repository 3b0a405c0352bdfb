#include <utility>
#include <vector>

#include "compiler_core/passes/apply.h"
#include "compiler_core/passes/rewriter.h"

namespace npuc {
namespace {

// The convolution that an Add of a constant, one number a result channel, follows; nullptr where it
// is none, or has a bias.
const Node* MatchBiasedConvolution(const Graph& graph, const Node& add, const TensorType& type) {
  if (add.op != Op::kAdd || graph.type(add.inputs[0]) != type) return nullptr;
  const Node& product = graph.def(add.inputs[0]);
  if (product.op != Op::kConv2D && product.op != Op::kDepthwiseConv2D) return nullptr;
  const Tensor* bias = graph.ConstantOf(add.inputs[1]);
  const bool fits = product.inputs.size() == 2 && graph.ConstantOf(product.inputs[1]) != nullptr &&
                    bias != nullptr && bias->shape() == Shape{type.shape.back()};
  return fits ? &product : nullptr;
}

}  // namespace

Graph ApplyFuseBias(Graph graph) {
  const std::vector<int> uses = graph.UseCounts();
  Rewriter rewriter(std::move(graph));
  for (int i = 0; i < rewriter.old().node_count(); ++i) {
    // Asked before the node is taken: afterwards its operands are the new graph's.
    const Node& old = rewriter.old().node(NodeId(i));
    const bool used_once = old.op == Op::kAdd && uses[old.inputs[0].value()] == 1;
    Node node = rewriter.Take(i);
    Graph& out = rewriter.graph();
    const Node* product = nullptr;
    if (used_once) {
      const TensorType& type = rewriter.type(node.outputs[0]);
      product = MatchBiasedConvolution(out, node, type);
    }
    if (product == nullptr) {
      rewriter.Append(std::move(node));
      continue;
    }
    Node biased = *product;
    biased.inputs.push_back(node.inputs[1]);
    rewriter.Replace(node, out.AddValue(biased.op, biased.inputs, biased.attrs,
                                        rewriter.type(node.outputs[0]), biased.source));
  }
  return ApplyDeadCode(rewriter.Finish());
}

}  // namespace npuc
