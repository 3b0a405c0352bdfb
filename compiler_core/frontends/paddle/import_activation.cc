// Activation functions, as formulas of the IR's operators.
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/activations.h"
#include "compiler_core/frontends/common/selection.h"
#include "compiler_core/frontends/paddle/op_import.h"

namespace npuc::paddle {
namespace {

absl::StatusOr<Term> Operand(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef x, node.In("X"));
  return Term(node, x);
}

template <Term (*formula)(const Term& x)>
absl::Status ImportFormula(OpImporter& node) {
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  return node.Give("Out", formula(x).value);
}

// An operator of the IR of one operand.
template <Op kOp>
absl::Status ImportPlain(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef x, node.In("X"));
  return node.Give("Out", node.Emit(NameOf(kOp), {x}));
}

// Functions that jump, by the evaluator's names.
absl::Status ImportComputed(OpImporter& node) {
  constexpr std::pair<absl::string_view, absl::string_view> kNames[] = {
      {"ceil", "Ceil"},
      {"erf", "Erf"},
      {"floor", "Floor"},
      {"logical_not", "LogicalNot"},
      {"sign", "Sign"}};
  ASSIGN_OR_RETURN(const ValueRef x, node.In("X"));
  for (const auto& [name, evaluated] : kNames) {
    if (name != node.node().type()) continue;
    ASSIGN_OR_RETURN(ValueRef value, frontend::ComputedUnary(node, evaluated, x));
    if (value != nullptr) return node.Give("Out", std::move(value));
  }
  return absl::InvalidArgumentError(absl::StrCat("an operand ", TypeToString(x->type)));
}

// Halves go away from 0, as in Eigen's round(). The rest of |x| is exact, so no half appears that x
// does not have.
absl::Status ImportRound(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef x, node.In("X"));
  ASSIGN_OR_RETURN(const int64_t decimals, node.IntOr("decimals", 0));
  if (decimals != 0) {
    return node.FailMode(absl::StrCat("rounding to ", decimals, " decimals"), "use 0 decimals");
  }
  if (!IsFloat(x->type.dtype)) {
    return absl::InvalidArgumentError(absl::StrCat("an operand ", TypeToString(x->type)));
  }
  const Term size = Apply("Abs", Term(node, x));
  const Term whole = Apply("Floor", size);
  const Term rest = size - whole;
  const Term up = Apply("Floor", rest * 2);
  const Term rounded = whole + up;
  const Term sign(node, frontend::ComputedUnary(node, "Sign", x));
  return node.Give("Out", (rounded * sign).value);
}

absl::Status ImportRelu6(OpImporter& node) {
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  ASSIGN_OR_RETURN(const double threshold, node.FloatOr("threshold", 6));
  return node.Give("Out", frontend::Clip(x, node.Scalar(0), node.Scalar(threshold)).value);
}

absl::Status ImportLeakyRelu(OpImporter& node) {
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  ASSIGN_OR_RETURN(const double alpha, node.FloatOr("alpha", 0.02));
  return node.Give("Out", frontend::LeakyRelu(x, alpha).value);
}

absl::Status ImportElu(OpImporter& node) {
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  ASSIGN_OR_RETURN(const double alpha, node.FloatOr("alpha", 1));
  return node.Give("Out", frontend::Elu(x, alpha, 1).value);
}

absl::Status ImportSelu(OpImporter& node) {
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  ASSIGN_OR_RETURN(const double scale, node.FloatOr("scale", 1.0507009873554804934193349852946));
  ASSIGN_OR_RETURN(const double alpha, node.FloatOr("alpha", 1.6732632423543772848170429916717));
  return node.Give("Out", (frontend::Elu(x, alpha, 1) * scale).value);
}

// Alpha: one number, one a channel, or one for each element but those of the batch.
absl::Status ImportPRelu(OpImporter& node) {
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  ASSIGN_OR_RETURN(ValueRef alpha, node.In("Alpha"));
  ASSIGN_OR_RETURN(const std::string mode, node.StringOr("mode", "all"));
  ASSIGN_OR_RETURN(const std::string format, node.StringOr("data_format", "NCHW"));
  const Shape& shape = node.shape(node.At("X"));
  Shape as(shape.size(), 1);
  if (mode == "channel" && !shape.empty()) {
    const size_t axis = format == "NHWC" || shape.size() < 2 ? shape.size() - 1 : 1;
    as[axis] = alpha->type.element_count();
  } else if (mode == "element") {
    as = shape;
    if (!as.empty()) as[0] = 1;
  }
  ASSIGN_OR_RETURN(alpha, node.Reshaped(alpha, as));
  return node.Give("Out", frontend::LeakyRelu(x, Term(node, alpha)).value);
}

absl::Status ImportSwish(OpImporter& node) {
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  ASSIGN_OR_RETURN(const double beta, node.FloatOr("beta", 1));
  return node.Give("Out", frontend::Swish(x, beta).value);
}

absl::Status ImportHardSwish(OpImporter& node) {
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  ASSIGN_OR_RETURN(const double offset, node.FloatOr("offset", 3));
  ASSIGN_OR_RETURN(const double threshold, node.FloatOr("threshold", 6));
  ASSIGN_OR_RETURN(const double scale, node.FloatOr("scale", 6));
  if (offset == 3 && threshold == 6 && scale == 6) {
    return node.Give("Out", frontend::HardSwish(x).value);
  }
  const Term gate = Min(Relu(x + offset), threshold) * (1 / scale);
  return node.Give("Out", (x * gate).value);
}

absl::Status ImportHardSigmoid(OpImporter& node) {
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  ASSIGN_OR_RETURN(const double slope, node.FloatOr("slope", 0.2));
  ASSIGN_OR_RETURN(const double offset, node.FloatOr("offset", 0.5));
  return node.Give("Out", frontend::HardUnit(x * slope + offset).value);
}

