// Element-wise operators: those that the IR has, those that are sums of such, and those that only
// exist on compile-time values.
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/evaluator.h"
#include "compiler_core/frontends/tensorflow/node_import.h"

namespace npuc::tf {
namespace {

// TensorFlow operators under the IR's names.
struct Renamed {
  absl::string_view tf_op;
  absl::string_view op;
};
constexpr Renamed kRenamed[] = {{"AddV2", "Add"}, {"RealDiv", "Div"}, {"Inv", "Reciprocal"}};

absl::string_view IrName(absl::string_view tf_op) {
  for (const Renamed& renamed : kRenamed) {
    if (renamed.tf_op == tf_op) return renamed.op;
  }
  return tf_op;
}

absl::Status ImportUnary(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  return node.EmitOutput(IrName(node.node().op()), {node.input(0)});
}

absl::Status ImportBinary(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  return node.EmitOutput(IrName(node.node().op()), {node.input(0), node.input(1)});
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
  ASSIGN_OR_RETURN(const Tensor x, node.Constant(0, "operand"));
  return node.SetConstant(EvaluateUnary(node.node().op(), x));
}

absl::Status ImportEvaluatedBinary(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const Tensor a, node.Constant(0, "operand"));
  ASSIGN_OR_RETURN(const Tensor b, node.Constant(1, "operand"));
  return node.SetConstant(EvaluateBinary(node.node().op(), a, b));
}

constexpr ImportRule kRules[] = {
    {"Abs", ImportUnary},
    {"AccumulateNV2", ImportAddN},
    {"Add", ImportBinary},
    {"AddN", ImportAddN},
    {"AddV2", ImportBinary},
    {"Ceil", ImportEvaluatedUnary},
    {"Div", ImportBinary},
    {"Equal", ImportEvaluatedBinary},
    {"Exp", ImportUnary},
    {"Floor", ImportEvaluatedUnary},
    {"FloorDiv", ImportEvaluatedBinary},
    {"FloorMod", ImportEvaluatedBinary},
    {"Greater", ImportEvaluatedBinary},
    {"GreaterEqual", ImportEvaluatedBinary},
    {"Inv", ImportUnary},
    {"IsFinite", ImportEvaluatedUnary},
    {"IsInf", ImportEvaluatedUnary},
    {"IsNan", ImportEvaluatedUnary},
    {"Less", ImportEvaluatedBinary},
    {"LessEqual", ImportEvaluatedBinary},
    {"Log", ImportUnary},
    {"LogicalAnd", ImportEvaluatedBinary},
    {"LogicalNot", ImportEvaluatedUnary},
    {"LogicalOr", ImportEvaluatedBinary},
    {"Maximum", ImportBinary},
    {"Minimum", ImportBinary},
    {"Mul", ImportBinary},
    {"Neg", ImportUnary},
    {"NotEqual", ImportEvaluatedBinary},
    {"Pow", ImportBinary},
    {"RealDiv", ImportBinary},
    {"Reciprocal", ImportUnary},
    {"Relu", ImportUnary},
    {"Relu6", ImportUnary},
    {"Rint", ImportEvaluatedUnary},
    {"Round", ImportEvaluatedUnary},
    {"Rsqrt", ImportUnary},
    {"Selu", ImportUnary},
    {"Sigmoid", ImportUnary},
    {"Sign", ImportEvaluatedUnary},
    {"Sqrt", ImportUnary},
    {"Square", ImportUnary},
    {"SquaredDifference", ImportBinary},
    {"Sub", ImportBinary},
    {"Tanh", ImportUnary},
    {"TruncateDiv", ImportEvaluatedBinary},
    {"TruncateMod", ImportEvaluatedBinary},
};

}  // namespace

absl::Span<const ImportRule> ElementwiseRules() { return kRules; }

}  // namespace npuc::tf
