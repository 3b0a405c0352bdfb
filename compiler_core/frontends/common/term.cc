#include "compiler_core/frontends/common/term.h"

namespace npuc::frontend {
namespace {

Term Binary(absl::string_view op, const Term& a, const Term& b) {
  if (!a.value.ok()) return a;
  if (!b.value.ok()) return b;
  return Term(*a.node, a.node->Emit(op, {*a.value, *b.value}));
}

Term NumberLike(const Term& x, double number) {
  if (!x.value.ok()) return x;
  return Term(*x.node, x.node->Scalar(number, (*x.value)->type.dtype));
}

}  // namespace

Term operator+(const Term& a, const Term& b) { return Binary("Add", a, b); }
Term operator-(const Term& a, const Term& b) { return Binary("Sub", a, b); }
Term operator*(const Term& a, const Term& b) { return Binary("Mul", a, b); }
Term operator/(const Term& a, const Term& b) { return Binary("Div", a, b); }
Term operator+(const Term& a, double b) { return b == 0 ? a : Binary("Add", a, NumberLike(a, b)); }
Term operator-(const Term& a, double b) { return Binary("Sub", a, NumberLike(a, b)); }
Term operator*(const Term& a, double b) { return b == 1 ? a : Binary("Mul", a, NumberLike(a, b)); }
Term operator/(const Term& a, double b) { return Binary("Div", a, NumberLike(a, b)); }
Term operator-(double a, const Term& b) { return Binary("Sub", NumberLike(b, a), b); }
Term operator-(const Term& a) { return Apply("Neg", a); }

Term Apply(absl::string_view op, const Term& x) {
  if (!x.value.ok()) return x;
  return Term(*x.node, x.node->Emit(op, {*x.value}));
}
Term Relu(const Term& x) { return Apply("Relu", x); }
Term Exp(const Term& x) { return Apply("Exp", x); }
Term Log(const Term& x) { return Apply("Log", x); }
Term Tanh(const Term& x) { return Apply("Tanh", x); }
Term Sigmoid(const Term& x) { return Apply("Sigmoid", x); }
Term Pow(const Term& x, double exponent) { return Binary("Pow", x, NumberLike(x, exponent)); }
Term Min(const Term& a, double b) { return Binary("Minimum", a, NumberLike(a, b)); }
Term Max(const Term& a, double b) { return Binary("Maximum", a, NumberLike(a, b)); }

namespace {

bool IsNumber(const ValueRef& value, double number) {
  return value != nullptr && value->constant.has_value() && value->type.element_count() == 1 &&
         value->constant->at(0) == number;
}

}  // namespace

Term Clip(const Term& x, const ValueRef& low, const ValueRef& high) {
  if (!x.value.ok()) return x;
  const bool is_relu = IsNumber(low, 0) && IsFloat((*x.value)->type.dtype);
  if (is_relu && IsNumber(high, 6)) return Apply("Relu6", x);
  Term result = x;
  if (is_relu) {
    result = Relu(x);
  } else if (low != nullptr) {
    result = Binary("Maximum", result, Term(*x.node, low));
  }
  if (high != nullptr) result = Binary("Minimum", result, Term(*x.node, high));
  return result;
}

Term Softplus(const Term& x) {
  const Term rest = Log(Exp(-Apply("Abs", x)) + 1.0);
  return Relu(x) + rest;
}

// Of relu(x) and relu(-x) one is 0, so sums of their multiples are exact.
Term LeakyRelu(const Term& x, double slope) {
  const Term below = Relu(-x) * slope;
  return Relu(x) - below;
}

Term LeakyRelu(const Term& x, const Term& slope) {
  const Term below = Relu(-x) * slope;
  return Relu(x) - below;
}

Term Elu(const Term& x, double scale, double width) {
  const Term negative = -Relu(-x);
  const Term curve = (Exp(width == 1 ? negative : negative / width) - 1.0) * scale;
  return Relu(x) + curve;
}

}  // namespace npuc::frontend
