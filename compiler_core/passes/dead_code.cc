#include <vector>

#include "compiler_core/passes/apply.h"
#include "compiler_core/passes/rewriter.h"

namespace npuc {

Graph ApplyDeadCode(const Graph& graph) {
  std::vector<bool> live(graph.node_count(), false);
  for (const GraphOutput& output : graph.outputs()) {
    live[graph.value(output.value).def.value()] = true;
  }
  // Users come after what they use, so one walk from the end reaches everything.
  for (int i = graph.node_count() - 1; i >= 0; --i) {
    if (!live[i]) continue;
    for (const ValueId input : graph.nodes()[i].inputs) {
      live[graph.value(input).def.value()] = true;
    }
  }
  Rewriter rewriter(graph);
  for (int i = 0; i < graph.node_count(); ++i) {
    const Node& node = graph.nodes()[i];
    if (live[i] || node.op == "Placeholder") rewriter.Copy(node);
  }
  return rewriter.Finish();
}

}  // namespace npuc
