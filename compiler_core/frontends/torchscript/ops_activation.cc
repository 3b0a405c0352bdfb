// Activations that are sums and products of those that the unit has.
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/torchscript/layers.h"
#include "compiler_core/frontends/torchscript/op_call.h"

namespace npuc::pt {
namespace {

// The positive part, and the size of the negative part: x = positive - negative.
struct Parts {
  ValueRef positive;
  ValueRef negative;
};
absl::StatusOr<Parts> PartsOf(OpCall& call, const ValueRef& x) {
  Parts parts;
  ASSIGN_OR_RETURN(parts.positive, call.Unary("Relu", x));
  ASSIGN_OR_RETURN(const ValueRef flipped, call.Unary("Neg", x));
  ASSIGN_OR_RETURN(parts.negative, call.Unary("Relu", flipped));
  return parts;
}

absl::StatusOr<ScriptValue> ImportSilu(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(ValueRef y, call.Unary("Sigmoid", x));
  ASSIGN_OR_RETURN(y, call.Binary("Mul", x, y));
  return call.Result(std::move(y));
}

// relu6(x + 3) / 6, times x for hardswish.
absl::StatusOr<ScriptValue> ImportHardSigmoid(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(ValueRef y, call.BinaryScalar("Add", x, 3));
  ASSIGN_OR_RETURN(y, call.Unary("Relu6", y));
  ASSIGN_OR_RETURN(y, call.BinaryScalar("Mul", y, 1.0 / 6));
  if (call.name() == "hardswish") {
    ASSIGN_OR_RETURN(y, call.Binary("Mul", x, y));
  }
  return call.Result(std::move(y));
}

absl::StatusOr<ScriptValue> ImportLeakyRelu(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const double slope, call.FloatOr(1, 0.01));
  ASSIGN_OR_RETURN(const Parts parts, PartsOf(call, x));
  ASSIGN_OR_RETURN(ValueRef y, call.BinaryScalar("Mul", parts.negative, slope));
  ASSIGN_OR_RETURN(y, call.Binary("Sub", parts.positive, y));
  return call.Result(std::move(y));
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
  std::vector<int64_t> to_last;
  std::vector<int64_t> back;
  for (size_t i = 0; i < rank; ++i) {
    const auto axis = static_cast<int64_t>(i);
    const auto last = static_cast<int64_t>(rank) - 1;
    to_last.push_back(i == 0 ? 0 : (axis == last ? 1 : axis + 1));
    back.push_back(i == 0 ? 0 : (axis == 1 ? last : axis - 1));
  }
  if (moves) {
    ASSIGN_OR_RETURN(x, call.Transposed(x, to_last));
  }
  ASSIGN_OR_RETURN(slope, call.Reshaped(slope, count == 1 ? Shape{} : Shape{count}));
  ASSIGN_OR_RETURN(const Parts parts, PartsOf(call, x));
  ASSIGN_OR_RETURN(ValueRef y, call.Binary("Mul", parts.negative, slope));
  ASSIGN_OR_RETURN(y, call.Binary("Sub", parts.positive, y));
  if (moves) {
    ASSIGN_OR_RETURN(y, call.Transposed(y, back));
  }
  return call.Result(std::move(y));
}

// scale * (max(x, 0) + alpha * (exp(min(x, 0) * input_scale) - 1))
absl::StatusOr<ScriptValue> Elu(OpCall& call, double alpha, double scale, double input_scale) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(Parts parts, PartsOf(call, x));
  ASSIGN_OR_RETURN(ValueRef y, call.BinaryScalar("Mul", parts.negative, -input_scale));
  ASSIGN_OR_RETURN(y, call.Unary("Exp", y));
  ASSIGN_OR_RETURN(y, call.BinaryScalar("Sub", y, 1));
  if (alpha * scale != 1) {
    ASSIGN_OR_RETURN(y, call.BinaryScalar("Mul", y, alpha * scale));
  }
  if (scale != 1) {
    ASSIGN_OR_RETURN(parts.positive, call.BinaryScalar("Mul", parts.positive, scale));
  }
  ASSIGN_OR_RETURN(y, call.Binary("Add", parts.positive, y));
  return call.Result(std::move(y));
}

