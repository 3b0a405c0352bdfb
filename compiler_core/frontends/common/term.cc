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
  return Term(*x.node, x.node->ScalarLike(*x.value, number));
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
Term Min(const Term& a, const Term& b) { return Binary("Minimum", a, b); }
Term Max(const Term& a, const Term& b) { return Binary("Maximum", a, b); }

Term Reduced(absl::string_view op, const Term& x, const std::vector<int64_t>& axes,
             bool keep_dims) {
  if (!x.value.ok()) return x;
  return Term(*x.node, x.node->Reduced(op, *x.value, axes, keep_dims));
}

}  // namespace npuc::frontend
