// Activation functions and softmax.
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/activations.h"
#include "compiler_core/frontends/common/shared_rules.h"
#include "compiler_core/frontends/mxnet/node_import.h"

namespace npuc::mxnet {
namespace {

using frontend::ImportFormula;

template <Op kOp>
absl::Status Plain(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  return node.EmitOutput(NameOf(kOp), {node.input(0)});
}

absl::Status ImportActivation(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  const Term x(node, node.input(0));
  ASSIGN_OR_RETURN(const std::string type, node.StringOr("act_type", ""));
  if (type == "relu") return node.SetOutput(Relu(x).value);
  if (type == "sigmoid") return node.SetOutput(Sigmoid(x).value);
  if (type == "tanh") return node.SetOutput(Tanh(x).value);
  if (type == "softrelu") return node.SetOutput(frontend::Softplus(x).value);
  if (type == "softsign") return node.SetOutput(frontend::Softsign(x).value);
  if (type == "log_sigmoid") return node.SetOutput(frontend::LogSigmoid(x).value);
  if (type == "mish") return node.SetOutput(frontend::Mish(x).value);
  return node.BadChoice("act_type", type,
                        "relu, sigmoid, tanh, softrelu, softsign, log_sigmoid or mish");
}

// gamma: [C] for the channels of [N,C,...], or [1].
absl::Status ImportPRelu(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ValueRef slope = node.input(1);
  if (node.rank(1) == 1 && node.rank(0) > 1) {
    Shape shape(static_cast<size_t>(node.rank(0) - 1), 1);
    shape[0] = slope->type.shape[0];
    ASSIGN_OR_RETURN(slope, node.Reshaped(slope, std::move(shape)));
  }
  const Term x(node, node.input(0));
  return node.SetOutput(frontend::LeakyRelu(x, Term(node, slope)).value);
}

absl::Status ImportLeakyRelu(NodeImporter& node) {
  ASSIGN_OR_RETURN(const std::string type, node.StringOr("act_type", "leaky"));
  if (type == "prelu") return ImportPRelu(node);
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  const Term x(node, node.input(0));
  ASSIGN_OR_RETURN(const double slope, node.FloatOr("slope", 0.25));
  if (type == "leaky") return node.SetOutput(frontend::LeakyRelu(x, slope).value);
  if (type == "elu") return node.SetOutput(frontend::Elu(x, slope, 1).value);
  if (type == "selu") return node.SetOutput(Apply("Selu", x).value);
  if (type == "gelu") return node.SetOutput(frontend::Gelu(x).value);
  if (type == "rrelu") {  // random while training, its middle at inference
    ASSIGN_OR_RETURN(const double low, node.FloatOr("lower_bound", 0.125));
    ASSIGN_OR_RETURN(const double high, node.FloatOr("upper_bound", 0.334));
    return node.SetOutput(frontend::LeakyRelu(x, (low + high) / 2).value);
  }
  return node.BadChoice("act_type", type, "leaky, prelu, elu, selu, gelu or rrelu");
}

absl::Status ImportHardSigmoid(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const double alpha, node.FloatOr("alpha", 0.2));
  ASSIGN_OR_RETURN(const double beta, node.FloatOr("beta", 0.5));
  const Term x(node, node.input(0));
  return node.SetOutput(frontend::HardUnit(x * alpha + beta).value);
}

// softmax, log_softmax, softmin: sign is that of the operand.
absl::Status SoftmaxOf(NodeImporter& node, Op op, double sign) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 2));
  ASSIGN_OR_RETURN(const bool has_lengths, node.BoolOr("use_length", false));
  if (has_lengths || node.has(1)) {
    return node.FailMode("it takes the lengths of the rows as an operand", "pad in advance");
  }
  ASSIGN_OR_RETURN(const int64_t axis, node.AxisOr("axis", -1));
  ASSIGN_OR_RETURN(const double temperature, node.FloatOr("temperature", 1));
  if (!(temperature > 0)) {
    return node.FailMode(absl::StrCat("a temperature of ", temperature), "use one above 0");
  }
  const Term x = Term(node, node.input(0)) * (sign / temperature);
  RETURN_IF_ERROR(x.value.status());
  return node.EmitOutput(NameOf(op), {*x.value}, {{"axis", axis}});
}
absl::Status ImportSoftmax(NodeImporter& node) { return SoftmaxOf(node, Op::kSoftmax, 1); }
absl::Status ImportLogSoftmax(NodeImporter& node) { return SoftmaxOf(node, Op::kLogSoftmax, 1); }
absl::Status ImportSoftmin(NodeImporter& node) { return SoftmaxOf(node, Op::kSoftmax, -1); }

// Over all of an item at once.
absl::Status SoftmaxOfItems(NodeImporter& node) {
  const Shape shape = node.shape(0);
  if (shape.empty() || shape[0] == 0) {
    return absl::InvalidArgumentError("the operand has no items");
  }
  ASSIGN_OR_RETURN(ValueRef y, node.Reshaped(node.input(0),
                                             {shape[0], node.type(0).element_count() / shape[0]}));
  ASSIGN_OR_RETURN(y, node.Emit("Softmax", {y}, {{"axis", int64_t{1}}}));
  return node.SetOutput(node.Reshaped(y, shape));
}

absl::Status SoftmaxOfChannels(NodeImporter& node) {
  if (node.rank(0) < 2) return absl::InvalidArgumentError("the operand has no channels");
  return node.EmitOutput("Softmax", {node.input(0)}, {{"axis", int64_t{1}}});
}

absl::Status ImportSoftmaxOutput(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const bool multi_output, node.BoolOr("multi_output", false));
  ASSIGN_OR_RETURN(const bool preserve_shape, node.BoolOr("preserve_shape", false));
  if (multi_output) return SoftmaxOfChannels(node);
  if (!preserve_shape) return SoftmaxOfItems(node);
  return node.EmitOutput("Softmax", {node.input(0)}, {{"axis", node.rank(0) - 1}});
}

absl::Status ImportSoftmaxActivation(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const std::string mode, node.StringOr("mode", "instance"));
  if (mode == "channel") return SoftmaxOfChannels(node);
  if (mode == "instance") return SoftmaxOfItems(node);
  return node.BadChoice("mode", mode, "channel or instance");
}

constexpr ImportRule kActivationRules[] = {
    {"Activation", ImportActivation},
    {"LeakyReLU", ImportLeakyRelu, 1},
    {"Softmax", ImportSoftmaxOutput, 1 << 20, 1},
    {"SoftmaxActivation", ImportSoftmaxActivation},
    {"SoftmaxOutput", ImportSoftmaxOutput, 1 << 20, 1},
    {"hard_sigmoid", ImportHardSigmoid},
    {"log_softmax", ImportLogSoftmax},
    {"relu", Plain<Op::kRelu>},
    {"sigmoid", Plain<Op::kSigmoid>},
    {"softmax", ImportSoftmax},
    {"softmin", ImportSoftmin},
    {"softsign", ImportFormula<frontend::Softsign>},
    {"tanh", Plain<Op::kTanh>},
};

}  // namespace

absl::Span<const ImportRule> ActivationRules() { return kActivationRules; }

}  // namespace npuc::mxnet
