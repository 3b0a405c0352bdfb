#ifndef NPUC_COMPILER_CORE_QUANT_KEPT_COARSE_STEPS_H_
#define NPUC_COMPILER_CORE_QUANT_KEPT_COARSE_STEPS_H_

#include <set>

#include "compiler_core/ir/graph/graph.h"

namespace npuc {

// The results of the Quantize nodes of a graph in QDQ form that a float form may not leave out:
// they have few levels, as nets of 4 bits and less, or they stand in front of a function that goes
// through much of its range within one step of its operand, as the reciprocal root of a quantized
// variance does, or between that and the results of weighted operators. The model was judged with
// these few steps, and without them it computes another function. Linear in nodes.
std::set<ValueId> CoarseSteps(const Graph& graph);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_KEPT_COARSE_STEPS_H_
