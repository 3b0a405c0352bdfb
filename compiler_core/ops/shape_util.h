#ifndef NPUC_COMPILER_CORE_OPS_SHAPE_UTIL_H_
#define NPUC_COMPILER_CORE_OPS_SHAPE_UTIL_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/ops/op.h"

namespace npuc {

// Pure functions on shapes and attributes that operators share. Errors are INVALID_ARGUMENT.

using Types = std::vector<TensorType>;

// Steps, in elements, of a row-major tensor. The shape has passed CheckShape.
Shape RowMajorStrides(absl::Span<const int64_t> shape);
// The steps of `shape` while walking `out`, to which it broadcasts: 0 along stretched dimensions.
Shape BroadcastStrides(absl::Span<const int64_t> shape, absl::Span<const int64_t> out);
// numpy's rule: aligned at the right; equal, or one of them 1.
absl::StatusOr<Shape> BroadcastShapes(absl::Span<const int64_t> a, absl::Span<const int64_t> b);

// The attribute `name` in [-rank, rank), made non-negative; `fallback` where it is absent.
absl::StatusOr<int64_t> AxisAttr(const Node& node, absl::string_view name, int64_t rank,
                                 int64_t fallback);
// The element type that the attribute `name` says, or `fallback` where it is absent.
absl::StatusOr<DType> DTypeAttr(const Node& node, absl::string_view name, DType fallback);
// An int-list attribute of `count` items, each in lo..hi.
absl::StatusOr<std::vector<int64_t>> BoundedIntsAttr(const Node& node, absl::string_view name,
                                                     size_t count, int64_t lo, int64_t hi);

absl::Status CheckRank(const OpView& view, int operand, int rank);
absl::Status CheckSameDType(const OpView& view);  // of all operands
absl::Status CheckFloat(const OpView& view);      // operand 0
absl::Status CheckNumeric(const OpView& view);    // operand 0 is float or integer

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_OPS_SHAPE_UTIL_H_
