// Activation functions and clips that the IR has no operator for: formulas of operators that it
// has.
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/activations.h"
#include "compiler_core/frontends/common/evaluator.h"
#include "compiler_core/frontends/tensorflow/node_import.h"

namespace npuc::tf {
namespace {

using frontend::Term;

absl::StatusOr<Term> Operand(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  node.SetRewritten();
  return Term(node, node.input(0));
}

template <Term (*formula)(const Term& x)>
absl::Status ImportRewritten(NodeImporter& node) {
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  return node.SetOutput(formula(x).value);
}

absl::Status ImportClip(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(3, 3));
  for (int i = 1; i < 3; ++i) {
    const absl::StatusOr<Shape> joint = BroadcastShape(node.shape(0), node.shape(i));
    if (joint.ok() && *joint == node.shape(0)) continue;
    return absl::InvalidArgumentError(absl::StrCat("bound ", i, " is ", TypeToString(node.type(i)),
                                                   "; it must be a scalar or fit ",
                                                   TypeToString(node.type(0))));
  }
  node.SetRewritten();
  const Term x(node, node.input(0));
  return node.SetOutput(frontend::Clip(x, node.input(1), node.input(2)).value);
}

absl::Status ImportElu(NodeImporter& node) {
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  return node.SetOutput(frontend::Elu(x, 1, 1).value);
}

absl::Status ImportLeakyRelu(NodeImporter& node) {
  ASSIGN_OR_RETURN(const double alpha, node.FloatOr("alpha", 0.2));
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  return node.SetOutput(frontend::LeakyRelu(x, alpha).value);
}

absl::Status ImportDivNoNan(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const Tensor divisor, node.Constant(1, "divisor"));
  for (int64_t i = 0; i < divisor.element_count(); ++i) {
    if (divisor.at(i) != 0) continue;
    return node.FailMode("a divisor of 0, whose quotients are defined as 0",
                         "rebuild the model with Mul by a mask");
  }
  node.SetRewritten();
  return node.EmitOutput("Div", {node.input(0), node.input(1)});
}

constexpr ImportRule kActivationRules[] = {
    {"ClipByValue", ImportClip},
    {"DivNoNan", ImportDivNoNan},
    {"Elu", ImportElu},
    {"Expm1", ImportRewritten<frontend::Expm1>},
    {"LeakyRelu", ImportLeakyRelu},
    {"Log1p", ImportRewritten<frontend::Log1p>},
    {"Softplus", ImportRewritten<frontend::Softplus>},
    {"Softsign", ImportRewritten<frontend::Softsign>},
};

}  // namespace

absl::Span<const ImportRule> ActivationRules() { return kActivationRules; }

}  // namespace npuc::tf
