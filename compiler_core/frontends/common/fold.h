#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_FOLD_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_FOLD_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc {

// What may still be spent on computing constants.
struct FoldLimits {
  int64_t bytes = 0;
  int64_t work_each = 0;  // multiply-adds or moves of one operator
  int64_t work = 0;       // of all together; FoldOperator takes from it
};

// Computes an operator on constants by its reference function.
// RESOURCE_EXHAUSTED says what it would take; other errors are the operator's own.
absl::StatusOr<std::vector<Tensor>> FoldOperator(Op op, absl::Span<const Tensor> operands,
                                                 AttrMap attrs, const NodeSource& source,
                                                 FoldLimits& limits);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_FOLD_H_