absl::StatusOr<ScriptValue> ImportElu(OpCall& call) {
  ASSIGN_OR_RETURN(const double alpha, call.FloatOr(1, 1));
  ASSIGN_OR_RETURN(const double scale, call.FloatOr(2, 1));
  ASSIGN_OR_RETURN(const double input_scale, call.FloatOr(3, 1));
  return Elu(call, alpha, scale, input_scale);
}

absl::StatusOr<ScriptValue> ImportCelu(OpCall& call) {
  ASSIGN_OR_RETURN(const double alpha, call.FloatOr(1, 1));
  if (alpha == 0) return absl::InvalidArgumentError("celu with alpha 0 is undefined");
  return Elu(call, alpha, 1, 1 / alpha);
}

// log(1 + exp(x)) without overflow: max(x, 0) + log(1 + exp(-|x|)).
absl::StatusOr<ValueRef> Softplus(OpCall& call, ValueRef x, double beta) {
  if (beta != 1) {
    ASSIGN_OR_RETURN(x, call.BinaryScalar("Mul", x, beta));
  }
  ASSIGN_OR_RETURN(const ValueRef positive, call.Unary("Relu", x));
  ASSIGN_OR_RETURN(ValueRef y, call.Unary("Abs", x));
  ASSIGN_OR_RETURN(y, call.Unary("Neg", y));
  ASSIGN_OR_RETURN(y, call.Unary("Exp", y));
  ASSIGN_OR_RETURN(y, call.BinaryScalar("Add", y, 1));
  ASSIGN_OR_RETURN(y, call.Unary("Log", y));
  ASSIGN_OR_RETURN(y, call.Binary("Add", positive, y));
  if (beta == 1) return y;
  return call.BinaryScalar("Mul", y, 1 / beta);
}

// Above the threshold torch gives x itself: what the sum adds there is below fp16's steps.
absl::StatusOr<ScriptValue> ImportSoftplus(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const double beta, call.FloatOr(1, 1));
  ASSIGN_OR_RETURN(const double threshold, call.FloatOr(2, 20));
  if (threshold < 15 || !(beta > 0)) {
    return call.FailMode("beta must be positive and the threshold at least 15",
                         "use the default threshold of 20");
  }
  ASSIGN_OR_RETURN(ValueRef y, Softplus(call, x, beta));
  return call.Result(std::move(y));
}

