#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_SHARED_RULES_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_SHARED_RULES_H_

#include "absl/status/status.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/activations.h"
#include "compiler_core/frontends/common/evaluator.h"
#include "compiler_core/frontends/common/term.h"

namespace npuc::frontend {

// Rules of operators that are the same in every framework, for any front end's table.

template <typename Node>
absl::Status ImportIdentity(Node& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  return node.SetOutput(node.input(0));
}

template <typename Node>
absl::Status ImportRange(Node& node) {
  RETURN_IF_ERROR(node.ExpectInputs(3, 3));
  ASSIGN_OR_RETURN(const Tensor start, node.Constant(0, "start"));
  ASSIGN_OR_RETURN(const Tensor limit, node.Constant(1, "limit"));
  ASSIGN_OR_RETURN(const Tensor delta, node.Constant(2, "delta"));
  return node.SetConstant(EvaluateRange(start, limit, delta));
}

// A formula of the one operand.
template <Term (*formula)(const Term& x), typename Node>
absl::Status ImportFormula(Node& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  return node.SetOutput(formula(Term(node, node.input(0))).value);
}

// Elu whose alpha is an attribute of that name, 1 where it is not stated.
template <typename Node>
absl::Status ImportElu(Node& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const double alpha, node.FloatOr("alpha", 1));
  return node.SetOutput(Elu(Term(node, node.input(0)), alpha, 1).value);
}

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_SHARED_RULES_H_
