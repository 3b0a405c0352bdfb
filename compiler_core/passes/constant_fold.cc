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

bool IsEmpty(const TensorType& type) { return type.element_count() == 0; }

// True where the node has a result without elements that is not a constant, or joins one to others.
bool HasEmpty(const Graph& graph, const Node& node) {
  const auto is_empty = [&](ValueId value) { return IsEmpty(graph.type(value)); };
  return (node.op != Op::kConst &&
          std::any_of(node.outputs.begin(), node.outputs.end(), is_empty)) ||
         (node.op == Op::kConcat && std::any_of(node.inputs.begin(), node.inputs.end(), is_empty));
}

void DropEmptyOperands(const Graph& graph, Node& concat) {
  std::erase_if(concat.inputs, [&](ValueId value) { return IsEmpty(graph.type(value)); });
}

// Appends a node that does not fold. Its results without elements are constants from here on, so
// that no other pass and no core meets them as computed values.
void AppendWithoutEmpty(Rewriter& rewriter, Node node) {
  std::vector<TensorType> types;
  for (const ValueId output : node.outputs) types.push_back(rewriter.type(output));
  const std::vector<ValueId> outputs = node.outputs;
  const bool is_const = node.op == Op::kConst;
  const bool stays =
      is_const || node.op == Op::kPlaceholder || !std::all_of(types.begin(), types.end(), IsEmpty);
  const NodeSource source = stays ? NodeSource{} : node.source;
  if (stays) rewriter.Append(std::move(node));
  for (size_t k = 0; k < outputs.size() && !is_const; ++k) {
    if (!IsEmpty(types[k])) continue;
    rewriter.Set(outputs[k], rewriter.graph().AddConst(Tensor::Zeros(types[k]), source));
  }
}

// The values of a node whose operands are all constants, within the budget.
std::optional<std::vector<Tensor>> Fold(const Rewriter& rewriter, const Graph& graph,
                                        const Node& node, FoldBudget& budget) {
  const bool gives_some =
      std::any_of(node.outputs.begin(), node.outputs.end(),
                  [&](ValueId output) { return !IsEmpty(rewriter.type(output)); });
  if (!gives_some || !HasConstantOperands(graph, node)) return std::nullopt;
  // The node's outputs are values of the old graph; the folder looks at the new one.
  const Node bare{node.op, node.inputs, {}, node.attrs, node.source};
  std::vector<TensorType> types;
  for (const ValueId output : node.outputs) types.push_back(rewriter.type(output));
  return FoldNode(graph, bare, types, budget);
}

}  // namespace

Graph ApplyConstantFold(Graph graph, FoldBudget& budget) {
  const bool has_any = std::any_of(
      graph.nodes().begin(), graph.nodes().end(),
      [&](const Node& node) { return HasConstantOperands(graph, node) || HasEmpty(graph, node); });
  if (!has_any) return graph;
  Rewriter rewriter(std::move(graph));
  for (int i = 0; i < rewriter.old().node_count(); ++i) {
    Node node = rewriter.Take(i);
    if (node.op == Op::kConcat && !IsEmpty(rewriter.type(node.outputs[0]))) {
      DropEmptyOperands(rewriter.graph(), node);
    }
    std::optional<std::vector<Tensor>> folded = Fold(rewriter, rewriter.graph(), node, budget);
    if (!folded.has_value()) {
      AppendWithoutEmpty(rewriter, std::move(node));
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
