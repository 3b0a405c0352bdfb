#ifndef NPUC_COMPILER_CORE_PASSES_RANDOM_GRAPHS_TEST_UTIL_H_
#define NPUC_COMPILER_CORE_PASSES_RANDOM_GRAPHS_TEST_UTIL_H_

#include <cstdint>

#include "compiler_core/ir/graph/graph.h"

namespace npuc {

// A random graph of operators with and without rules about layouts, on float values of rank 1 to 5;
// transposes are frequent, and often undo an earlier one. The same for the same seed.
Graph RandomTransposeGraph(uint32_t seed);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PASSES_RANDOM_GRAPHS_TEST_UTIL_H_
