// Element-wise operators: those that the IR has, and those that are evaluated, most of them on
// compile-time values alone.
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/evaluator.h"
#include "compiler_core/frontends/common/selection.h"
#include "compiler_core/frontends/onnx/node_import.h"

namespace npuc::onnx {
namespace {

// ONNX operators under the evaluator's names.
struct Renamed {
  absl::string_view onnx_op;
  absl::string_view op;
};
constexpr Renamed kRenamed[] = {
    {"And", "LogicalAnd"}, {"GreaterOrEqual", "GreaterEqual"},
    {"IsNaN", "IsNan"},    {"LessOrEqual", "LessEqual"},
    {"Not", "LogicalNot"}, {"Or", "LogicalOr"},
    {"Xor", "LogicalXor"},
};

absl::string_view EvaluatorName(absl::string_view onnx_op) {
  for (const Renamed& renamed : kRenamed) {
    if (renamed.onnx_op == onnx_op) return renamed.op;
  }
  return onnx_op;
}

template <Op kOp>
absl::Status ImportUnary(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  return node.EmitOutput(NameOf(kOp), {node.input(0)});
}

// The second operand. Before operator set 7 it was stretched only where attribute 'broadcast' said
// so, along the dimensions from 'axis' on.
absl::StatusOr<ValueRef> SecondOperand(NodeImporter& node) {
  if (node.opset() >= 7 || !node.node().HasAttr("axis")) return node.input(1);
  ASSIGN_OR_RETURN(int64_t axis, node.IntOr("axis", 0));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0)));
  Shape shape = node.shape(1);
  const int64_t trailing = node.rank(0) - axis - static_cast<int64_t>(shape.size());
  for (int64_t i = 0; i < trailing; ++i) shape.push_back(1);
  return node.Reshaped(node.input(1), std::move(shape));
}

template <Op kOp>
absl::Status ImportBinary(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const ValueRef b, SecondOperand(node));
  return node.EmitOutput(NameOf(kOp), {node.input(0), b});
}

// It may add the bias in the chain in which a quantizer computes a product in integers.
absl::Status ImportAdd(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const ValueRef b, SecondOperand(node));
  ASSIGN_OR_RETURN(const ValueRef sum, node.Emit("Add", {node.input(0), b}));
  node.products().SetSum(node.input(0), b, sum);
  return node.SetOutput(sum);
}

// It may end the chain in which a quantizer computes a product in integers.
absl::Status ImportMul(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const ValueRef b, SecondOperand(node));
  std::optional<absl::StatusOr<ValueRef>> real = node.products().Ended(node, node.input(0), b);
  if (real.has_value()) return node.SetOutput(*std::move(real));
  ASSIGN_OR_RETURN(const ValueRef product, node.Emit("Mul", {node.input(0), b}));
  node.products().SetScales(node.input(0), b, product);
  return node.SetOutput(product);
}

// The exponent may be of another type than the base, whose type the result has.
absl::Status ImportPow(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  const DType dtype = node.type(0).dtype;
  ASSIGN_OR_RETURN(ValueRef b, SecondOperand(node));
  const bool in_floats = IsFloat(dtype) || IsFloat(b->type.dtype);
  const DType compute = IsFloat(dtype) || !in_floats ? dtype : b->type.dtype;
  ASSIGN_OR_RETURN(const ValueRef a, node.Converted(node.input(0), compute));
  ASSIGN_OR_RETURN(b, node.Converted(b, compute));
  ASSIGN_OR_RETURN(const ValueRef power, node.Emit("Pow", {a, b}));
  return node.SetOutput(node.Converted(power, dtype));
}

// Left to right, over one operand or more.
absl::StatusOr<ValueRef> Chain(NodeImporter& node, absl::string_view op) {
  RETURN_IF_ERROR(node.ExpectInputs(1, kMaxInputsPerNode));
  ValueRef result = node.input(0);
  for (int i = 1; i < node.input_count(); ++i) {
    if (!node.has(i)) return node.ExpectInputs(node.input_count(), kMaxInputsPerNode);
    ASSIGN_OR_RETURN(result, node.Emit(op, {result, node.input(i)}));
  }
  return result;
}

absl::Status ImportMax(NodeImporter& node) { return node.SetOutput(Chain(node, "Maximum")); }
absl::Status ImportMin(NodeImporter& node) { return node.SetOutput(Chain(node, "Minimum")); }
absl::Status ImportSum(NodeImporter& node) { return node.SetOutput(Chain(node, "Add")); }
absl::Status ImportMean(NodeImporter& node) {
  const Term sum(node, Chain(node, "Add"));
  if (node.input_count() == 1) return node.SetOutput(sum.value);
  return node.SetOutput((sum * (1.0 / node.input_count())).value);
}

absl::Status EvaluatedUnary(NodeImporter& node, absl::string_view op) {
  if (!node.IsConstant(0)) {
    ASSIGN_OR_RETURN(ValueRef value, frontend::ComputedUnary(node, op, node.input(0)));
    if (value != nullptr) return node.SetOutput(std::move(value));
  }
  ASSIGN_OR_RETURN(const Tensor x, node.KnownOperand(0));
  return node.SetConstant(EvaluateUnary(op, x));
}

