#include <algorithm>
#include <utility>
#include <vector>

#include "compiler_core/passes/apply.h"
#include "compiler_core/passes/rewriter.h"

namespace npuc {

Graph ApplyDeadCode(Graph graph) {
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
  for (const ValueId input : graph.inputs()) live[graph.value(input).def.value()] = true;
  if (std::find(live.begin(), live.end(), false) == live.end()) return graph;
  Rewriter rewriter(std::move(graph));
  for (int i = 0; i < rewriter.old().node_count(); ++i) {
    if (live[i]) rewriter.Append(rewriter.Take(i));
  }
  return rewriter.Finish();
}

}  // namespace npuc
