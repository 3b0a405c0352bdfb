#ifndef NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_VIEWS_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_VIEWS_H_

#include <functional>

#include "absl/status/statusor.h"
#include "compiler_core/frontends/torchscript/op_call.h"

namespace npuc::pt {

// Results of operators that share memory with argument 0, as torch does it: writes go both ways.

using ViewFunction = std::function<absl::StatusOr<ValueRef>(OpCall&, const ValueRef& base)>;
using WriteFunction =
    std::function<absl::StatusOr<ValueRef>(OpCall&, const ValueRef& base, const ValueRef& updated)>;

// A view of argument 0. `is_contiguous` says whether the view's elements lie in its own order where
// the base's do. A null `write` makes a view that must not be written to.
absl::StatusOr<ScriptValue> MakeView(OpCall& call, ViewFunction view, WriteFunction write,
                                     bool is_contiguous);

// The argument under another shape: a view where torch makes one for certain (`is_view`, or of what
// is contiguous), else a tensor that may share: it must not be written to, nor read once the
// argument has changed.
absl::StatusOr<ScriptValue> MakeReshape(OpCall& call, Shape shape, absl::string_view row,
                                        bool is_view, AttrMap facts = {});
absl::StatusOr<ScriptValue> MakePermute(OpCall& call, std::vector<int64_t> perm);
// Elements begin, begin + step ... of one axis, `size` of them; the axis goes where `drop`.
absl::StatusOr<ScriptValue> MakeSlice(OpCall& call, int64_t axis, int64_t begin, int64_t size,
                                      int64_t step, bool drop);
// The same with step 1 where the part is there already, with its axis.
absl::StatusOr<ScriptValue> MakeSliceOf(OpCall& call, int64_t axis, int64_t begin, int64_t size,
                                        bool drop, const ValueRef& part);

}  // namespace npuc::pt

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_VIEWS_H_
