// Activation functions, as formulas of the IR's operators.
#include <cmath>
#include <utility>

#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/activations.h"
#include "compiler_core/frontends/common/selection.h"
#include "compiler_core/frontends/common/shared_rules.h"
#include "compiler_core/frontends/onnx/node_import.h"

namespace npuc::onnx {
namespace {

using frontend::ImportFormula;

absl::StatusOr<Term> Operand(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  return Term(node, node.input(0));
}

absl::Status ImportFunction(NodeImporter& node) {
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  return node.SetOutput(Apply(node.op(), x).value);
}

absl::Status ImportLeakyRelu(NodeImporter& node) {
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  ASSIGN_OR_RETURN(const double alpha, node.FloatOr("alpha", 0.01));
  return node.SetOutput(LeakyRelu(x, alpha).value);
}

absl::Status ImportPRelu(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  const Term x(node, node.input(0));
  ValueRef slope = node.input(1);
  if (node.opset() < 7 && slope->type.shape.size() == 1 && node.rank(0) > 2) {
    Shape shape(static_cast<size_t>(node.rank(0) - 1), 1);  // one slope a channel
    shape[0] = slope->type.shape[0];
    ASSIGN_OR_RETURN(slope, node.Reshaped(slope, std::move(shape)));
  }
  return node.SetOutput(LeakyRelu(x, Term(node, slope)).value);
}

absl::Status ImportCelu(NodeImporter& node) {
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  ASSIGN_OR_RETURN(const double alpha, node.FloatOr("alpha", 1));
  if (!(alpha > 0)) return node.FailMode("an alpha that is not positive", "use a positive alpha");
  return node.SetOutput(Elu(x, alpha, alpha).value);
}

absl::Status ImportSelu(NodeImporter& node) {
  constexpr double kAlpha = 1.67326319217681884765625;
  constexpr double kGamma = 1.05070102214813232421875;
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  ASSIGN_OR_RETURN(const double alpha, node.FloatOr("alpha", kAlpha));
  ASSIGN_OR_RETURN(const double gamma, node.FloatOr("gamma", kGamma));
  if (std::fabs(alpha - kAlpha) < 1e-4 && std::fabs(gamma - kGamma) < 1e-4) {
    return node.SetOutput(Apply("Selu", x).value);
  }
  return node.SetOutput((Elu(x, alpha, 1) * gamma).value);
}

absl::Status ImportClip(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 3));
  ValueRef low = node.has(1) ? node.input(1) : nullptr;
  ValueRef high = node.has(2) ? node.input(2) : nullptr;
  for (const bool is_low : {true, false}) {
    const absl::string_view name = is_low ? "min" : "max";
    if (!node.node().HasAttr(name)) continue;
    ASSIGN_OR_RETURN(const double bound, node.FloatOr(name, 0));
    (is_low ? low : high) = node.Scalar(bound, node.type(0).dtype);
  }
  return node.SetOutput(frontend::Clip(Term(node, node.input(0)), low, high).value);
}

absl::Status ImportHardSigmoid(NodeImporter& node) {
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  ASSIGN_OR_RETURN(const double alpha, node.FloatOr("alpha", 0.2));
  ASSIGN_OR_RETURN(const double beta, node.FloatOr("beta", 0.5));
  return node.SetOutput(HardUnit(x * alpha + beta).value);
}

absl::Status ImportGelu(NodeImporter& node) {
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  ASSIGN_OR_RETURN(const std::string approximate, node.StringOr("approximate", "none"));
  return node.SetOutput((approximate == "tanh" ? GeluByProducts(x) : Gelu(x)).value);
}

absl::Status ImportSwish(NodeImporter& node) {
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  ASSIGN_OR_RETURN(const double alpha, node.FloatOr("alpha", 1));
  return node.SetOutput(frontend::Swish(x, alpha).value);
}

// x where it is above alpha, else 0.
absl::Status ImportThresholdedRelu(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const double alpha, node.FloatOr("alpha", 1));
  const ValueRef& x = node.input(0);
  const DType dtype = node.type(0).dtype;
  ASSIGN_OR_RETURN(const ValueRef is_above, node.Emit("Greater", {x, node.Scalar(alpha, dtype)}));
  return node.SetOutput(frontend::Selected(node, is_above, x, node.Scalar(0, dtype)));
}

// x - bias above lambd, x + bias below -lambd, 0 between.
absl::Status ImportShrink(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const double bias, node.FloatOr("bias", 0));
  ASSIGN_OR_RETURN(const double lambd, node.FloatOr("lambd", 0.5));
  if (!IsFloat(node.type(0).dtype)) return node.FailMode("Shrink of integers", "use floats");
  const Term x(node, node.input(0));
  const DType dtype = node.type(0).dtype;
  const ValueRef zero = node.Scalar(0, dtype);
  ASSIGN_OR_RETURN(const ValueRef is_above,
                   node.Emit("Greater", {node.input(0), node.Scalar(lambd, dtype)}));
  ASSIGN_OR_RETURN(const ValueRef is_below,
                   node.Emit("Greater", {node.Scalar(-lambd, dtype), node.input(0)}));
  ASSIGN_OR_RETURN(const ValueRef lowered, (x - bias).value);
  ASSIGN_OR_RETURN(const ValueRef raised, (x + bias).value);
  ASSIGN_OR_RETURN(const ValueRef above, frontend::Selected(node, is_above, lowered, zero));
  return node.SetOutput(frontend::Selected(node, is_below, raised, above));
}

constexpr ImportRule kActivationRules[] = {
    {"Celu", ImportCelu},
    {"Clip", ImportClip},
    {"Elu", frontend::ImportElu},
    {"Gelu", ImportGelu},
    {"HardSigmoid", ImportHardSigmoid},
    {"HardSwish", ImportFormula<frontend::HardSwish>},
    {"LeakyRelu", ImportLeakyRelu},
    {"Mish", ImportFormula<frontend::Mish>},
    {"PRelu", ImportPRelu},
    {"Relu", ImportFunction},
    {"Selu", ImportSelu},
    {"Shrink", ImportShrink},
    {"Sigmoid", ImportFunction},
    {"Softplus", ImportFormula<frontend::Softplus>},
    {"Softsign", ImportFormula<frontend::Softsign>},
    {"Swish", ImportSwish},
    {"Tanh", ImportFunction},
    {"ThresholdedRelu", ImportThresholdedRelu},
};

}  // namespace

absl::Span<const ImportRule> ActivationRules() { return kActivationRules; }

}  // namespace npuc::onnx
