#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_TERM_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_TERM_H_

#include <vector>

#include "compiler_core/frontends/common/node_emitter.h"

namespace npuc::frontend {

// A value in a formula: operators emit nodes of the IR. After a failure a term holds its status,
// and so does every term made of it; the rule ends with SetOutput(term.value). Numbers become
// scalars of the other operand's type.
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
// log(1 + e^x), without overflow.
Term Softplus(const Term& x);

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_TERM_H_
