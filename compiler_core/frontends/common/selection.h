#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_SELECTION_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_SELECTION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/frontends/common/emitter.h"

namespace npuc::frontend {

// Comparisons, logic, choices and lookups of values that are computed at run time, as operators of
// the IR. Shapes stay known; back ends say what a core makes of them.

// Operators of the evaluator (evaluator.h) that have a form at run time: comparisons, logic, Floor,
// Ceil, Round, Rint, Sign, Erf, Erfc, FloorDiv of floats. Null where there is none for these
// operands.
absl::StatusOr<ValueRef> ComputedUnary(Emitter& node, absl::string_view op, const ValueRef& x);
absl::StatusOr<ValueRef> ComputedBinary(Emitter& node, absl::string_view op, const ValueRef& a,
                                        const ValueRef& b);

// All or Any of booleans over the axes.
absl::StatusOr<ValueRef> ReducedLogic(Emitter& node, bool all, const ValueRef& x,
                                      std::vector<int64_t> axes, bool keep_dims);

// The value cast to another type, at run time or now.
absl::StatusOr<ValueRef> CastTo(Emitter& node, const ValueRef& x, DType dtype);

// a where the boolean condition holds, else b; the three broadcast.
absl::StatusOr<ValueRef> Selected(Emitter& node, const ValueRef& condition, const ValueRef& a,
                                  const ValueRef& b);

// The least elements over the axes, exactly for integers of each type.
absl::StatusOr<ValueRef> ReducedMin(Emitter& node, const ValueRef& x, std::vector<int64_t> axes,
                                    bool keep_dims);

// Floats with -inf as the lowest finite number, and +inf as the largest one, so that formulas make
// no NaN of infinities. Costs no command: a core, which has no infinities there, takes x.
absl::StatusOr<ValueRef> AboveInfinity(Emitter& node, const ValueRef& x);
absl::StatusOr<ValueRef> WithinInfinity(Emitter& node, const ValueRef& x);

struct ArgOptions {
  int64_t axis = 0;  // in range
  bool keep_dims = false;
  bool is_min = false;
  bool last = false;  // of equal elements
  DType dtype = DType::kInt64;
};
// The index of the largest or least element along an axis.
absl::StatusOr<ValueRef> ArgOf(Emitter& node, const ValueRef& x, const ArgOptions& options);

// The k largest or least elements along an axis (in range), the first of equal ones first (the last
// first where `last` says so), and their indices as i64. Each is found by itself. The indices take
// -inf for the lowest finite number; i64 elements must be within 2^61 of 0.
struct Extrema {
  ValueRef values;
  ValueRef indices;
};
inline constexpr int64_t kMaxExtrema = 16;
absl::StatusOr<Extrema> ExtremaOf(Emitter& node, const ValueRef& x, int64_t axis, int64_t k,
                                  bool is_min, bool last = false);

// The slices of an axis (in range) that integers name which are computed at run time. Where they
// may be negative they count from the end.
absl::StatusOr<ValueRef> LookedUp(Emitter& node, const ValueRef& data, const ValueRef& indices,
                                  int64_t axis, bool may_be_negative);
// The elements, or slices, that tuples along the last dimension of the indices name.
absl::StatusOr<ValueRef> LookedUpByTuples(Emitter& node, const ValueRef& data,
                                          const ValueRef& indices, bool may_be_negative);

// The elements that integers name along an axis (in range), and by their places in the other
// dimensions (PositionsOfElements), known or computed at run time.
absl::StatusOr<ValueRef> ElementsAt(Emitter& node, const ValueRef& data, const ValueRef& indices,
                                    int64_t axis, bool may_be_negative);

// values[1] where an index is the position along a new axis (0..rank), values[0] elsewhere.
absl::StatusOr<ValueRef> OneHotOf(Emitter& node, const ValueRef& indices, int64_t depth,
                                  const ValueRef& off, const ValueRef& on, int64_t axis,
                                  bool may_be_negative);

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_SELECTION_H_
