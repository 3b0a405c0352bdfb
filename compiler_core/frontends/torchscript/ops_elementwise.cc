// Arithmetic, element by element.
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/activations.h"
#include "compiler_core/frontends/common/evaluator.h"
#include "compiler_core/frontends/common/selection.h"
#include "compiler_core/frontends/torchscript/op_call.h"
#include "compiler_core/frontends/torchscript/torch_type.h"
#include "compiler_core/frontends/torchscript/truth.h"

namespace npuc::pt {
namespace {

struct Operands {
  ValueRef a;
  ValueRef b;
};

// Arguments 0 and 1, of which one may be a number.
absl::StatusOr<Operands> TwoOperands(OpCall& call) {
  Operands operands;
  if (call.arg(0).IsNumber()) {
    ASSIGN_OR_RETURN(operands.b, call.TensorArg(1));
    ASSIGN_OR_RETURN(operands.a, call.TensorOrNumber(0, operands.b));
    return operands;
  }
  ASSIGN_OR_RETURN(operands.a, call.TensorArg(0));
  ASSIGN_OR_RETURN(operands.b, call.TensorOrNumber(1, operands.a));
  return operands;
}

absl::StatusOr<ScriptValue> BinaryResult(OpCall& call, absl::string_view op, ValueRef a,
                                         ValueRef b) {
  ASSIGN_OR_RETURN(ValueRef value, call.Emit(op, {std::move(a), std::move(b)}));
  return call.Result(std::move(value));
}

// A sum of booleans is a boolean, as their product is.
absl::StatusOr<ScriptValue> LogicResult(OpCall& call, absl::string_view op, const Operands& o) {
  ASSIGN_OR_RETURN(const ValueRef a, Truth(call, o.a));
  ASSIGN_OR_RETURN(const ValueRef b, Truth(call, o.b));
  return call.Result(AsFloats(call, frontend::ComputedBinary(call, op, a, b)));
}

// a + alpha * b, a - alpha * b.
absl::StatusOr<ScriptValue> AddOrSub(OpCall& call, absl::string_view op) {
  ASSIGN_OR_RETURN(Operands operands, TwoOperands(call));
  ASSIGN_OR_RETURN(const double alpha, call.FloatOr(2, 1.0));
  if (op == "Add" && alpha == 1.0 && IsTruth(operands.a) && IsTruth(operands.b)) {
    return LogicResult(call, "LogicalOr", operands);
  }
  if (alpha != 1.0) {
    ASSIGN_OR_RETURN(operands.b, call.Emit("Mul", {operands.b, call.Scalar(alpha)}));
  }
  return BinaryResult(call, op, std::move(operands.a), std::move(operands.b));
}
absl::StatusOr<ScriptValue> ImportAdd(OpCall& call) { return AddOrSub(call, "Add"); }
absl::StatusOr<ScriptValue> ImportSub(OpCall& call) { return AddOrSub(call, "Sub"); }

// What optimize_for_mobile makes of an addition and a relu behind it.
absl::StatusOr<ScriptValue> ImportAddRelu(OpCall& call) {
  ASSIGN_OR_RETURN(const ScriptValue sum, AddOrSub(call, "Add"));
  ASSIGN_OR_RETURN(const ValueRef value, call.Read(sum.tensor));
  ASSIGN_OR_RETURN(ValueRef y, call.Emit("Relu", {value}));
  return call.Result(std::move(y));
}

// other - alpha * self
absl::StatusOr<ScriptValue> ImportRsub(OpCall& call) {
  ASSIGN_OR_RETURN(ValueRef self, call.TensorArg(0));
  ASSIGN_OR_RETURN(ValueRef other, call.TensorOrNumber(1, self));
  ASSIGN_OR_RETURN(const double alpha, call.FloatOr(2, 1.0));
  if (alpha != 1.0) {
    ASSIGN_OR_RETURN(self, call.Emit("Mul", {self, call.Scalar(alpha)}));
  }
  return BinaryResult(call, "Sub", std::move(other), std::move(self));
}

absl::StatusOr<ScriptValue> ImportMul(OpCall& call) {
  ASSIGN_OR_RETURN(Operands operands, TwoOperands(call));
  const bool are_known = operands.a->constant.has_value() && operands.b->constant.has_value();
  if (are_known && IsTruth(operands.a) && IsTruth(operands.b)) {
    return LogicResult(call, "LogicalAnd", operands);
  }
  return BinaryResult(call, "Mul", std::move(operands.a), std::move(operands.b));
}

bool IsConstantInteger(const ValueRef& value) {
  return value->constant.has_value() && !IsFloat(value->type.dtype);
}

// Comparisons, roundings, integer divisions: values that mostly exist at compile time alone.
absl::StatusOr<ScriptValue> Evaluated(OpCall& call, absl::string_view op, const Operands& o) {
  const bool known = o.a->constant.has_value() && (o.b == nullptr || o.b->constant.has_value());
  if (!known) {
    ASSIGN_OR_RETURN(ValueRef computed, ComputedAtRunTime(call, op, o.a, o.b));
    if (computed != nullptr) return call.Result(std::move(computed));
  }
  if (!known) {
    return call.Fail(
        DiagnosticKind::kUnsupportedOperator,
        absl::StrCat("torch.", call.name(), " of run-time data has no command on the core"),
        "compute it from shapes and constants, or outside of the model");
  }
  const Tensor* const b = o.b == nullptr ? nullptr : &*o.b->constant;
  // Scalars and shapes keep torch's types, and integers that wrap.
  if (std::optional<Tensor> small = EvaluateSmall(op, *o.a->constant, b)) {
    return call.Result(call.MakeConstant(*std::move(small)));
  }
  ASSIGN_OR_RETURN(Tensor value, EvaluatedNow(op, *o.a->constant, b));
  return call.Result(call.MakeConstant(std::move(value)));
}

absl::StatusOr<ScriptValue> ImportDiv(OpCall& call) {
  ASSIGN_OR_RETURN(Operands operands, TwoOperands(call));
  ASSIGN_OR_RETURN(const std::string mode, call.StringOr(2, ""));
  if (mode == "floor") return Evaluated(call, "floor_divide", operands);
  if (mode == "trunc" && IsConstantInteger(operands.a) && IsConstantInteger(operands.b)) {
    ASSIGN_OR_RETURN(Tensor quotient,
                     EvaluateBinary("TruncateDiv", CastTensor(*operands.a->constant, DType::kInt64),
                                    CastTensor(*operands.b->constant, DType::kInt64)));
    return call.Result(call.MakeConstant(std::move(quotient)));
  }
  if (mode == "trunc") {
    ASSIGN_OR_RETURN(operands.a, call.Emit("Div", {operands.a, operands.b}));
    operands.b = nullptr;
    return Evaluated(call, "trunc", operands);
  }
  return BinaryResult(call, "Div", std::move(operands.a), std::move(operands.b));
}

absl::StatusOr<ScriptValue> ImportEvaluatedBinary(OpCall& call) {
  ASSIGN_OR_RETURN(const Operands operands, TwoOperands(call));
  return Evaluated(call, call.name() == "floordiv" ? "floor_divide" : call.name(), operands);
}
absl::StatusOr<ScriptValue> ImportWave(OpCall& call) {  // sin, cos
  ASSIGN_OR_RETURN(const ValueRef a, call.TensorArg(0));
  return Evaluated(call, call.name(), {a, nullptr});
}
absl::StatusOr<ScriptValue> ImportRounding(OpCall& call) {
  ASSIGN_OR_RETURN(ValueRef a, call.TensorArg(0));
  if (IsConstantInteger(a)) return call.Result(a);
  const bool has_decimals = call.name() == "round";
  ASSIGN_OR_RETURN(const int64_t decimals, has_decimals ? call.IntOr(1, 0) : int64_t{0});
  if (decimals == 0) return Evaluated(call, call.name(), {a, nullptr});
  const ValueRef scale = call.Scalar(std::pow(10.0, static_cast<double>(decimals)));
  ASSIGN_OR_RETURN(a, call.Emit("Mul", {a, scale}));
  ASSIGN_OR_RETURN(const ValueRef rounded, frontend::ComputedUnary(call, "Round", a));
  return call.Result(call.Emit("Div", {rounded, scale}));
}

template <Op kOp>
absl::StatusOr<ScriptValue> ImportUnary(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  return call.Result(call.Emit(npuc::NameOf(kOp), {x}));
}

constexpr double kMaxMultipliedPower = 8;

// Whole powers by multiplication, so that negative numbers keep their sign; roots by their units.
absl::StatusOr<ValueRef> Power(OpCall& call, const ValueRef& x, double exponent) {
  if (exponent == 0.5) return call.Emit("Sqrt", {x});
  if (exponent == -0.5) return call.Emit("Rsqrt", {x});
  if (exponent == -1) return call.Emit("Reciprocal", {x});
  if (exponent == 1) return x;
  if (exponent == 2) return call.Emit("Square", {x});
  if (exponent < 2 || exponent > kMaxMultipliedPower || exponent != std::floor(exponent)) {
    return call.Emit("Pow", {x, call.Scalar(exponent)});
  }
  const int times = static_cast<int>(exponent);
  const int half = times / 2;
  ASSIGN_OR_RETURN(ValueRef power, Power(call, x, half));
  ASSIGN_OR_RETURN(power, call.Emit("Square", {power}));
  if (times % 2 == 0) return power;
  return call.Emit("Mul", {power, x});
}

absl::StatusOr<ScriptValue> ImportPow(OpCall& call) {
  ASSIGN_OR_RETURN(const Operands operands, TwoOperands(call));
  const ValueRef& exponent = operands.b;
  if (exponent->constant.has_value() && exponent->type.element_count() == 1 &&
      !operands.a->constant.has_value()) {
    ASSIGN_OR_RETURN(ValueRef value, Power(call, operands.a, exponent->constant->at(0)));
    return call.Result(std::move(value));
  }
  return BinaryResult(call, "Pow", operands.a, operands.b);
}

// self + value * a op b
absl::StatusOr<ScriptValue> ImportAddc(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef self, call.TensorArg(0));
  ASSIGN_OR_RETURN(const ValueRef a, call.TensorArg(1));
  ASSIGN_OR_RETURN(const ValueRef b, call.TensorArg(2));
  ASSIGN_OR_RETURN(const double factor, call.FloatOr(3, 1.0));
  ASSIGN_OR_RETURN(ValueRef term, call.Emit(call.name() == "addcmul" ? "Mul" : "Div", {a, b}));
  if (factor != 1.0) {
    ASSIGN_OR_RETURN(term, call.Emit("Mul", {term, call.Scalar(factor)}));
  }
  return BinaryResult(call, "Add", self, std::move(term));
}

// start + weight * (end - start)
absl::StatusOr<ScriptValue> ImportLerp(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef start, call.TensorArg(0));
  ASSIGN_OR_RETURN(const ValueRef end, call.TensorArg(1));
  ASSIGN_OR_RETURN(const ValueRef weight, call.TensorOrNumber(2, start));
  ASSIGN_OR_RETURN(ValueRef term, call.Emit("Sub", {end, start}));
  ASSIGN_OR_RETURN(term, call.Emit("Mul", {term, weight}));
  return BinaryResult(call, "Add", start, std::move(term));
}

