// Activations and functions of single elements.
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/caffe/node_import.h"
#include "compiler_core/frontends/common/activations.h"
#include "compiler_core/frontends/common/shared_rules.h"

namespace npuc::caffe {
namespace {

using frontend::ImportFormula;

absl::StatusOr<Term> Operand(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  return Term(node, node.input(0));
}

template <const char* const& op>
absl::Status ImportUnary(LayerImporter& node) {
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  return node.SetOutput(Apply(op, x).value);
}
constexpr const char* kAbs = "Abs";
constexpr const char* kRelu6 = "Relu6";
constexpr const char* kSigmoid = "Sigmoid";
constexpr const char* kTanh = "Tanh";

absl::Status ImportRelu(LayerImporter& node) {
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  ASSIGN_OR_RETURN(const double slope, node.FloatOr("negative_slope", 0));
  return node.SetOutput((slope == 0 ? Relu(x) : LeakyRelu(x, slope)).value);
}

// One slope a channel, or one for all.
absl::Status ImportPRelu(LayerImporter& node) {
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  ASSIGN_OR_RETURN(const bool is_shared, node.BoolOr("channel_shared", false));
  RETURN_IF_ERROR(node.ExpectBlobs(1));
  if (node.rank(0) < 2) return absl::InvalidArgumentError("the operand has no channels");
  Shape shape;
  if (!is_shared) {
    shape.assign(static_cast<size_t>(node.rank(0) - 1), 1);
    shape[0] = node.shape(0)[1];
  }
  ASSIGN_OR_RETURN(const ValueRef slope, node.Blob(0, "slope", std::move(shape)));
  return node.SetOutput(LeakyRelu(x, Term(node, slope)).value);
}

absl::Status ImportSwish(LayerImporter& node) {
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  ASSIGN_OR_RETURN(const double beta, node.FloatOr("beta", 1));
  return node.SetOutput(frontend::Swish(x, beta).value);
}

absl::Status ImportClip(LayerImporter& node) {
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  if (!node.node().Has("min") || !node.node().Has("max")) {
    return node.FailMode("a clip without min and max", "state both in its clip_param");
  }
  ASSIGN_OR_RETURN(const double low, node.FloatOr("min", 0));
  ASSIGN_OR_RETURN(const double high, node.FloatOr("max", 0));
  return node.SetOutput(frontend::Clip(x, node.Scalar(low), node.Scalar(high)).value);
}

// (shift + scale * x) ^ power
absl::Status ImportPower(LayerImporter& node) {
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  ASSIGN_OR_RETURN(const double power, node.FloatOr("power", 1));
  ASSIGN_OR_RETURN(const double scale, node.FloatOr("scale", 1));
  ASSIGN_OR_RETURN(const double shift, node.FloatOr("shift", 0));
  const Term base = x * scale + shift;
  return node.SetOutput((power == 1 ? base : Pow(base, power)).value);
}

// The natural logarithm of the base, which is e where it is -1.
absl::StatusOr<double> LogOfBase(LayerImporter& node) {
  ASSIGN_OR_RETURN(const double base, node.FloatOr("base", -1));
  if (base == -1) return 1.0;
  if (base > 0 && base != 1 && std::isfinite(base)) return std::log(base);
  return node.BadAttribute(absl::InvalidArgumentError(absl::StrCat(
      "parameter 'base' is ", base, "; it must be -1, which means e, or positive and not 1")));
}

// base ^ (shift + scale * x)
absl::Status ImportExp(LayerImporter& node) {
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  ASSIGN_OR_RETURN(const double log_base, LogOfBase(node));
  ASSIGN_OR_RETURN(const double scale, node.FloatOr("scale", 1));
  ASSIGN_OR_RETURN(const double shift, node.FloatOr("shift", 0));
  return node.SetOutput((Exp(x * (log_base * scale)) * std::exp(log_base * shift)).value);
}

// The logarithm to the base of shift + scale * x.
absl::Status ImportLog(LayerImporter& node) {
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  ASSIGN_OR_RETURN(const double log_base, LogOfBase(node));
  ASSIGN_OR_RETURN(const double scale, node.FloatOr("scale", 1));
  ASSIGN_OR_RETURN(const double shift, node.FloatOr("shift", 0));
  return node.SetOutput((Log(x * scale + shift) * (1 / log_base)).value);
}

absl::Status ImportSoftmax(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(int64_t axis, node.IntOr("axis", 1));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0)));
  return node.EmitOutput("Softmax", {node.input(0)}, {{"axis", axis}});
}

constexpr ImportRule kActivationRules[] = {
    {"AbsVal", ImportUnary<kAbs>},
    {"BNLL", ImportFormula<frontend::Softplus>},
    {"Clip", ImportClip},
    {"ELU", frontend::ImportElu},
    {"Exp", ImportExp},
    {"Log", ImportLog},
    {"PReLU", ImportPRelu},
    {"Power", ImportPower},
    {"ReLU", ImportRelu},
    {"ReLU6", ImportUnary<kRelu6>},
    {"Sigmoid", ImportUnary<kSigmoid>},
    {"Softmax", ImportSoftmax},
    {"SoftmaxWithLoss", ImportSoftmax},
    {"Swish", ImportSwish},
    {"TanH", ImportUnary<kTanh>},
};

}  // namespace

absl::Span<const ImportRule> ActivationRules() { return kActivationRules; }

}  // namespace npuc::caffe
