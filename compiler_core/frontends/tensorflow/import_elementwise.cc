// Element-wise operators: those that the IR has, those that are sums of such, and those that are
// evaluated, most of them on compile-time values alone.
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/evaluator.h"
#include "compiler_core/frontends/common/fake_quant.h"
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
  ASSIGN_OR_RETURN(const Tensor x, node.KnownOperand(0));
  return node.SetConstant(EvaluateUnary(node.node().op(), x));
}

absl::Status ImportEvaluatedBinary(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  if (!node.IsConstant(0) || !node.IsConstant(1)) {
    ASSIGN_OR_RETURN(ValueRef value, frontend::ComputedBinary(node, node.node().op(), node.input(0),
                                                              node.input(1)));
    if (value != nullptr) return node.SetOutput(std::move(value));
  }
  ASSIGN_OR_RETURN(const Tensor a, node.KnownOperand(0));
  ASSIGN_OR_RETURN(const Tensor b, node.KnownOperand(1));
  return node.SetConstant(EvaluateBinary(node.node().op(), a, b));
}

// Models that were trained for quantization: weights and activations keep their ranges.
absl::Status SetFakeQuantized(NodeImporter& node, frontend::FakeQuantRange range) {
  ASSIGN_OR_RETURN(range.bits, node.IntOr("num_bits", 8));
  ASSIGN_OR_RETURN(range.narrow_range, node.BoolOr("narrow_range", false));
  node.SetRewritten();
  return node.SetOutput(frontend::FakeQuantized(node, node.input(0), range));
}

absl::Status ImportFakeQuantArgs(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const double min, node.FloatOr("min", -6));
  ASSIGN_OR_RETURN(const double max, node.FloatOr("max", 6));
  return SetFakeQuantized(node, {{min}, {max}});
}

// Operands: value, min, max.
absl::Status ImportFakeQuantVars(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(3, 3));
  ASSIGN_OR_RETURN(const double min, node.ConstantFloat(1, "min"));
  ASSIGN_OR_RETURN(const double max, node.ConstantFloat(2, "max"));
  return SetFakeQuantized(node, {{min}, {max}});
}

// One range for each position of the last dimension.
absl::Status ImportFakeQuantChannels(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(3, 3));
  frontend::FakeQuantRange range;
  range.axis = static_cast<int>(node.rank(0)) - 1;
  ASSIGN_OR_RETURN(range.min, node.ConstantFloats(1, "min"));
  ASSIGN_OR_RETURN(range.max, node.ConstantFloats(2, "max"));
  const size_t channels = range.axis < 0 ? 0 : static_cast<size_t>(node.shape(0).back());
  if (channels == 0 || range.min.size() != channels || range.max.size() != channels) {
    return absl::InvalidArgumentError("min and max are not as long as the last dimension");
  }
  return SetFakeQuantized(node, std::move(range));
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
    {"FakeQuantWithMinMaxArgs", ImportFakeQuantArgs},
    {"FakeQuantWithMinMaxVars", ImportFakeQuantVars},
    {"FakeQuantWithMinMaxVarsPerChannel", ImportFakeQuantChannels},
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