absl::Status ImportBRelu(OpImporter& node) {
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  ASSIGN_OR_RETURN(const double low, node.FloatOr("t_min", 0));
  ASSIGN_OR_RETURN(const double high, node.FloatOr("t_max", 24));
  return node.Give("Out", frontend::Clip(x, node.Scalar(low), node.Scalar(high)).value);
}

absl::Status ImportClip(OpImporter& node) {
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  ASSIGN_OR_RETURN(const double low, node.FloatAt("Min", "min", 0));
  ASSIGN_OR_RETURN(const double high, node.FloatAt("Max", "max", 1));
  const DType dtype = node.type(node.At("X")).dtype;
  return node.Give("Out",
                   frontend::Clip(x, node.Scalar(low, dtype), node.Scalar(high, dtype)).value);
}

absl::Status ImportSoftplus(OpImporter& node) {
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  ASSIGN_OR_RETURN(const double beta, node.FloatOr("beta", 1));
  if (!(beta > 0)) return node.FailMode("a beta that is not positive", "use a positive beta");
  return node.Give("Out", (frontend::Softplus(x * beta) * (1 / beta)).value);
}

absl::Status ImportGelu(OpImporter& node) {
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  ASSIGN_OR_RETURN(const bool approximate, node.BoolOr("approximate", false));
  return node.Give("Out", (approximate ? frontend::GeluByProducts(x) : frontend::Gelu(x)).value);
}

absl::Status ImportPow(OpImporter& node) {
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  ASSIGN_OR_RETURN(const double factor, node.FloatAt("FactorTensor", "factor", 1));
  return node.Give("Out", Pow(x, factor).value);
}

// x * scale + bias, or (x + bias) * scale.
absl::Status ImportScale(OpImporter& node) {
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  ASSIGN_OR_RETURN(const double scale, node.FloatAt("ScaleTensor", "scale", 1));
  ASSIGN_OR_RETURN(const double bias, node.FloatOr("bias", 0));
  ASSIGN_OR_RETURN(const bool after, node.BoolOr("bias_after_scale", true));
  return node.Give("Out", (after ? x * scale + bias : (x + bias) * scale).value);
}

// An axis of -1 unless the operator says another.
absl::Status Softmax(OpImporter& node, absl::string_view op) {
  ASSIGN_OR_RETURN(const ValueRef x, node.In("X"));
  ASSIGN_OR_RETURN(int64_t axis, node.IntOr("axis", -1));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, static_cast<int64_t>(x->type.shape.size())));
  return node.Give("Out", node.Emit(op, {x}, {{"axis", axis}}));
}
absl::Status ImportSoftmax(OpImporter& node) { return Softmax(node, "Softmax"); }
absl::Status ImportLogSoftmax(OpImporter& node) { return Softmax(node, "LogSoftmax"); }

// downgrade_in_infer, the default, multiplies by what training kept.
absl::Status ImportDropout(OpImporter& node) {
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  ASSIGN_OR_RETURN(const double probability, node.FloatOr("dropout_prob", 0.5));
  ASSIGN_OR_RETURN(const std::string kind,
                   node.StringOr("dropout_implementation", "downgrade_in_infer"));
  if (kind == "upscale_in_train") return node.Give("Out", x.value);
  if (kind == "downgrade_in_infer") return node.Give("Out", (x * (1 - probability)).value);
  return node.FailMode(absl::StrCat("dropout_implementation '", Printable(kind, 40), "'"),
                       "export the model without dropout");
}

constexpr ImportRule kActivationRules[] = {
    {"abs", ImportPlain<Op::kAbs>},
    {"brelu", ImportBRelu},
    {"ceil", ImportComputed},
    {"clip", ImportClip},
    {"dropout", ImportDropout},
    {"elu", ImportElu},
    {"erf", ImportComputed},
    {"exp", ImportPlain<Op::kExp>},
    {"expm1", ImportFormula<frontend::Expm1>},
    {"floor", ImportComputed},
    {"gelu", ImportGelu},
    {"hard_sigmoid", ImportHardSigmoid},
    {"hard_swish", ImportHardSwish},
    {"leaky_relu", ImportLeakyRelu},
    {"log", ImportPlain<Op::kLog>},
    {"log1p", ImportFormula<frontend::Log1p>},
    {"log_softmax", ImportLogSoftmax},
    {"logical_not", ImportComputed},
    {"logsigmoid", ImportFormula<frontend::LogSigmoid>},
    {"mish", ImportFormula<frontend::Mish>},
    {"pow", ImportPow},
    {"prelu", ImportPRelu},
    {"reciprocal", ImportPlain<Op::kReciprocal>},
    {"relu", ImportPlain<Op::kRelu>},
    {"relu6", ImportRelu6},
    {"round", ImportRound},
    {"rsqrt", ImportPlain<Op::kRsqrt>},
    {"scale", ImportScale},
    {"selu", ImportSelu},
    {"sigmoid", ImportPlain<Op::kSigmoid>},
    {"sign", ImportComputed},
    {"silu", ImportFormula<frontend::Silu>},
    {"softmax", ImportSoftmax},
    {"softplus", ImportSoftplus},
    {"softsign", ImportFormula<frontend::Softsign>},
    {"sqrt", ImportPlain<Op::kSqrt>},
    {"square", ImportPlain<Op::kSquare>},
    {"swish", ImportSwish},
    {"tanh", ImportPlain<Op::kTanh>},
    {"tanh_shrink", ImportFormula<frontend::Tanhshrink>},
};

}  // namespace

absl::Span<const ImportRule> ActivationRules() { return kActivationRules; }

}  // namespace npuc::paddle