absl::StatusOr<ScriptValue> ImportExtremum(OpCall& call) {
  ASSIGN_OR_RETURN(const Operands operands, TwoOperands(call));
  return BinaryResult(call, call.name() == "minimum" ? "Minimum" : "Maximum", operands.a,
                      operands.b);
}

Term Log2(const Term& x) { return Log(x) * (1 / std::log(2.0)); }
Term Log10(const Term& x) { return Log(x) * (1 / std::log(10.0)); }

// The bounds as a relu where they are one, else as maxima by pooling.
absl::StatusOr<ScriptValue> Clamped(OpCall& call, ValueRef x, std::optional<double> low,
                                    std::optional<double> high, absl::string_view row) {
  if (x->constant.has_value() && !IsFloat(x->type.dtype)) row = "";
  if (low == 0.0 && high == 6.0 && !x->constant.has_value()) {
    ASSIGN_OR_RETURN(x, call.EmitUnder(row, "Relu6", {x}));
    return call.Result(std::move(x));
  }
  if (low.has_value() && *low > -std::numeric_limits<double>::infinity()) {
    if (*low == 0.0 && IsFloat(x->type.dtype)) {
      ASSIGN_OR_RETURN(x, call.EmitUnder(row, "Relu", {x}));
    } else {
      // Rules compare the bound with a whole number.
      const bool is_listed = row == "HardTanh" && !x->constant.has_value();
      const double whole = *low > 0 ? std::ceil(*low) : std::floor(*low);
      AttrMap attrs;
      if (is_listed && std::fabs(whole) < 1e9) {
        attrs = {{"fact_min_val", static_cast<int64_t>(whole)}};
      }
      ASSIGN_OR_RETURN(x, call.EmitUnder(row, "Maximum", {x, call.Scalar(*low)}, std::move(attrs)));
    }
  }
  if (high.has_value() && *high < std::numeric_limits<double>::infinity()) {
    ASSIGN_OR_RETURN(x, call.EmitUnder(row, "Minimum", {x, call.Scalar(*high)}));
  }
  return call.Result(std::move(x));
}

