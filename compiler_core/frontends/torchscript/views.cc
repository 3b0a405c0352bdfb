#include "compiler_core/frontends/torchscript/views.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"

namespace npuc::pt {
namespace {

constexpr int kMaxViewDepth = 32;

// The base with elements begin, begin + step ... of the axis replaced by those of `part`.
absl::StatusOr<ValueRef> WithSlice(OpCall& call, const ValueRef& base, const ValueRef& part,
                                   int64_t axis, int64_t begin, int64_t step) {
  const int64_t size = part->type.shape[axis];
  const int64_t whole = base->type.shape[axis];
  if (size == 0) return base;
  std::vector<ValueRef> parts;
  const auto add = [&](const ValueRef& from, int64_t first, int64_t count) -> absl::Status {
    if (count <= 0) return absl::OkStatus();
    ASSIGN_OR_RETURN(parts.emplace_back(), call.Sliced(from, axis, first, count));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(add(base, 0, begin));
  if (step == 1) {
    parts.push_back(part);
    RETURN_IF_ERROR(add(base, begin + size, whole - begin - size));
    return call.Joined(parts, axis);
  }
  for (int64_t i = 0; i < size; ++i) {
    RETURN_IF_ERROR(add(part, i, 1));
    const int64_t next = i + 1 < size ? begin + (i + 1) * step : whole;
    RETURN_IF_ERROR(add(base, begin + i * step + 1, next - begin - i * step - 1));
  }
  return call.Joined(parts, axis);
}

}  // namespace

absl::StatusOr<ScriptValue> MakeView(OpCall& call, ViewFunction view, WriteFunction write,
                                     bool is_contiguous) {
  ASSIGN_OR_RETURN(const ValueRef base, call.TensorArg(0));
  TensorCell* cell = call.arg(0).tensor;
  ASSIGN_OR_RETURN(ValueRef value, view(call, base));
  ScriptValue result = call.Result(std::move(value));
  TensorCell& made = *result.tensor;
  made.is_contiguous = is_contiguous && cell->is_contiguous;
  made.may_share = cell->may_share;
  if (cell->depth >= kMaxViewDepth) {
    made.may_share = true;  // and is not brought up to date: so the base must not change, either
    cell->may_share = true;
    return result;
  }
  made.depth = cell->depth + 1;
  made.base = cell;
  made.base_version = cell->version;
  made.view = std::move(view);
  made.write = std::move(write);
  return result;
}

absl::StatusOr<ScriptValue> MakeReshape(OpCall& call, Shape shape, absl::string_view row,
                                        bool is_view, AttrMap facts) {
  ASSIGN_OR_RETURN(const ValueRef base, call.TensorArg(0));
  AttrMap attrs = std::move(facts);
  attrs["shape"] = shape;
  const std::string row_name(row);
  const auto view = [attrs, shape, row_name](OpCall& c,
                                             const ValueRef& from) -> absl::StatusOr<ValueRef> {
    if (from->type.shape == shape) return from;
    return c.EmitUnder(row_name, "Reshape", {from}, attrs);
  };
  const Shape before = base->type.shape;
  const auto write = [before](OpCall& c, const ValueRef&, const ValueRef& updated) {
    return c.Reshaped(updated, before);
  };
  const TensorCell* const cell = call.arg(0).tensor;
  if (is_view || cell->is_contiguous) return MakeView(call, view, write, true);
  const auto first_view = [view, base](OpCall& c,
                                       const ValueRef& from) -> absl::StatusOr<ValueRef> {
    if (from == base) return view(c, from);
    return c.FailMode(
        "it reads a tensor that may or may not share its memory with another, which has changed",
        "write x = x.clone() before the change, or use the form that is not in place");
  };
  ASSIGN_OR_RETURN(ScriptValue result, MakeView(call, first_view, nullptr, true));
  result.tensor->is_contiguous = true;
  result.tensor->may_share = true;
  return result;
}

absl::StatusOr<ScriptValue> MakePermute(OpCall& call, std::vector<int64_t> perm) {
  std::vector<int64_t> back(perm.size());
  bool is_identity = true;
  for (size_t i = 0; i < perm.size(); ++i) {
    back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
    is_identity &= perm[i] == static_cast<int64_t>(i);
  }
  return MakeView(
      call,
      [perm](OpCall& c, const ValueRef& base) { return c.TransposedUnder("Permute", base, perm); },
      [back](OpCall& c, const ValueRef&, const ValueRef& updated) {
        return c.TransposedUnder("Permute", updated, back);
      },
      is_identity);
}

absl::StatusOr<ScriptValue> MakeSlice(OpCall& call, int64_t axis, int64_t begin, int64_t size,
                                      int64_t step, bool drop) {
  ASSIGN_OR_RETURN(const ValueRef base, call.TensorArg(0));
  Shape kept = base->type.shape;
  kept[axis] = size;
  Shape shape = kept;
  if (drop) shape.erase(shape.begin() + axis);
  // Contiguous where everything in front of the axis is one.
  bool is_contiguous = step == 1;
  for (int64_t i = 0; i < axis; ++i) is_contiguous &= kept[i] == 1;
  is_contiguous |= size == base->type.shape[axis] && step == 1;
  return MakeView(
      call,
      [=](OpCall& c, const ValueRef& from) -> absl::StatusOr<ValueRef> {
        ASSIGN_OR_RETURN(const ValueRef part,
                         c.SlicedUnder("Slice", from, axis, begin, size, step));
        return c.Reshaped(part, shape);
      },
      [=](OpCall& c, const ValueRef& from, const ValueRef& updated) -> absl::StatusOr<ValueRef> {
        ASSIGN_OR_RETURN(const ValueRef part, c.Reshaped(updated, kept));
        return WithSlice(c, from, part, axis, begin, step);
      },
      is_contiguous);
}

absl::StatusOr<ScriptValue> MakeSliceOf(OpCall& call, int64_t axis, int64_t begin, int64_t size,
                                        bool drop, const ValueRef& part) {
  ASSIGN_OR_RETURN(const ValueRef base, call.TensorArg(0));
  Shape kept = base->type.shape;
  kept[axis] = size;
  Shape shape = kept;
  if (drop) shape.erase(shape.begin() + axis);
  bool is_contiguous = true;
  for (int64_t i = 0; i < axis; ++i) is_contiguous &= kept[i] == 1;
  ValueRef first = part;  // what Split gave; of use while the base is what it was
  return MakeView(
      call,
      [=](OpCall& c, const ValueRef& from) -> absl::StatusOr<ValueRef> {
        if (from == base) return c.Reshaped(first, shape);
        ASSIGN_OR_RETURN(const ValueRef again, c.SlicedUnder("Slice", from, axis, begin, size, 1));
        return c.Reshaped(again, shape);
      },
      [=](OpCall& c, const ValueRef& from, const ValueRef& updated) -> absl::StatusOr<ValueRef> {
        ASSIGN_OR_RETURN(const ValueRef back, c.Reshaped(updated, kept));
        return WithSlice(c, from, back, axis, begin, 1);
      },
      is_contiguous);
}

}  // namespace npuc::pt
