// Logic, positions of elements, and what positions that are computed at run time name.
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/evaluator.h"
#include "compiler_core/frontends/common/gather.h"
#include "compiler_core/frontends/common/selection.h"
#include "compiler_core/frontends/torchscript/op_call.h"
#include "compiler_core/frontends/torchscript/torch_type.h"
#include "compiler_core/frontends/torchscript/truth.h"

namespace npuc::pt {
namespace {

// and, or, xor of what is not 0.
absl::StatusOr<ScriptValue> ImportLogic(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const ValueRef y, call.TensorOrNumber(1, x));
  ASSIGN_OR_RETURN(const ValueRef a, Truth(call, x));
  ASSIGN_OR_RETURN(const ValueRef b, Truth(call, y));
  const bool is_and = absl::StrContains(call.name(), "and");
  const bool is_xor = absl::StrContains(call.name(), "xor");
  const absl::string_view op = is_and ? "LogicalAnd" : is_xor ? "LogicalXor" : "LogicalOr";
  return call.Result(AsFloats(call, frontend::ComputedBinary(call, op, a, b)));
}

// Bitwise operators of other numbers than booleans mean something else.
absl::StatusOr<ScriptValue> ImportBitwise(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const ValueRef y, call.TensorOrNumber(1, x));
  if (!IsTruth(x) || !IsTruth(y)) {
    return call.FailMode(absl::StrCat("torch.", call.name(), " of integers"),
                         "use it on results of comparisons");
  }
  return ImportLogic(call);
}

absl::StatusOr<ScriptValue> ImportNot(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const ValueRef truth, Truth(call, x));
  return call.Result(AsFloats(call, frontend::ComputedUnary(call, "LogicalNot", truth)));
}

// Integers would change their bits.
absl::StatusOr<ScriptValue> ImportBitwiseNot(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  if (IsTruth(x)) return ImportNot(call);
  if (!x->constant.has_value() || IsFloat(x->type.dtype)) {
    return call.FailMode(absl::StrCat("torch.", call.name(), " of integers"),
                         "use it on results of comparisons");
  }
  ASSIGN_OR_RETURN(Tensor bits, EvaluateUnary("BitwiseNot", *x->constant));
  return call.Result(call.MakeConstant(std::move(bits)));
}

absl::StatusOr<ScriptValue> ImportSign(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  return call.Result(frontend::ComputedUnary(call, "Sign", x));
}

// any(x), any(x, dim, keepdim), and all.
absl::StatusOr<ScriptValue> ImportAnyAll(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const std::vector<int64_t> dims, call.IntsOr(1, {}));
  ASSIGN_OR_RETURN(const bool keep, call.BoolOr(2, false));
  ASSIGN_OR_RETURN(const std::vector<int64_t> axes, call.Axes(dims, RankOf(x)));
  ASSIGN_OR_RETURN(const ValueRef truth, Truth(call, x));
  return call.Result(
      AsFloats(call, frontend::ReducedLogic(call, call.name() == "all", truth, axes, keep)));
}

// argmax(x), of all elements, and argmax(x, dim, keepdim).
absl::StatusOr<ScriptValue> ImportArg(OpCall& call) {
  ASSIGN_OR_RETURN(ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const bool keep, call.BoolOr(2, false));
  Shape kept(x->type.shape.size(), 1);
  int64_t axis = 0;
  if (call.Has(1)) {
    ASSIGN_OR_RETURN(axis, call.Int(1));
    ASSIGN_OR_RETURN(axis, call.Axis(axis, RankOf(x)));
  }
  if (!call.Has(1) || x->type.shape.empty()) {
    ASSIGN_OR_RETURN(x, call.Reshaped(x, {x->type.element_count()}));
  } else {
    kept = x->type.shape;
    kept[static_cast<size_t>(axis)] = 1;
  }
  ASSIGN_OR_RETURN(
      ValueRef index,
      AsFloats(call, frontend::ArgOf(call, x, {.axis = axis, .is_min = call.name() == "argmin"})));
  if (!keep) return call.Result(std::move(index));
  return call.Result(call.Reshaped(index, std::move(kept)));
}

