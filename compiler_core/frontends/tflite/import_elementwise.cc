// Element-wise operators and activation functions; quantizing and dequantizing.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/activations.h"
#include "compiler_core/frontends/common/evaluator.h"
#include "compiler_core/frontends/common/fake_quant.h"
#include "compiler_core/frontends/common/selection.h"
#include "compiler_core/frontends/common/shared_rules.h"
#include "compiler_core/frontends/tflite/node_import.h"
#include "npuc/fe/tflite/npuc_tflite_generated.h"

namespace npuc::tflite {
namespace {

// TFLite operators under the evaluator's names.
struct Renamed {
  absl::string_view tflite_op;
  absl::string_view op;
};
constexpr Renamed kRenamed[] = {
    {"CEIL", "Ceil"},
    {"COS", "Cos"},
    {"EQUAL", "Equal"},
    {"FLOOR", "Floor"},
    {"FLOOR_DIV", "FloorDiv"},
    {"FLOOR_MOD", "FloorMod"},
    {"GREATER", "Greater"},
    {"GREATER_EQUAL", "GreaterEqual"},
    {"LESS", "Less"},
    {"LESS_EQUAL", "LessEqual"},
    {"LOGICAL_AND", "LogicalAnd"},
    {"LOGICAL_NOT", "LogicalNot"},
    {"LOGICAL_OR", "LogicalOr"},
    {"NOT_EQUAL", "NotEqual"},
    {"SIGN", "Sign"},
    {"SIN", "Sin"},
};

absl::string_view EvaluatorName(const NodeImporter& node) {
  for (const Renamed& renamed : kRenamed) {
    if (renamed.tflite_op == node.op()) return renamed.op;
  }
  return node.op();
}

template <Op kOp>
absl::Status ImportUnary(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  return node.EmitOutput(NameOf(kOp), {node.input(0)});
}

// The activation of an options table; none where the table is left out, as TFLite takes it.
template <typename T>
int ActivationOf(const T* options) {
  return options == nullptr ? 0 : options->activation();
}

int FusedActivation(const NodeImporter& node) {
  const fe::tflite::Operator& raw = node.raw();
  return std::max(
      {ActivationOf(raw.options_as_AddOptions()), ActivationOf(raw.options_as_SubOptions()),
       ActivationOf(raw.options_as_MulOptions()), ActivationOf(raw.options_as_DivOptions())});
}

template <Op kOp>
absl::Status ImportBinary(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  return node.SetActivated(node.Emit(NameOf(kOp), {node.input(0), node.input(1)}),
                           FusedActivation(node));
}

absl::Status ImportEvaluatedUnary(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  if (!node.IsConstant(0)) {
    ASSIGN_OR_RETURN(ValueRef value,
                     frontend::ComputedUnary(node, EvaluatorName(node), node.input(0)));
    if (value != nullptr) return node.SetOutput(std::move(value));
  }
  ASSIGN_OR_RETURN(const Tensor x, node.KnownOperand(0));
  return node.SetConstant(EvaluateUnary(EvaluatorName(node), x));
}

absl::Status ImportEvaluatedBinary(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  if (!node.IsConstant(0) || !node.IsConstant(1)) {
    ASSIGN_OR_RETURN(ValueRef value, frontend::ComputedBinary(node, EvaluatorName(node),
                                                              node.input(0), node.input(1)));
    if (value != nullptr) return node.SetOutput(std::move(value));
  }
  ASSIGN_OR_RETURN(const Tensor a, node.KnownOperand(0));
  ASSIGN_OR_RETURN(const Tensor b, node.KnownOperand(1));
  return node.SetConstant(EvaluateBinary(EvaluatorName(node), a, b));
}

absl::Status ImportAddN(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, kMaxOperandsPerOperator));
  ValueRef sum = node.input(0);
  for (int i = 1; i < node.input_count(); ++i) {
    if (!node.has(i)) return node.ExpectInputs(node.input_count(), kMaxOperandsPerOperator);
    ASSIGN_OR_RETURN(sum, node.Emit("Add", {sum, node.input(i)}));
  }
  return node.SetOutput(std::move(sum));
}

absl::StatusOr<Term> Operand(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  return Term(node, node.input(0));
}

absl::Status ImportReluN1(NodeImporter& node) {
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  return node.SetOutput(Min(Max(x, -1), 1).value);
}

