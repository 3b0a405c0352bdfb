#ifndef NPUC_COMPILER_CORE_QUANT_FINITE_CONSTANTS_H_
#define NPUC_COMPILER_CORE_QUANT_FINITE_CONSTANTS_H_

#include "compiler_core/ir/graph/graph.h"

namespace npuc {

// The graph with finite numbers, -65504 and 65504, in place of the infinite ones of constants that
// end, through sums, differences, maxima, minima and moves, in operands of Softmax alone: masks.
// Integers have no infinity, and a mask works by being far below everything else. What reads other
// such constants sees them as they are.
Graph WithFiniteConstants(Graph graph);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_FINITE_CONSTANTS_H_