absl::StatusOr<ScriptValue> ImportClamp(OpCall& call) {
  ASSIGN_OR_RETURN(ValueRef x, call.TensorArg(0));
  if (call.IsTensor(1) || call.IsTensor(2)) {
    if (call.name() == "clamp_max") {
      ASSIGN_OR_RETURN(const ValueRef high, call.TensorArg(1));
      return call.Result(call.Emit("Minimum", {x, high}));
    }
    if (call.IsTensor(1)) {
      ASSIGN_OR_RETURN(const ValueRef low, call.TensorArg(1));
      ASSIGN_OR_RETURN(x, call.Emit("Maximum", {x, low}));
    }
    if (call.IsTensor(2)) {
      ASSIGN_OR_RETURN(const ValueRef high, call.TensorArg(2));
      ASSIGN_OR_RETURN(x, call.Emit("Minimum", {x, high}));
    }
    return call.Result(std::move(x));
  }
  std::optional<double> low;
  std::optional<double> high;
  if (call.Has(1)) {
    ASSIGN_OR_RETURN(low, call.FloatOr(1, 0));
  }
  if (call.Has(2)) {
    ASSIGN_OR_RETURN(high, call.FloatOr(2, 0));
  }
  if (call.name() == "clamp_max") std::swap(low, high);
  return Clamped(call, std::move(x), low, high, "");
}

