// Matrix products.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/torchscript/layers.h"
#include "compiler_core/frontends/torchscript/op_call.h"

namespace npuc::pt {
namespace {

absl::StatusOr<ValueRef> Product(OpCall& call, const ValueRef& a, const ValueRef& b,
                                 bool transpose_b) {
  return call.Emit("MatMul", {a, b}, {{"transpose_a", false}, {"transpose_b", transpose_b}});
}

absl::StatusOr<ScriptValue> ImportLinear(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(ValueRef weight, call.TensorArg(1));
  ASSIGN_OR_RETURN(const ValueRef bias, call.OptionalTensor(2));
  const bool drops_row = weight->type.shape.size() == 1;
  if (drops_row) {
    ASSIGN_OR_RETURN(weight, call.Reshaped(weight, {1, weight->type.shape[0]}));
  }
  ASSIGN_OR_RETURN(ValueRef y, Linear(call, x, weight, bias));
  if (drops_row) {
    Shape shape = y->type.shape;
    shape.pop_back();
    ASSIGN_OR_RETURN(y, call.Reshaped(y, std::move(shape)));
  }
  return call.Result(std::move(y));
}

// a times b by torch's rules for vectors and batches of matrices.
absl::StatusOr<ValueRef> MatMul(OpCall& call, ValueRef a, ValueRef b) {
  const Shape a_shape = a->type.shape;
  const Shape b_shape = b->type.shape;
  if (a_shape.empty() || b_shape.empty()) {
    return absl::InvalidArgumentError("matmul of a single number");
  }
  // A weight times a vector: the vector as a row times the weight transposed, which the matrix unit
  // does.
  if (a->constant.has_value() && a_shape.size() == 2 && b_shape.size() == 1 &&
      !b->constant.has_value()) {
    ASSIGN_OR_RETURN(b, call.Reshaped(b, {1, b_shape[0]}));
    ASSIGN_OR_RETURN(ValueRef y, Product(call, b, a, /*transpose_b=*/true));
    return call.Reshaped(y, {a_shape[0]});
  }
  // A weight times one matrix likewise, between two transposes.
  if (a->constant.has_value() && a_shape.size() == 2 && b_shape.size() == 2 &&
      !b->constant.has_value()) {
    ASSIGN_OR_RETURN(b, call.Transposed(b, {1, 0}));
    ASSIGN_OR_RETURN(ValueRef y, Product(call, b, a, /*transpose_b=*/true));
    return call.Transposed(y, {1, 0});
  }
  if (a_shape.size() == 1) {
    ASSIGN_OR_RETURN(a, call.Reshaped(a, {1, a_shape[0]}));
  }
  if (b_shape.size() == 1) {
    ASSIGN_OR_RETURN(b, call.Reshaped(b, {b_shape[0], 1}));
  }
  ASSIGN_OR_RETURN(ValueRef y, Product(call, a, b, /*transpose_b=*/false));
  Shape result = y->type.shape;
  if (b_shape.size() == 1) result.pop_back();
  if (a_shape.size() == 1) {
    result.erase(result.end() - (b_shape.size() == 1 ? 1 : 2));
  }
  return call.Reshaped(y, std::move(result));
}

absl::StatusOr<ScriptValue> ImportMatMul(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef a, call.TensorArg(0));
  ASSIGN_OR_RETURN(const ValueRef b, call.TensorArg(1));
  return call.Result(MatMul(call, a, b));
}

// beta * self + alpha * a @ b
absl::StatusOr<ScriptValue> ImportAddmm(OpCall& call) {
  ASSIGN_OR_RETURN(ValueRef self, call.TensorArg(0));
  ASSIGN_OR_RETURN(const ValueRef a, call.TensorArg(1));
  ASSIGN_OR_RETURN(const ValueRef b, call.TensorArg(2));
  ASSIGN_OR_RETURN(const double beta, call.FloatOr(3, 1));
  ASSIGN_OR_RETURN(const double alpha, call.FloatOr(4, 1));
  ASSIGN_OR_RETURN(ValueRef y, MatMul(call, a, b));
  if (alpha != 1) {
    ASSIGN_OR_RETURN(y, call.Emit("Mul", {y, call.Scalar(alpha)}));
  }
  if (beta == 0) return call.Result(std::move(y));
  if (beta != 1) {
    ASSIGN_OR_RETURN(self, call.Emit("Mul", {self, call.Scalar(beta)}));
  }
  return call.Result(call.Emit("Add", {y, self}));
}

// Every element of one vector times every element of the other.
absl::StatusOr<ScriptValue> ImportOuter(OpCall& call) {
  ASSIGN_OR_RETURN(ValueRef a, call.TensorArg(0));
  ASSIGN_OR_RETURN(const ValueRef b, call.TensorArg(1));
  if (a->type.shape.size() != 1 || b->type.shape.size() != 1) {
    return absl::InvalidArgumentError("the outer product takes two vectors");
  }
  ASSIGN_OR_RETURN(a, call.ReshapedUnder("UnSqueeze", a, {a->type.shape[0], 1}));
  return call.Result(call.Emit("Mul", {a, b}));
}

constexpr OpRule kLinearRules[] = {
    {"addmm", "self mat1 mat2 beta alpha", ImportAddmm},
    {"addmv", "self mat vec beta alpha", ImportAddmm},
    {"baddbmm", "self batch1 batch2 beta alpha", ImportAddmm},
    {"bmm", "self mat2", ImportMatMul},
    {"dot", "self tensor", ImportMatMul},
    {"linear", "input weight bias", ImportLinear},
    {"matmul", "self other", ImportMatMul},
    {"mm", "self mat2", ImportMatMul},
    {"outer", "self vec2", ImportOuter},
    {"mv", "self vec", ImportMatMul},
};

}  // namespace

absl::StatusOr<ValueRef> Linear(OpCall& call, const ValueRef& x, const ValueRef& weight,
                                const ValueRef& bias) {
  const Shape shape = x->type.shape;
  if (shape.empty() || weight->type.shape.size() != 2 || shape.back() != weight->type.shape[1]) {
    return absl::InvalidArgumentError(absl::StrCat(
        "an input ", TypeToString(x->type), " does not fit a weight ", TypeToString(weight->type)));
  }
  // One matrix of rows: the leading dimensions come back afterwards.
  const int64_t rows = shape.back() == 0 ? 0 : x->type.element_count() / shape.back();
  ASSIGN_OR_RETURN(ValueRef y, call.Reshaped(x, {rows, shape.back()}));
  ASSIGN_OR_RETURN(y, Product(call, y, weight, /*transpose_b=*/true));
  if (bias != nullptr) {
    ASSIGN_OR_RETURN(y, call.Emit("Add", {y, bias}));
  }
  Shape result(shape.begin(), shape.end() - 1);
  result.push_back(weight->type.shape[0]);
  return call.Reshaped(y, std::move(result));
}

absl::Span<const OpRule> LinearRules() { return kLinearRules; }

}  // namespace npuc::pt
