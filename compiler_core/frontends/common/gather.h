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
// The index of an element of a dimension, counted from the front; negative ones count from the end
// where they may be. INVALID_ARGUMENT: it is outside of the dimension.
absl::StatusOr<int64_t> IndexFromFront(int64_t index, int64_t dim, bool may_be_negative);
// The flat positions in a value of `shape` at which the slices begin that tuples of indices name.
// The last dimension of `indices` is a tuple, over the dimensions behind the first batch_dims,
// which both share; it has an element at least and no more than those. Negative indices count from
// the end where they may be. INVALID_ARGUMENT: an index is outside of its dimension.
absl::StatusOr<std::vector<int64_t>> StartsOfTuples(const Tensor& indices, const Shape& shape,
                                                    int64_t batch_dims, bool may_be_negative);
// The flat positions in a value of `shape` that indices name, each by its place, but along `axis`
// (in range) by its number: they have the rank of the shape and fit it in all other dimensions.
// Negative indices count from the end where they may be. INVALID_ARGUMENT: the indices do not fit,
// are no integers or too many, or one is outside of its dimension.
absl::StatusOr<std::vector<int64_t>> PositionsOfElements(const Tensor& indices, const Shape& shape,
                                                         int64_t axis, bool may_be_negative);
// The value repeated along dimensions of 1, and along new leading ones.
absl::StatusOr<ValueRef> BroadcastTo(Emitter& node, const ValueRef& value, const Shape& shape);

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_GATHER_H_
