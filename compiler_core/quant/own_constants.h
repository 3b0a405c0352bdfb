#ifndef NPUC_COMPILER_CORE_QUANT_OWN_CONSTANTS_H_
#define NPUC_COMPILER_CORE_QUANT_OWN_CONSTANTS_H_

#include <vector>

#include "compiler_core/ir/graph/graph.h"

namespace npuc {

// A graph in which no two layers share a bias, nor anything else reads one: its integers are in
// units of its own layer's scales. Layers share a weight only where its scales run along one
// dimension for all of them (ChannelAxis). The copies share their bytes.
struct OwnConstants {
  Graph graph;
  std::vector<ValueId> value;  // in `graph`, by value id of the graph given
};
OwnConstants GiveOwnConstants(const Graph& graph);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_OWN_CONSTANTS_H_
