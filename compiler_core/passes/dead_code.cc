#include <algorithm>
#include <utility>
#include <vector>

#include "compiler_core/passes/apply.h"
#include "compiler_core/passes/rewriter.h"

namespace npuc {

Graph DropUnused(Graph graph, bool keeps_input_quantizers) {
  std::vector<bool> live(graph.node_count(), false);
  for (const GraphOutput& output : graph.outputs()) {
    live[graph.value(output.value).def.value()] = true;
  }
  for (int i = 0; keeps_input_quantizers && i < graph.node_count(); ++i) {
    const Node& node = graph.nodes()[i];
    if (node.op == Op::kQuantize && graph.def(node.inputs[0]).op == Op::kPlaceholder)
      live[i] = true;
  }
  // Users come after what they use, so one walk from the end reaches everything.
  for (int i = graph.node_count() - 1; i >= 0; --i) {
    if (!live[i]) continue;
    for (const ValueId input : graph.nodes()[i].inputs) {
      live[graph.value(input).def.value()] = true;
    }
  }
  for (const ValueId input : graph.inputs()) live[graph.value(input).def.value()] = true;
  if (std::find(live.begin(), live.end(), false) == live.end()) return graph;
  Rewriter rewriter(std::move(graph));
  for (int i = 0; i < rewriter.old().node_count(); ++i) {
    if (live[i]) rewriter.Append(rewriter.Take(i));
  }
  return rewriter.Finish();
}

Graph ApplyDeadCode(Graph graph) { return DropUnused(std::move(graph), true); }

}  // namespace npuc
