#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_TERM_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_TERM_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/frontends/common/emitter.h"

namespace npuc::frontend {

// A value in a formula: operators emit nodes of the IR. After a failure a term holds its status,
// and so does every term made of it; the rule ends with SetOutput(term.value). Numbers become
// scalars beside the other operand; a sum with 0 and a product with 1 emit nothing.
//
// C++ leaves open which operand is computed first, and so the order of the nodes that both emit. So
// an operator does not compile where both operands are results: the one to come first needs a name.
struct Term {
  Emitter* node;
  absl::StatusOr<ValueRef> value;

  Term(Emitter& emitter, absl::StatusOr<ValueRef> v) : node(&emitter), value(std::move(v)) {}
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
Term Min(const Term& a, const Term& b);
Term Max(const Term& a, const Term& b);
// A reduction of the IR, by name. Over no axes it is x.
Term Reduced(absl::string_view op, const Term& x, const std::vector<int64_t>& axes, bool keep_dims);

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_TERM_H_
