// Activations that are sums and products of those that the unit has.
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/activations.h"
#include "compiler_core/frontends/torchscript/layers.h"
#include "compiler_core/frontends/torchscript/layout.h"
#include "compiler_core/frontends/torchscript/op_call.h"

namespace npuc::pt {
namespace {

absl::StatusOr<ScriptValue> ImportLeakyRelu(OpCall& call) {
  const Term x(call, call.TensorArg(0));
  ASSIGN_OR_RETURN(const double slope, call.FloatOr(1, 0.01));
  return call.Result(LeakyRelu(x, slope).value);
}

// A slope of its own for each channel, which is dimension 1.
absl::StatusOr<ScriptValue> ImportPrelu(OpCall& call) {
  ASSIGN_OR_RETURN(ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(ValueRef slope, call.TensorArg(1));
  call.set_row("PRelu");
  const size_t rank = x->type.shape.size();
  const int64_t count = slope->type.element_count();
  const bool moves = count > 1 && rank > 2;
  if (count > 1 && (rank < 2 || x->type.shape[1] != count)) {
    return absl::InvalidArgumentError(
        absl::StrCat(count, " slopes do not fit ", TypeToString(x->type)));
  }
  if (moves) {
    ASSIGN_OR_RETURN(x, ChannelsToLast(call, x));
  }
  ASSIGN_OR_RETURN(slope, call.Reshaped(slope, count == 1 ? Shape{} : Shape{count}));
  ASSIGN_OR_RETURN(ValueRef y, LeakyRelu(Term(call, x), Term(call, slope)).value);
  if (moves) {
    ASSIGN_OR_RETURN(y, ChannelsFromLast(call, y));
  }
  return call.Result(std::move(y));
}

absl::StatusOr<ScriptValue> ImportElu(OpCall& call) {
  const Term x(call, call.TensorArg(0));
  ASSIGN_OR_RETURN(const double alpha, call.FloatOr(1, 1));
  ASSIGN_OR_RETURN(const double scale, call.FloatOr(2, 1));
  ASSIGN_OR_RETURN(const double input_scale, call.FloatOr(3, 1));
  return call.Result(ScaledElu(x, alpha, scale, input_scale).value);
}

absl::StatusOr<ScriptValue> ImportCelu(OpCall& call) {
  const Term x(call, call.TensorArg(0));
  ASSIGN_OR_RETURN(const double alpha, call.FloatOr(1, 1));
  if (alpha == 0) return absl::InvalidArgumentError("celu with alpha 0 is undefined");
  return call.Result(ScaledElu(x, alpha, 1, 1 / alpha).value);
}

// Above the threshold torch gives x itself: what the sum adds there is below fp16's steps.
absl::StatusOr<ScriptValue> ImportSoftplus(OpCall& call) {
  const Term x(call, call.TensorArg(0));
  ASSIGN_OR_RETURN(const double beta, call.FloatOr(1, 1));
  ASSIGN_OR_RETURN(const double threshold, call.FloatOr(2, 20));
  if (threshold < 15 || !(beta > 0)) {
    return call.FailMode("beta must be positive and the threshold at least 15",
                         "use the default threshold of 20");
  }
  return call.Result((Softplus(x * beta) * (1 / beta)).value);
}

absl::StatusOr<ScriptValue> ImportGelu(OpCall& call) {
  const Term x(call, call.TensorArg(0));
  ASSIGN_OR_RETURN(const std::string form, call.StringOr(1, "none"));
  return call.Result((form == "tanh" ? GeluBySquare(x) : Gelu(x)).value);
}

// a * sigmoid(b), a and b the halves along one dimension.
absl::StatusOr<ScriptValue> ImportGlu(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const int64_t dim, call.IntOr(1, -1));
  const Shape& shape = x->type.shape;
  ASSIGN_OR_RETURN(const int64_t axis, call.Axis(dim, static_cast<int64_t>(shape.size())));
  if (shape.empty() || shape[axis] % 2 != 0) {
    return absl::InvalidArgumentError("the dimension does not split into halves");
  }
  const int64_t half = shape[axis] / 2;
  const Term a(call, call.Sliced(x, axis, 0, half));
  const Term b(call, call.Sliced(x, axis, half, half));
  return call.Result((a * Sigmoid(b)).value);
}

absl::StatusOr<ScriptValue> ImportSoftmax(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const int64_t dim, call.Int(1));
  ASSIGN_OR_RETURN(const int64_t axis, call.Axis(dim, static_cast<int64_t>(x->type.shape.size())));
  const bool log = call.name() == "log_softmax" || call.name() == "_log_softmax";
  return call.Result(call.Emit(log ? "LogSoftmax" : "Softmax", {x}, {{"axis", axis}}));
}

// Dropout and its relatives do nothing in inference.
absl::StatusOr<ScriptValue> ImportDropout(OpCall& call) {
  ASSIGN_OR_RETURN(const bool trains, call.BoolOr(2, false));
  ASSIGN_OR_RETURN(const double probability, call.FloatOr(1, 0.5));
  if (trains && probability > 0 && call.state().reported.insert("dropout").second) {
    call.state().AddError(DiagnosticKind::kTorchInTraining, call.source(),
                          "dropout is in training mode, where its results are random; it is left "
                          "out, as in evaluation mode",
                          "call model.eval() before torch.jit.trace or torch.jit.script");
  }
  if (!call.IsTensor(0)) return call.TensorArg(0).status();
  return call.arg(0);
}

constexpr OpRule kActivationRules[] = {
    {"_log_softmax", "self dim half_to_float", ImportSoftmax},
    {"_softmax", "self dim half_to_float", ImportSoftmax},
    {"alpha_dropout", "input p train", ImportDropout},
    {"celu", "self alpha", ImportCelu},
    {"dropout", "input p train", ImportDropout},
    {"elu", "self alpha scale input_scale", ImportElu},
    {"feature_alpha_dropout", "input p train", ImportDropout},
    {"feature_dropout", "input p train", ImportDropout},
    {"gelu", "self approximate", ImportGelu},
    {"glu", "self dim", ImportGlu},
    {"hardsigmoid", "self", ImportFormula<frontend::HardSigmoid>},
    {"hardswish", "self", ImportFormula<frontend::HardSwish>},
    {"leaky_relu", "self negative_slope", ImportLeakyRelu},
    {"log_sigmoid", "self", ImportFormula<frontend::LogSigmoid>},
    {"log_softmax", "self dim dtype", ImportSoftmax},
    {"mish", "self", ImportFormula<frontend::Mish>},
    {"prelu", "self weight", ImportPrelu},
    {"silu", "self", ImportFormula<frontend::Silu>},
    {"softmax", "self dim dtype", ImportSoftmax},
    {"softplus", "self beta threshold", ImportSoftplus},
    {"softsign", "self", ImportFormula<frontend::Softsign>},
    {"tanhshrink", "self", ImportFormula<frontend::Tanhshrink>},
};

}  // namespace

absl::Span<const OpRule> ActivationRules() { return kActivationRules; }

}  // namespace npuc::pt
