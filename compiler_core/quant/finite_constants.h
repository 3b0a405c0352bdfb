#ifndef NPUC_COMPILER_CORE_QUANT_FINITE_CONSTANTS_H_
#define NPUC_COMPILER_CORE_QUANT_FINITE_CONSTANTS_H_

#include "compiler_core/ir/graph/graph.h"

namespace npuc {

// The graph with finite numbers, -65504 and 65504, in place of the infinite ones of constants that
// sums, differences, maxima and minima alone read, as the masks before a Softmax. Integers have no
// infinity, and a mask works by being far below everything else.
Graph WithFiniteConstants(Graph graph);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_FINITE_CONSTANTS_H_
