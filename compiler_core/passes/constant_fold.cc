#include <optional>
#include <utility>
#include <vector>

#include "compiler_core/passes/apply.h"
#include "compiler_core/passes/rewriter.h"

namespace npuc {

Graph ApplyConstantFold(const Graph& graph, FoldBudget& budget) {
  Rewriter rewriter(graph);
  for (const Node& old_node : graph.nodes()) {
    if (old_node.inputs.empty()) {
      rewriter.Copy(old_node);
      continue;
    }
    Node node = rewriter.Mapped(old_node);
    std::vector<TensorType> types;
    for (const ValueId output : old_node.outputs) types.push_back(graph.type(output));
    std::optional<std::vector<Tensor>> folded = FoldNode(rewriter.graph(), node, types, budget);
    if (!folded.has_value()) {
      rewriter.Append(old_node, std::move(node));
      continue;
    }
    const NodeSource source = FoldedSource(rewriter.graph(), node);
    for (size_t i = 0; i < folded->size(); ++i) {
      rewriter.Replace(old_node.outputs[i],
                       rewriter.graph().AddConst(std::move((*folded)[i]), source));
    }
  }
  return rewriter.Finish();
}

}  // namespace npuc
