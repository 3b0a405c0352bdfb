// Element-wise operators: those that the IR has, those that are sums of such, and those that are
// evaluated, most of them on compile-time values alone.
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/evaluator.h"
#include "compiler_core/frontends/common/selection.h"
#include "compiler_core/frontends/tensorflow/node_import.h"

namespace npuc::tf {
namespace {

template <Op kOp>
absl::Status ImportUnary(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  return node.EmitOutput(NameOf(kOp), {node.input(0)});
}

template <Op kOp>
absl::Status ImportBinary(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  return node.EmitOutput(NameOf(kOp), {node.input(0), node.input(1)});
}

// Left to right, as TensorFlow's kernel adds.
absl::Status ImportAddN(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, kMaxInputsPerNode));
  ValueRef sum = node.input(0);
  for (int i = 1; i < node.input_count(); ++i) {
    if (node.shape(i) != sum->type.shape) {
      return absl::InvalidArgumentError(
          absl::StrCat("operand ", i, " is ", TypeToString(node.type(i)), ", operand 0 is ",
                       TypeToString(sum->type), "; all must have one shape"));
    }
    ASSIGN_OR_RETURN(sum, node.Emit("Add", {sum, node.input(i)}));
  }
  return node.SetOutput(std::move(sum));
}

absl::Status ImportEvaluatedUnary(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  if (!node.IsConstant(0)) {
    ASSIGN_OR_RETURN(ValueRef value,
                     frontend::ComputedUnary(node, node.node().op(), node.input(0)));
    if (value != nullptr) return node.SetOutput(std::move(value));
  }
  ASSIGN_OR_RETURN(const Tensor x, node.Constant(0, "operand"));
  return node.SetConstant(EvaluateUnary(node.node().op(), x));
}

absl::Status ImportEvaluatedBinary(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  if (!node.IsConstant(0) || !node.IsConstant(1)) {
    ASSIGN_OR_RETURN(ValueRef value, frontend::ComputedBinary(node, node.node().op(), node.input(0),
                                                              node.input(1)));
    if (value != nullptr) return node.SetOutput(std::move(value));
  }
  ASSIGN_OR_RETURN(const Tensor a, node.Constant(0, "operand"));
  ASSIGN_OR_RETURN(const Tensor b, node.Constant(1, "operand"));
  return node.SetConstant(EvaluateBinary(node.node().op(), a, b));
}

constexpr ImportRule kElementwiseRules[] = {
    {"Abs", ImportUnary<Op::kAbs>},
    {"AccumulateNV2", ImportAddN},
    {"Add", ImportBinary<Op::kAdd>},
    {"AddN", ImportAddN},
    {"AddV2", ImportBinary<Op::kAdd>},
    {"Ceil", ImportEvaluatedUnary},
    {"Div", ImportBinary<Op::kDiv>},
    {"Equal", ImportEvaluatedBinary},
    {"Erf", ImportEvaluatedUnary},
    {"Exp", ImportUnary<Op::kExp>},
    {"Floor", ImportEvaluatedUnary},
    {"FloorDiv", ImportEvaluatedBinary},
    {"FloorMod", ImportEvaluatedBinary},
    {"Greater", ImportEvaluatedBinary},
    {"GreaterEqual", ImportEvaluatedBinary},
    {"Inv", ImportUnary<Op::kReciprocal>},
    {"IsFinite", ImportEvaluatedUnary},
    {"IsInf", ImportEvaluatedUnary},
    {"IsNan", ImportEvaluatedUnary},
    {"Less", ImportEvaluatedBinary},
    {"LessEqual", ImportEvaluatedBinary},
    {"Log", ImportUnary<Op::kLog>},
    {"LogicalAnd", ImportEvaluatedBinary},
    {"LogicalNot", ImportEvaluatedUnary},
    {"LogicalOr", ImportEvaluatedBinary},
    {"LogicalXor", ImportEvaluatedBinary},
    {"Maximum", ImportBinary<Op::kMaximum>},
    {"Minimum", ImportBinary<Op::kMinimum>},
    {"Mul", ImportBinary<Op::kMul>},
    {"Neg", ImportUnary<Op::kNeg>},
    {"NotEqual", ImportEvaluatedBinary},
    {"Pow", ImportBinary<Op::kPow>},
    {"RealDiv", ImportBinary<Op::kDiv>},
    {"Reciprocal", ImportUnary<Op::kReciprocal>},
    {"Relu", ImportUnary<Op::kRelu>},
    {"Relu6", ImportUnary<Op::kRelu6>},
    {"Rint", ImportEvaluatedUnary},
    {"Round", ImportEvaluatedUnary},
    {"Rsqrt", ImportUnary<Op::kRsqrt>},
    {"Selu", ImportUnary<Op::kSelu>},
    {"Sigmoid", ImportUnary<Op::kSigmoid>},
    {"Sign", ImportEvaluatedUnary},
    {"Sqrt", ImportUnary<Op::kSqrt>},
    {"Square", ImportUnary<Op::kSquare>},
    {"SquaredDifference", ImportBinary<Op::kSquaredDifference>},
    {"Sub", ImportBinary<Op::kSub>},
    {"Tanh", ImportUnary<Op::kTanh>},
    {"TruncateDiv", ImportEvaluatedBinary},
    {"TruncateMod", ImportEvaluatedBinary},
};

}  // namespace

absl::Span<const ImportRule> ElementwiseRules() { return kElementwiseRules; }

}  // namespace npuc::tf
