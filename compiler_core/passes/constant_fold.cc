#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "compiler_core/passes/apply.h"
#include "compiler_core/passes/rewriter.h"

namespace npuc {

namespace {

bool HasConstantOperands(const Graph& graph, const Node& node) {
  return !node.inputs.empty() &&
         std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId input) { return graph.ConstantOf(input) != nullptr; });
}

// The values of a node whose operands are all constants, within the budget.
std::optional<std::vector<Tensor>> Fold(const Rewriter& rewriter, const Graph& graph,
                                        const Node& node, FoldBudget& budget) {
  if (!HasConstantOperands(graph, node)) return std::nullopt;
  // The node's outputs are values of the old graph; the folder looks at the new one.
  const Node bare{node.op, node.inputs, {}, node.attrs, node.source};
  std::vector<TensorType> types;
  for (const ValueId output : node.outputs) types.push_back(rewriter.type(output));
  return FoldNode(graph, bare, types, budget);
}

}  // namespace

Graph ApplyConstantFold(Graph graph, FoldBudget& budget) {
  const bool has_any =
      std::any_of(graph.nodes().begin(), graph.nodes().end(),
                  [&](const Node& node) { return HasConstantOperands(graph, node); });
  if (!has_any) return graph;
  Rewriter rewriter(std::move(graph));
  for (int i = 0; i < rewriter.old().node_count(); ++i) {
    Node node = rewriter.Take(i);
    std::optional<std::vector<Tensor>> folded = Fold(rewriter, rewriter.graph(), node, budget);
    if (!folded.has_value()) {
      rewriter.Append(std::move(node));
      continue;
    }
    const NodeSource source = FoldedSource(rewriter.graph(), node);
    for (size_t k = 0; k < folded->size(); ++k) {
      rewriter.Set(node.outputs[k], rewriter.graph().AddConst(std::move((*folded)[k]), source));
    }
  }
  return rewriter.Finish();
}

}  // namespace npuc
