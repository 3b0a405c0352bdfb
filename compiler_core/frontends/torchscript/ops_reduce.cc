// Reductions.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/activations.h"
#include "compiler_core/frontends/common/selection.h"
#include "compiler_core/frontends/torchscript/op_call.h"
#include "compiler_core/frontends/torchscript/truth.h"

namespace npuc::pt {
namespace {

absl::StatusOr<ValueRef> Reduce(OpCall& call, absl::string_view op, const ValueRef& x,
                                std::vector<int64_t> dims, bool keep) {
  ASSIGN_OR_RETURN(std::vector<int64_t> axes, call.Axes(std::move(dims), RankOf(x)));
  if (op != "min") return call.Reduced(op, x, std::move(axes), keep);
  // min(x) = -max(-x)
  ASSIGN_OR_RETURN(ValueRef y, call.Emit("Neg", {x}));
  ASSIGN_OR_RETURN(y, call.Reduced("ReduceMax", y, std::move(axes), keep));
  return call.Emit("Neg", {y});
}

// self [dim] [keepdim]: sum(x), sum(x, [1], True), and mean. sum(x, dtype=..) has no dimension.
absl::StatusOr<ScriptValue> ImportSumOrMean(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(std::vector<int64_t> dims, call.IntsOr(1, {}));
  ASSIGN_OR_RETURN(const bool keep, call.BoolOr(2, false));
  const absl::string_view op = call.name() == "mean" ? "ReduceMean" : "ReduceSum";
  return call.Result(Reduce(call, op, x, std::move(dims), keep));
}

absl::StatusOr<ScriptValue> ImportAmax(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(std::vector<int64_t> dims, call.IntsOr(1, {}));
  ASSIGN_OR_RETURN(const bool keep, call.BoolOr(2, false));
  return call.Result(
      Reduce(call, call.name() == "amin" ? "min" : "ReduceMax", x, std::move(dims), keep));
}

// max(x), max(x, y) element by element, max(x, dim) with the indices.
absl::StatusOr<ScriptValue> ImportMaxOrMin(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  const bool is_min = call.name() == "min";
  const absl::string_view op = is_min ? "min" : "ReduceMax";
  if (!call.Has(1)) {
    ASSIGN_OR_RETURN(ValueRef y, Reduce(call, op, x, {}, false));
    return call.Result(std::move(y));
  }
  if (call.IsTensor(1)) {
    ASSIGN_OR_RETURN(const ValueRef other, call.TensorArg(1));
    ASSIGN_OR_RETURN(ValueRef y, call.Emit(is_min ? "Minimum" : "Maximum", {x, other}));
    return call.Result(std::move(y));
  }
  ASSIGN_OR_RETURN(const int64_t dim, call.Int(1));
  ASSIGN_OR_RETURN(const bool keep, call.BoolOr(2, false));
  ASSIGN_OR_RETURN(ValueRef y, Reduce(call, op, x, {dim}, keep));
  ASSIGN_OR_RETURN(const int64_t axis, call.Axis(dim, RankOf(x)));
  ValueRef index = call.MakeConstant(Tensor::Zeros({DType::kFloat32, y->type.shape}));
  if (!x->type.shape.empty()) {
    ASSIGN_OR_RETURN(
        index, AsFloats(call, frontend::ArgOf(
                                  call, x, {.axis = axis, .keep_dims = keep, .is_min = is_min})));
  }
  return call.state().heap.Tuple({call.Result(std::move(y)), call.Result(std::move(index))});
}

// The mean of squared distances from the mean; the divisor is n - correction.
absl::StatusOr<ScriptValue> ImportVar(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  std::vector<int64_t> dims;
  bool unbiased = true;
  bool keep = false;
  int next = 1;
  if (call.arg(1).Is(ScriptKind::kBool)) {
    ASSIGN_OR_RETURN(unbiased, call.BoolOr(1, true));
  } else {
    ASSIGN_OR_RETURN(dims, call.IntsOr(next++, {}));
    ASSIGN_OR_RETURN(unbiased, call.BoolOr(next++, true));
    ASSIGN_OR_RETURN(keep, call.BoolOr(next, false));
  }
  ASSIGN_OR_RETURN(const int64_t correction, call.IntOr(4, unbiased ? 1 : 0));
  ASSIGN_OR_RETURN(const std::vector<int64_t> axes, call.Axes(dims, RankOf(x)));
  double count = 1;
  for (const int64_t axis : axes) count *= static_cast<double>(x->type.shape[axis]);
  if (count <= static_cast<double>(correction)) {
    return absl::InvalidArgumentError("too few elements for a variance");
  }
  ASSIGN_OR_RETURN(const ValueRef mean, call.Reduced("ReduceMean", x, axes, true));
  ASSIGN_OR_RETURN(ValueRef y, call.Emit("Sub", {x, mean}));
  ASSIGN_OR_RETURN(y, call.Emit("Square", {y}));
  ASSIGN_OR_RETURN(y, call.Reduced("ReduceMean", y, axes, keep));
  if (correction != 0) {
    ASSIGN_OR_RETURN(
        y, call.Emit("Mul", {y, call.Scalar(count / (count - static_cast<double>(correction)))}));
  }
  if (call.name() == "std") {
    ASSIGN_OR_RETURN(y, call.Emit("Sqrt", {y}));
  }
  return call.Result(std::move(y));
}

// The Euclidean norm, and the sum of sizes.
absl::StatusOr<ScriptValue> ImportNorm(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const double p, call.FloatOr(1, 2));
  ASSIGN_OR_RETURN(std::vector<int64_t> dims, call.IntsOr(2, {}));
  ASSIGN_OR_RETURN(const bool keep, call.BoolOr(3, false));
  if (p != 1 && p != 2) {
    return call.FailMode(absl::StrCat("the norm of order ", p, "; known are 1 and 2"),
                         "write it with abs, pow and sum");
  }
  ASSIGN_OR_RETURN(ValueRef y, call.Emit(p == 1 ? "Abs" : "Square", {x}));
  ASSIGN_OR_RETURN(y, Reduce(call, "ReduceSum", y, std::move(dims), keep));
  if (p == 2) {
    ASSIGN_OR_RETURN(y, call.Emit("Sqrt", {y}));
  }
  return call.Result(std::move(y));
}

// log(sum(exp(x))), from what is left above the largest element, so that nothing overflows.
absl::StatusOr<ScriptValue> ImportLogSumExp(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const std::vector<int64_t> dims, call.Ints(1));
  ASSIGN_OR_RETURN(const bool keep, call.BoolOr(2, false));
  ASSIGN_OR_RETURN(const ValueRef largest, Reduce(call, "ReduceMax", x, dims, /*keep=*/true));
  ASSIGN_OR_RETURN(ValueRef y, call.Emit("Sub", {x, largest}));
  ASSIGN_OR_RETURN(y, call.Emit("Exp", {y}));
  ASSIGN_OR_RETURN(y, Reduce(call, "ReduceSum", y, dims, keep));
  ASSIGN_OR_RETURN(y, call.Emit("Log", {y}));
  ASSIGN_OR_RETURN(const ValueRef offset, call.Reshaped(largest, y->type.shape));
  return call.Result(call.Emit("Add", {y, offset}));
}

