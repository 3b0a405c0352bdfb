#ifndef NPUC_COMPILER_CORE_PASSES_VALUE_RANGE_H_
#define NPUC_COMPILER_CORE_PASSES_VALUE_RANGE_H_

#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/ops/interval.h"

namespace npuc {

// The range that follows from the operators that compute a value, whatever the inputs are. Looks at
// a bounded number of operators in front of it. Thread-safe.
Interval RangeOf(const Graph& graph, ValueId value);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PASSES_VALUE_RANGE_H_
