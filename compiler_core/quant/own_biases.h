#ifndef NPUC_COMPILER_CORE_QUANT_OWN_BIASES_H_
#define NPUC_COMPILER_CORE_QUANT_OWN_BIASES_H_

#include <vector>

#include "compiler_core/ir/graph/graph.h"

namespace npuc {

// A graph in which no two layers share a bias, nor anything else reads one: its integers are in
// units of its own layer's scales. The copies share their bytes.
struct OwnBiases {
  Graph graph;
  std::vector<ValueId> value;  // in `graph`, by value id of the graph given
};
OwnBiases GiveOwnBiases(const Graph& graph);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_OWN_BIASES_H_
