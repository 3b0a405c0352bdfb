#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_TERM_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_TERM_H_

#include <vector>

#include "compiler_core/frontends/common/node_emitter.h"

namespace npuc::frontend {

// A value in a formula: operators emit nodes of the IR. After a failure a term holds its status,
// and so does every term made of it; the rule ends with SetOutput(term.value). Numbers become
// scalars of the other operand's type.
//
// C++ leaves open which operand is computed first, and so the order of the nodes that both emit. So
// an operator does not compile where both operands are results: the one to come first needs a name.
struct Term {
  NodeEmitter* node;
  absl::StatusOr<ValueRef> value;

  Term(NodeEmitter& importer, absl::StatusOr<ValueRef> v) : node(&importer), value(std::move(v)) {}
};

Term operator+(const Term& a, const Term& b);
Term operator-(const Term& a, const Term& b);
Term operator*(const Term& a, const Term& b);
Term operator/(const Term& a, const Term& b);
Term operator+(const Term& a, double b);
Term operator-(const Term& a, double b);
Term operator*(const Term& a, double b);
Term operator/(const Term& a, double b);
Term operator-(double a, const Term& b);
Term operator-(const Term& a);
Term operator+(Term&& a, Term&& b) = delete;
Term operator-(Term&& a, Term&& b) = delete;
Term operator*(Term&& a, Term&& b) = delete;
Term operator/(Term&& a, Term&& b) = delete;

// Any unary operator of the IR, by name.
Term Apply(absl::string_view op, const Term& x);
Term Relu(const Term& x);
Term Exp(const Term& x);
Term Log(const Term& x);
Term Tanh(const Term& x);
Term Sigmoid(const Term& x);
Term Pow(const Term& x, double exponent);
Term Min(const Term& a, double b);
Term Max(const Term& a, double b);
// max(low, min(x, high)); a bound that is null is left out. Bounds of 0 and 6 are Relu and Relu6.
Term Clip(const Term& x, const ValueRef& low, const ValueRef& high);
// log(1 + e^x), without overflow.
Term Softplus(const Term& x);
// x where it is positive, else slope * x.
Term LeakyRelu(const Term& x, double slope);
Term LeakyRelu(const Term& x, const Term& slope);
// x where it is positive, else scale * (e^(x / width) - 1).
Term Elu(const Term& x, double scale, double width);

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_TERM_H_