absl::StatusOr<ScriptValue> ImportLogSigmoid(OpCall& call) {
  ASSIGN_OR_RETURN(ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(x, call.Unary("Neg", x));
  ASSIGN_OR_RETURN(ValueRef y, Softplus(call, x, 1));
  ASSIGN_OR_RETURN(y, call.Unary("Neg", y));
  return call.Result(std::move(y));
}

absl::StatusOr<ScriptValue> ImportMish(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(ValueRef y, Softplus(call, x, 1));
  ASSIGN_OR_RETURN(y, call.Unary("Tanh", y));
  ASSIGN_OR_RETURN(y, call.Binary("Mul", x, y));
  return call.Result(std::move(y));
}

absl::StatusOr<ScriptValue> ImportSoftsign(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(ValueRef y, call.Unary("Abs", x));
  ASSIGN_OR_RETURN(y, call.BinaryScalar("Add", y, 1));
  ASSIGN_OR_RETURN(y, call.Binary("Div", x, y));
  return call.Result(std::move(y));
}

absl::StatusOr<ScriptValue> ImportTanhshrink(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(ValueRef y, call.Unary("Tanh", x));
  ASSIGN_OR_RETURN(y, call.Binary("Sub", x, y));
  return call.Result(std::move(y));
}

// The form by tanh is defined by what the unit has; the exact one needs erf.
absl::StatusOr<ScriptValue> ImportGelu(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const std::string form, call.StringOr(1, "none"));
  if (form != "tanh") return NoErf(call);
  const double factor = std::sqrt(2 / 3.14159265358979323846);
  ASSIGN_OR_RETURN(ValueRef y, call.Unary("Square", x));
  ASSIGN_OR_RETURN(y, call.BinaryScalar("Mul", y, 0.044715 * factor));
  ASSIGN_OR_RETURN(y, call.BinaryScalar("Add", y, factor));
  ASSIGN_OR_RETURN(y, call.Binary("Mul", y, x));
  ASSIGN_OR_RETURN(y, call.Unary("Tanh", y));
  ASSIGN_OR_RETURN(y, call.BinaryScalar("Add", y, 1));
  ASSIGN_OR_RETURN(y, call.BinaryScalar("Mul", y, 0.5));
  ASSIGN_OR_RETURN(y, call.Binary("Mul", y, x));
  return call.Result(std::move(y));
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
  ASSIGN_OR_RETURN(const ValueRef a, call.Sliced(x, axis, 0, half));
  ASSIGN_OR_RETURN(ValueRef b, call.Sliced(x, axis, half, half));
  ASSIGN_OR_RETURN(b, call.Unary("Sigmoid", b));
  ASSIGN_OR_RETURN(b, call.Binary("Mul", a, b));
  return call.Result(std::move(b));
}

absl::StatusOr<ScriptValue> ImportSoftmax(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const int64_t dim, call.Int(1));
  ASSIGN_OR_RETURN(const int64_t axis, call.Axis(dim, static_cast<int64_t>(x->type.shape.size())));
  const bool log = call.name() == "log_softmax" || call.name() == "_log_softmax";
  ASSIGN_OR_RETURN(ValueRef y, call.Emit(log ? "LogSoftmax" : "Softmax", {x}, {{"axis", axis}}));
  return call.Result(std::move(y));
}

// Dropout and its relatives do nothing in inference.
absl::StatusOr<ScriptValue> ImportDropout(OpCall& call) {
  ASSIGN_OR_RETURN(const bool trains, call.BoolOr(2, false));
  ASSIGN_OR_RETURN(const double probability, call.FloatOr(1, 0.5));
  if (trains && probability > 0) {
    return call.FailOnce(DiagnosticKind::kUnsupportedOperatorMode,
                         "dropout runs in training mode: its results are random",
                         "call model.eval() before torch.jit.trace or torch.jit.script");
  }
  if (!call.IsTensor(0)) return call.TensorArg(0).status();
  return call.arg(0);
}

constexpr OpRule kRules[] = {
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
    {"hardsigmoid", "self", ImportHardSigmoid},
    {"hardswish", "self", ImportHardSigmoid},
    {"leaky_relu", "self negative_slope", ImportLeakyRelu},
    {"log_sigmoid", "self", ImportLogSigmoid},
    {"log_softmax", "self dim dtype", ImportSoftmax},
    {"mish", "self", ImportMish},
    {"prelu", "self weight", ImportPrelu},
    {"silu", "self", ImportSilu},
    {"softmax", "self dim dtype", ImportSoftmax},
    {"softplus", "self beta threshold", ImportSoftplus},
    {"softsign", "self", ImportSoftsign},
    {"tanhshrink", "self", ImportTanhshrink},
};

}  // namespace

absl::Status NoErf(OpCall& call) {
  return call.FailOnce(DiagnosticKind::kUnsupportedOperatorMode,
                       "gelu with approximate='none' is defined by erf, which the core lacks",
                       "use torch.nn.GELU(approximate='tanh'), or x * sigmoid(1.702 * x), and "
                       "train with it");
}

absl::Span<const OpRule> ActivationRules() { return kRules; }

}  // namespace npuc::pt