absl::Status ImportRelu01(NodeImporter& node) {
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  return node.SetOutput(Min(Relu(x), 1).value);
}

absl::Status ImportLeakyRelu(NodeImporter& node) {
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  ASSIGN_OR_RETURN(const auto* options, node.Required(node.raw().options_as_LeakyReluOptions()));
  return node.SetOutput(LeakyRelu(x, options->alpha()).value);
}

absl::Status ImportFakeQuant(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const auto* options, node.Required(node.raw().options_as_FakeQuantOptions()));
  return node.SetOutput(frontend::FakeQuantized(node, node.input(0),
                                                {.min = {options->min()},
                                                 .max = {options->max()},
                                                 .bits = options->num_bits(),
                                                 .narrow_range = options->narrow_range()}));
}

absl::Status ImportPrelu(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  const Term x(node, node.input(0));
  return node.SetOutput(LeakyRelu(x, Term(node, node.input(1))).value);
}

absl::Status ImportElu(NodeImporter& node) {
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  return node.SetOutput(Elu(x, 1, 1).value);
}

absl::Status ImportGelu(NodeImporter& node) {
  ASSIGN_OR_RETURN(const Term x, Operand(node));
  const auto* options = node.raw().options_as_GeluOptions();
  const bool is_approximate = options != nullptr && options->approximate();
  return node.SetOutput(is_approximate ? GeluByPower(x).value : Gelu(x).value);
}

// Operands: a condition, what is taken where it holds, and what is taken elsewhere. Where the
// condition is known: a sum of products with ones and zeros. SELECT also takes a condition for each
// index of the first dimension.
absl::Status ImportSelect(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(3, 3));
  Shape shape = node.shape(0);
  if (node.op() == "SELECT" && shape.size() == 1 && node.rank(1) > 1) {
    shape.resize(node.shape(1).size(), 1);
  }
  if (!node.IsConstant(0)) {
    ASSIGN_OR_RETURN(const ValueRef choice, node.Reshaped(node.input(0), std::move(shape)));
    return node.SetOutput(frontend::Selected(node, choice, node.input(1), node.input(2)));
  }
  ASSIGN_OR_RETURN(Tensor condition, node.Constant(0, "condition"));
  condition = condition.WithShape(std::move(shape));
  Tensor holds = CastTensor(condition, node.type(1).dtype);
  ASSIGN_OR_RETURN(Tensor fails, EvaluateUnary("LogicalNot", condition));
  fails = CastTensor(fails, node.type(1).dtype);
  const Term taken(node, node.Emit("Mul", {node.input(1), node.MakeConstant(std::move(holds))}));
  RETURN_IF_ERROR(taken.value.status());
  const Term other(node, node.Emit("Mul", {node.input(2), node.MakeConstant(std::move(fails))}));
  return node.SetOutput((taken + other).value);
}

// Both only change how a value is stored: the operand is float here, and the result is quantized
// behind the rule where the file says so.
absl::Status ImportQuantize(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  if (!node.output(0).quant.has_value() && !IsFloat(node.type(0).dtype)) {
    return node.FailMode("a result without scales", "convert the model again");
  }
  return node.SetOutput(node.input(0));
}

absl::Status ImportDequantize(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  if (!IsFloat(node.type(0).dtype)) {
    return node.FailMode("an operand without scales", "convert the model again");
  }
  if (node.type(0).dtype == DType::kFloat32) return node.SetOutput(node.input(0));
  return node.SetOutput(node.Converted(node.input(0), DType::kFloat32));
}

// TFLite casts stored integers, whatever they stand for, and truncates floats to them (cast.cc,
// copyCast). A rule's operands and results are real values: those are the integers where the scale
// is 1 and the zero point 0, and the result has room for each.
bool CastsRealValues(const NodeImporter& node) {
  const std::optional<QuantParams>& from = node.operand(0).quant;
  const std::optional<QuantParams>& to = node.output(0).quant;
  const auto is_plain = [](const QuantParams& params) {
    return std::all_of(params.scale.begin(), params.scale.end(), [](double s) { return s == 1; }) &&
           std::all_of(params.zero_point.begin(), params.zero_point.end(),
                       [](int64_t z) { return z == 0; });
  };
  if (!from.has_value()) return !to.has_value();
  if (!is_plain(*from)) return false;
  if (to.has_value()) return is_plain(*to) && to->dtype == from->dtype;
  const DType dtype = node.output(0).type.dtype;
  return IsFloat(dtype) || dtype == DType::kBool || dtype == DType::kInt32 ||
         dtype == DType::kInt64;
}

