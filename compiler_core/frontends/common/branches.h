#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_BRANCHES_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_BRANCHES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler_core/frontends/common/emitter.h"

namespace npuc::frontend {

// The results of a branch whose condition, one boolean, is computed at run time. Both of its graphs
// have run: a node chooses from each pair of their results, which must be of one type.
absl::StatusOr<std::vector<ValueRef>> ChosenResults(Emitter& node, const ValueRef& condition,
                                                    absl::Span<const ValueRef> if_true,
                                                    absl::Span<const ValueRef> if_false);

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_BRANCHES_H_