// The largest or least elements of a dimension and their indices.
absl::StatusOr<ScriptValue> ImportTopk(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const int64_t k, call.Int(1));
  ASSIGN_OR_RETURN(int64_t axis, call.IntOr(2, -1));
  ASSIGN_OR_RETURN(axis, call.Axis(axis, RankOf(x)));
  ASSIGN_OR_RETURN(const bool largest, call.BoolOr(3, true));
  ASSIGN_OR_RETURN(const bool sorted, call.BoolOr(4, true));
  if (!sorted && k != 1) {
    return call.FailMode("the largest elements in no known order (sorted=False)", "sort them");
  }
  ASSIGN_OR_RETURN(frontend::Extrema extrema, frontend::ExtremaOf(call, x, axis, k, !largest));
  ASSIGN_OR_RETURN(extrema.indices, AsFloats(call, extrema.indices));
  return call.state().heap.Tuple(
      {call.Result(std::move(extrema.values)), call.Result(std::move(extrema.indices))});
}

// The elements of a dimension in order and their indices.
absl::StatusOr<ScriptValue> ImportSort(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(int64_t axis, call.IntOr(1, -1));
  ASSIGN_OR_RETURN(axis, call.Axis(axis, RankOf(x)));
  ASSIGN_OR_RETURN(const bool descends, call.BoolOr(2, false));
  const int64_t size = x->type.shape.empty() ? 0 : x->type.shape[axis];
  ASSIGN_OR_RETURN(frontend::Extrema sorted, frontend::ExtremaOf(call, x, axis, size, !descends));
  ASSIGN_OR_RETURN(sorted.indices, AsFloats(call, sorted.indices));
  return call.state().heap.Tuple(
      {call.Result(std::move(sorted.values)), call.Result(std::move(sorted.indices))});
}

// Rows of a table.
absl::StatusOr<ScriptValue> ImportEmbedding(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef table, call.TensorArg(0));
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(1));
  if (RankOf(table) != 2) return absl::InvalidArgumentError("the table must be a matrix");
  if (x->constant.has_value() && !table->constant.has_value()) {
    return call.FailMode("known rows of a table that is computed", "use index_select");
  }
  ASSIGN_OR_RETURN(const ValueRef indices, Indices(call, x));
  return call.Result(frontend::LookedUp(call, table, indices, 0, /*may_be_negative=*/false));
}

absl::StatusOr<ScriptValue> ImportOneHot(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const int64_t classes, call.IntOr(1, -1));
  if (classes < 0) {
    return call.FailMode("as many classes as the largest index asks for", "state num_classes");
  }
  ASSIGN_OR_RETURN(const ValueRef indices, Indices(call, x));
  return call.Result(frontend::OneHotOf(call, indices, classes, call.Scalar(0), call.Scalar(1),
                                        RankOf(indices), /*may_be_negative=*/false));
}

constexpr OpRule kLogicRules[] = {
    {"__and__", "self other", ImportBitwise},
    {"__or__", "self other", ImportBitwise},
    {"__xor__", "self other", ImportBitwise},
    {"all", "self dim keepdim", ImportAnyAll},
    {"any", "self dim keepdim", ImportAnyAll},
    {"argmax", "self dim keepdim", ImportArg},
    {"argmin", "self dim keepdim", ImportArg},
    {"bitwise_and", "self other", ImportBitwise},
    {"bitwise_not", "self", ImportBitwiseNot},
    {"bitwise_or", "self other", ImportBitwise},
    {"bitwise_xor", "self other", ImportBitwise},
    {"embedding", "weight indices padding_idx scale_grad_by_freq sparse", ImportEmbedding},
    {"logical_and", "self other", ImportLogic},
    {"logical_not", "self", ImportNot},
    {"logical_or", "self other", ImportLogic},
    {"logical_xor", "self other", ImportLogic},
    {"one_hot", "self num_classes", ImportOneHot},
    {"sign", "self", ImportSign},
    {"sort", "self dim descending", ImportSort},
    {"topk", "self k dim largest sorted", ImportTopk},
};

}  // namespace

absl::Span<const OpRule> LogicRules() { return kLogicRules; }

}  // namespace npuc::pt