// x . y / (max(|x|, eps) max(|y|, eps)) along a dimension.
absl::StatusOr<ScriptValue> ImportCosineSimilarity(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const ValueRef y, call.TensorArg(1));
  ASSIGN_OR_RETURN(const int64_t dim, call.IntOr(2, 1));
  ASSIGN_OR_RETURN(const double epsilon, call.FloatOr(3, 1e-8));
  // fp16 has no smaller number than 2^-24.
  const double least = std::max(epsilon, 0x1p-24);
  ASSIGN_OR_RETURN(ValueRef product, call.Emit("Mul", {x, y}));
  ASSIGN_OR_RETURN(product, Reduce(call, "ReduceSum", product, {dim}, /*keep=*/false));
  for (const ValueRef& side : {x, y}) {
    const int64_t rank = RankOf(product) + 1;
    ASSIGN_OR_RETURN(const int64_t axis, call.Axis(dim, rank));
    const int64_t missing = rank - RankOf(side);
    const Term norm = frontend::Norm(Term(call, side), 2, {axis - missing}, /*keep_dims=*/false);
    const Term bounded = Max(norm, least);
    RETURN_IF_ERROR(bounded.value.status());
    ASSIGN_OR_RETURN(product, call.Emit("Div", {product, *bounded.value}));
  }
  return call.Result(std::move(product));
}

constexpr OpRule kReduceRules[] = {
    {"amax", "self dim keepdim", ImportAmax},
    {"amin", "self dim keepdim", ImportAmax},
    {"cosine_similarity", "x1 x2 dim eps", ImportCosineSimilarity},
    {"linalg_vector_norm", "self ord dim keepdim dtype", ImportNorm},
    {"logsumexp", "self dim keepdim", ImportLogSumExp},
    {"max", "self dim keepdim", ImportMaxOrMin},
    {"mean", "self dim keepdim dtype", ImportSumOrMean},
    {"min", "self dim keepdim", ImportMaxOrMin},
    {"norm", "self p dim keepdim dtype", ImportNorm},
    {"std", "self dim unbiased keepdim correction", ImportVar},
    {"sum", "self dim keepdim dtype", ImportSumOrMean},
    {"var", "self dim unbiased keepdim correction", ImportVar},
};

}  // namespace

absl::Span<const OpRule> ReduceRules() { return kReduceRules; }

}  // namespace npuc::pt