absl::StatusOr<ScriptValue> ImportHardtanh(OpCall& call) {
  ASSIGN_OR_RETURN(ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const double low, call.FloatOr(1, -1));
  ASSIGN_OR_RETURN(const double high, call.FloatOr(2, 1));
  return Clamped(call, std::move(x), low, high, "HardTanh");
}

constexpr OpRule kElementwiseRules[] = {
    {"_add_relu", "self other alpha", ImportAddRelu},
    {"abs", "self", ImportUnary<Op::kAbs>},
    {"absolute", "self", ImportUnary<Op::kAbs>},
    {"add", "self other alpha", ImportAdd},
    {"addcdiv", "self tensor1 tensor2 value", ImportAddc},
    {"addcmul", "self tensor1 tensor2 value", ImportAddc},
    {"ceil", "self", ImportRounding},
    {"cos", "self", ImportWave},
    {"clamp", "self min max", ImportClamp},
    {"clamp_max", "self max", ImportClamp},
    {"clamp_min", "self min", ImportClamp},
    {"clip", "self min max", ImportClamp},
    {"div", "self other rounding_mode", ImportDiv},
    {"divide", "self other rounding_mode", ImportDiv},
    {"eq", "self other", ImportEvaluatedBinary},
    {"erf", "self", ImportFormula<frontend::Erf>},
    {"erfc", "self", ImportFormula<frontend::Erfc>},
    {"exp", "self", ImportUnary<Op::kExp>},
    {"expm1", "self", ImportFormula<frontend::Expm1>},
    {"floor", "self", ImportRounding},
    {"floor_divide", "self other", ImportEvaluatedBinary},
    {"floordiv", "self other", ImportEvaluatedBinary},
    {"ge", "self other", ImportEvaluatedBinary},
    {"gt", "self other", ImportEvaluatedBinary},
    {"hardtanh", "self min_val max_val", ImportHardtanh},
    {"le", "self other", ImportEvaluatedBinary},
    {"lerp", "self end weight", ImportLerp},
    {"log", "self", ImportUnary<Op::kLog>},
    {"log10", "self", ImportFormula<Log10>},
    {"log1p", "self", ImportFormula<frontend::Log1p>},
    {"log2", "self", ImportFormula<Log2>},
    {"lt", "self other", ImportEvaluatedBinary},
    {"maximum", "self other", ImportExtremum},
    {"minimum", "self other", ImportExtremum},
    {"mul", "self other", ImportMul},
    {"multiply", "self other", ImportMul},
    {"ne", "self other", ImportEvaluatedBinary},
    {"neg", "self", ImportUnary<Op::kNeg>},
    {"negative", "self", ImportUnary<Op::kNeg>},
    {"pow", "self exponent", ImportPow},
    {"reciprocal", "self", ImportUnary<Op::kReciprocal>},
    {"relu", "self", ImportUnary<Op::kRelu>},
    {"relu6", "self", ImportUnary<Op::kRelu6>},
    {"remainder", "self other", ImportEvaluatedBinary},
    {"round", "self decimals", ImportRounding},
    {"rsqrt", "self", ImportUnary<Op::kRsqrt>},
    {"rsub", "self other alpha", ImportRsub},
    {"selu", "self", ImportUnary<Op::kSelu>},
    {"sigmoid", "self", ImportUnary<Op::kSigmoid>},
    {"sin", "self", ImportWave},
    {"sqrt", "self", ImportUnary<Op::kSqrt>},
    {"square", "self", ImportUnary<Op::kSquare>},
    {"sub", "self other alpha", ImportSub},
    {"subtract", "self other alpha", ImportSub},
    {"tanh", "self", ImportUnary<Op::kTanh>},
    {"true_divide", "self other", ImportDiv},
    {"trunc", "self", ImportRounding},
};

}  // namespace

absl::Span<const OpRule> ElementwiseRules() { return kElementwiseRules; }

}  // namespace npuc::pt