absl::Status EvaluatedBinary(NodeImporter& node, absl::string_view op) {
  ASSIGN_OR_RETURN(const ValueRef second, SecondOperand(node));
  if (!node.IsConstant(0) || !node.IsConstant(1)) {
    ASSIGN_OR_RETURN(ValueRef value, frontend::ComputedBinary(node, op, node.input(0), second));
    if (value != nullptr) return node.SetOutput(std::move(value));
  }
  ASSIGN_OR_RETURN(const Tensor a, node.KnownOperand(0));
  if (!second->constant.has_value()) return node.KnownOperand(1).status();
  return node.SetConstant(EvaluateBinary(op, a, *second->constant));
}

absl::Status ImportEvaluatedUnary(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  return EvaluatedUnary(node, EvaluatorName(node.op()));
}

absl::Status ImportEvaluatedBinary(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  return EvaluatedBinary(node, EvaluatorName(node.op()));
}

absl::Status ImportIsInf(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const bool positive, node.BoolOr("detect_positive", true));
  ASSIGN_OR_RETURN(const bool negative, node.BoolOr("detect_negative", true));
  if (positive && negative) return EvaluatedUnary(node, "IsInf");
  ASSIGN_OR_RETURN(const Tensor x, node.KnownOperand(0));
  ASSIGN_OR_RETURN(const Tensor infinite, EvaluateUnary("IsInf", x));
  const Tensor zero = CastTensor(Tensor::ScalarFloat(0), x.dtype());
  ASSIGN_OR_RETURN(const Tensor side, EvaluateBinary(positive ? "Greater" : "Less", x, zero));
  ASSIGN_OR_RETURN(Tensor result, EvaluateBinary("LogicalAnd", infinite, side));
  if (!positive && !negative) {
    ASSIGN_OR_RETURN(result,
                     EvaluateBinary("LogicalAnd", result, *EvaluateUnary("LogicalNot", result)));
  }
  return node.SetConstant(std::move(result));
}

absl::Status ImportMod(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const bool fmod, node.BoolOr("fmod", false));
  return EvaluatedBinary(node, fmod ? "TruncateMod" : "FloorMod");
}

absl::Status ImportBitShift(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const std::string direction, node.StringOr("direction", ""));
  if (direction == "LEFT") return EvaluatedBinary(node, "ShiftLeft");
  if (direction == "RIGHT") return EvaluatedBinary(node, "ShiftRight");
  return node.BadAttribute(absl::InvalidArgumentError(absl::StrCat(
      "attribute 'direction' is '", Printable(direction), "'; allowed are LEFT and RIGHT")));
}

constexpr ImportRule kElementwiseRules[] = {
    {"Abs", ImportUnary<Op::kAbs>},
    {"Acos", ImportEvaluatedUnary},
    {"Acosh", ImportEvaluatedUnary},
    {"Add", ImportAdd},
    {"And", ImportEvaluatedBinary},
    {"Asin", ImportEvaluatedUnary},
    {"Asinh", ImportEvaluatedUnary},
    {"Atan", ImportEvaluatedUnary},
    {"Atanh", ImportEvaluatedUnary},
    {"BitShift", ImportBitShift},
    {"BitwiseAnd", ImportEvaluatedBinary},
    {"BitwiseNot", ImportEvaluatedUnary},
    {"BitwiseOr", ImportEvaluatedBinary},
    {"BitwiseXor", ImportEvaluatedBinary},
    {"Ceil", ImportEvaluatedUnary},
    {"Cos", ImportEvaluatedUnary},
    {"Cosh", ImportEvaluatedUnary},
    {"Div", ImportBinary<Op::kDiv>},
    {"Equal", ImportEvaluatedBinary},
    {"Erf", ImportEvaluatedUnary},
    {"Erfc", ImportEvaluatedUnary},  // which tf2onnx leaves as it is
    {"Exp", ImportUnary<Op::kExp>},
    {"Floor", ImportEvaluatedUnary},
    {"Greater", ImportEvaluatedBinary},
    {"GreaterOrEqual", ImportEvaluatedBinary},
    {"IsInf", ImportIsInf},
    {"IsNaN", ImportEvaluatedUnary},
    {"Less", ImportEvaluatedBinary},
    {"LessOrEqual", ImportEvaluatedBinary},
    {"Log", ImportUnary<Op::kLog>},
    {"Max", ImportMax},
    {"Mean", ImportMean},
    {"Min", ImportMin},
    {"Mod", ImportMod},
    {"Mul", ImportMul},
    {"Neg", ImportUnary<Op::kNeg>},
    {"Not", ImportEvaluatedUnary},
    {"Or", ImportEvaluatedBinary},
    {"Pow", ImportPow},
    {"Reciprocal", ImportUnary<Op::kReciprocal>},
    {"Round", ImportUnary<Op::kRound>},
    {"Sign", ImportEvaluatedUnary},
    {"Sin", ImportEvaluatedUnary},
    {"Sinh", ImportEvaluatedUnary},
    {"Sqrt", ImportUnary<Op::kSqrt>},
    {"Sub", ImportBinary<Op::kSub>},
    {"Sum", ImportSum},
    {"Tan", ImportEvaluatedUnary},
    {"Xor", ImportEvaluatedBinary},
};

}  // namespace

absl::Span<const ImportRule> ElementwiseRules() { return kElementwiseRules; }

}  // namespace npuc::onnx
