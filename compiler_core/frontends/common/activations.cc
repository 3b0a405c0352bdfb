#include "compiler_core/frontends/common/activations.h"

#include <cmath>
#include <utility>

namespace npuc::frontend {
namespace {

// Both operands of a node, emitted in the front end's order.
template <typename Left, typename Right>
std::pair<Term, Term> InOrder(const Term& x, Left left, Right right) {
  if (x.node->EmitsLeftFirst()) {
    Term first = left();
    return {std::move(first), right()};
  }
  Term first = right();
  return {left(), std::move(first)};
}

// Either relu(x) or relu(-x) is 0, so sums of their multiples are exact.
template <typename Slope>
Term Leaky(const Term& x, const Slope& slope) {
  const auto [above, below] = InOrder(
      x, [&] { return Relu(x); }, [&] { return Relu(-x) * slope; });
  return above - below;
}

bool IsNumber(const ValueRef& value, double number) {
  return value != nullptr && value->constant.has_value() && value->type.element_count() == 1 &&
         value->constant->at(0) == number;
}

// x / 2 * (1 + tanh(inner))
Term Gated(const Term& x, const Term& inner) {
  const Term gate = Tanh(inner) + 1.0;
  return x * 0.5 * gate;
}

// 1 - erf(z) for z >= 0, off by at most 1.5e-7. Source: Abramowitz and Stegun, Handbook of
// Mathematical Functions, 7.1.26: with t = 1 / (1 + p z) it is a polynomial in t times e^-z^2.
Term ErfTail(const Term& z) {
  constexpr double kP = 0.3275911;
  constexpr double kA[] = {1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592};
  const Term t = Apply("Reciprocal", z * kP + 1.0);
  Term sum = t * kA[0];
  for (int i = 1; i < 5; ++i) sum = (sum + kA[i]) * t;
  return sum * Exp(-(z * z));
}

// The tails of the error function at relu(-x) and relu(x), one of which is 1.
std::pair<Term, Term> ErfTails(const Term& x) {
  return InOrder(
      x, [&] { return ErfTail(Relu(-x)); }, [&] { return ErfTail(Relu(x)); });
}

constexpr double kGeluCubic = 0.044715;
double GeluFactor() { return std::sqrt(2 / M_PI); }

}  // namespace

Term Softplus(const Term& x) {
  const auto [above, rest] = InOrder(
      x, [&] { return Relu(x); }, [&] { return Log(Exp(-Apply("Abs", x)) + 1.0); });
  return above + rest;
}

Term LogSigmoid(const Term& x) { return -Softplus(-x); }
Term Softsign(const Term& x) { return x / (Apply("Abs", x) + 1.0); }
Term Silu(const Term& x) { return x * Sigmoid(x); }
Term Swish(const Term& x, double beta) { return x * Sigmoid(x * beta); }
Term Mish(const Term& x) { return x * Tanh(Softplus(x)); }
Term Tanhshrink(const Term& x) { return x - Tanh(x); }
Term HardSigmoid(const Term& x) { return Apply("Relu6", x + 3.0) * (1.0 / 6); }
Term HardSwish(const Term& x) { return x * HardSigmoid(x); }
Term HardUnit(const Term& x) { return Apply("Relu6", x * 6.0) * (1.0 / 6); }
Term Expm1(const Term& x) { return Exp(x) - 1.0; }
Term Log1p(const Term& x) { return Log(x + 1.0); }

Term LeakyRelu(const Term& x, double slope) { return Leaky(x, slope); }
Term LeakyRelu(const Term& x, const Term& slope) { return Leaky(x, slope); }

Term Elu(const Term& x, double scale, double width) {
  const Term negative = -Relu(-x);
  const Term curve = (Exp(width == 1 ? negative : negative / width) - 1.0) * scale;
  return Relu(x) + curve;
}

Term ScaledElu(const Term& x, double alpha, double scale, double input_scale) {
  const Term above = Relu(x);
  const Term curve = (Exp(Relu(-x) * -input_scale) - 1.0) * (alpha * scale);
  const Term scaled = above * scale;
  return scaled + curve;
}

Term Clip(const Term& x, const ValueRef& low, const ValueRef& high) {
  if (!x.value.ok()) return x;
  const bool is_relu = IsNumber(low, 0) && IsFloat((*x.value)->type.dtype);
  if (is_relu && IsNumber(high, 6)) return Apply("Relu6", x);
  Term result = x;
  if (is_relu) {
    result = Relu(x);
  } else if (low != nullptr) {
    result = Max(result, Term(*x.node, low));
  }
  if (high != nullptr) result = Min(result, Term(*x.node, high));
  return result;
}

// x times half the tail of the error function at |x| / sqrt 2, taken from relu(x).
Term Gelu(const Term& x) {
  const Term size = Apply("Abs", x);
  const Term tail = size * ErfTail(size * M_SQRT1_2) * 0.5;
  return Relu(x) - tail;
}

Term Erf(const Term& x) {
  const auto [below, above] = ErfTails(x);
  return below - above;
}

Term Erfc(const Term& x) {
  const auto [below, above] = ErfTails(x);
  return above - (below - 1.0);
}

Term GeluByProducts(const Term& x) { return Gated(x, (x + x * x * x * kGeluCubic) * GeluFactor()); }

Term GeluByPower(const Term& x) { return Gated(x, (x + Pow(x, 3) * kGeluCubic) * GeluFactor()); }

Term GeluBySquare(const Term& x) {
  const Term inner = (Apply("Square", x) * (kGeluCubic * GeluFactor()) + GeluFactor()) * x;
  return (Tanh(inner) + 1.0) * 0.5 * x;
}

Term InverseDeviation(const Term& centred, const std::vector<int64_t>& axes, double epsilon) {
  return Apply("Rsqrt", Reduced("ReduceMean", Apply("Square", centred), axes, true) + epsilon);
}

Normalized Normalize(const Term& x, const std::vector<int64_t>& axes, double epsilon) {
  const Term mean = Reduced("ReduceMean", x, axes, true);
  const Term centred = x - mean;
  const Term scale = InverseDeviation(centred, axes, epsilon);
  return {centred * scale, mean, scale};
}

Term Norm(const Term& x, int64_t p, const std::vector<int64_t>& axes, bool keep_dims) {
  const Term sum = Reduced("ReduceSum", Apply(p == 1 ? "Abs" : "Square", x), axes, keep_dims);
  return p == 1 ? sum : Apply("Sqrt", sum);
}

}  // namespace npuc::frontend
