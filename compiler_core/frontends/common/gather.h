#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_GATHER_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_GATHER_H_

#include <vector>

#include "compiler_core/frontends/common/emitter.h"

namespace npuc::frontend {

// Slices that one gathering of run-time values may take; neighbours need one.
inline constexpr size_t kMaxRuns = size_t{1} << 12;

// The elements of a vector at known positions (in range, CHECKed), under a shape of as many
// elements.
absl::StatusOr<ValueRef> GatherFlat(Emitter& node, const ValueRef& flat,
                                    const std::vector<int64_t>& positions, Shape shape);
// The slices of one axis at known indices (in range, CHECKed).
absl::StatusOr<ValueRef> GatherAxis(Emitter& node, const ValueRef& value, int64_t axis,
                                    const std::vector<int64_t>& indices);
// The value repeated along dimensions of 1, and along new leading ones.
absl::StatusOr<ValueRef> BroadcastTo(Emitter& node, const ValueRef& value, const Shape& shape);

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_GATHER_H_
