#ifndef NPUC_COMPILER_CORE_LOWERING_GRAPH_CUTS_H_
#define NPUC_COMPILER_CORE_LOWERING_GRAPH_CUTS_H_

#include <string>
#include <vector>

#include "compiler_core/base/compile_options.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc {

// On which side of a node a graph has something to compute, and so where a user can cut the model
// around the node. Pure.
class GraphCuts {
 public:
  GraphCuts(const Graph& graph, Framework framework);

  // What to do about a node that cannot be compiled: "end the model before it with OUTPUT_OPS" ...
  std::string FixFor(const Node& node) const;

 private:
  const Framework framework_;
  std::vector<bool> has_work_before_;  // by value: its node or one in front of it computes
  std::vector<bool> has_work_behind_;  // by value: a node behind it computes
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_LOWERING_GRAPH_CUTS_H_