absl::Status ImportCast(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  const DType dtype = node.output(0).type.dtype;
  if (dtype == DType::kInvalid) {
    return node.FailMode(absl::StrCat("a cast to ", ElementTypeName(node.output(0).element_type)),
                         "cast to another type");
  }
  if (!CastsRealValues(node)) {
    return node.FailMode("a cast of integers that have a scale or a zero point",
                         "use QUANTIZE or DEQUANTIZE, which keep real values, in its place");
  }
  if (node.output(0).quant.has_value() || node.type(0).dtype == dtype) {
    return node.SetOutput(node.input(0));
  }
  if (node.IsConstant(0)) return node.SetOutput(node.Converted(node.input(0), dtype));
  return node.EmitOutput("Cast", {node.input(0)}, {{"dtype", std::string(NameOf(dtype))}});
}

constexpr ImportRule kElementwiseRules[] = {
    {"ABS", ImportUnary<Op::kAbs>},
    {"ADD", ImportBinary<Op::kAdd>},
    {"ADD_N", ImportAddN},
    {"CAST", ImportCast},
    {"CEIL", ImportEvaluatedUnary},
    {"COS", ImportEvaluatedUnary},
    {"DEQUANTIZE", ImportDequantize},
    {"DIV", ImportBinary<Op::kDiv>},
    {"ELU", ImportElu},
    {"EQUAL", ImportEvaluatedBinary},
    {"EXP", ImportUnary<Op::kExp>},
    {"FAKE_QUANT", ImportFakeQuant},
    {"FLOOR", ImportEvaluatedUnary},
    {"FLOOR_DIV", ImportEvaluatedBinary},
    {"FLOOR_MOD", ImportEvaluatedBinary},
    {"GELU", ImportGelu},
    {"GREATER", ImportEvaluatedBinary},
    {"GREATER_EQUAL", ImportEvaluatedBinary},
    {"HARD_SWISH", frontend::ImportFormula<frontend::HardSwish>},
    {"LEAKY_RELU", ImportLeakyRelu},
    {"LESS", ImportEvaluatedBinary},
    {"LESS_EQUAL", ImportEvaluatedBinary},
    {"LOG", ImportUnary<Op::kLog>},
    {"LOGICAL_AND", ImportEvaluatedBinary},
    {"LOGICAL_NOT", ImportEvaluatedUnary},
    {"LOGICAL_OR", ImportEvaluatedBinary},
    {"LOGISTIC", ImportUnary<Op::kSigmoid>},
    {"MAXIMUM", ImportBinary<Op::kMaximum>},
    {"MINIMUM", ImportBinary<Op::kMinimum>},
    {"MUL", ImportBinary<Op::kMul>},
    {"NEG", ImportUnary<Op::kNeg>},
    {"NOT_EQUAL", ImportEvaluatedBinary},
    {"POW", ImportBinary<Op::kPow>},
    {"PRELU", ImportPrelu},
    {"QUANTIZE", ImportQuantize},
    {"RELU", ImportUnary<Op::kRelu>},
    {"RELU6", ImportUnary<Op::kRelu6>},
    {"RELU_0_TO_1", ImportRelu01},
    {"RELU_N1_TO_1", ImportReluN1},
    {"ROUND", ImportUnary<Op::kRound>},
    {"RSQRT", ImportUnary<Op::kRsqrt>},
    {"SELECT", ImportSelect},
    {"SELECT_V2", ImportSelect},
    {"SIGN", ImportEvaluatedUnary},
    {"SIN", ImportEvaluatedUnary},
    {"SQRT", ImportUnary<Op::kSqrt>},
    {"SQUARE", ImportUnary<Op::kSquare>},
    {"SQUARED_DIFFERENCE", ImportBinary<Op::kSquaredDifference>},
    {"SUB", ImportBinary<Op::kSub>},
    {"TANH", ImportUnary<Op::kTanh>},
};

}  // namespace

absl::Span<const ImportRule> ElementwiseRules() { return kElementwiseRules; }

}  // namespace npuc::tflite
