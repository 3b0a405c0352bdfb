// Element-wise operators: those that the IR has, those that are sums of such, and those that are
// evaluated, most of them on compile-time values alone.
#include <memory>
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

ValueRef RandomNumbers(ImportValue value, int from) {
  auto facts = std::make_shared<ControlFacts>();
  facts->random_from = from;
  value.facts = std::move(facts);
  return std::make_shared<ImportValue>(std::move(value));
}

// Random numbers stand in the graph of dropout alone, which rounds them down to the factor of what
// it keeps, or compares them with its rate. They are never computed: with a keep probability of 1,
// or a rate of 0, all is kept.
absl::Status ImportRandomUniform(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(Shape shape, node.ConstantInts(0, "shape"));
  RETURN_IF_ERROR(CheckShape(shape));
  ImportValue value;
  value.type = {DType::kFloat32, std::move(shape)};
  value.source = node.source();
  value.compute = [state = &node.state(), view = &node.node()]() -> absl::StatusOr<ValueRef> {
    return NodeImporter(state, view, {})
        .Fail(DiagnosticKind::kUnsupportedOperator, "no core computes random numbers",
              "where it is dropout, give with CONST_INPUTS its keep probability as 1, or its rate "
              "as 0 and the factor of what it keeps as 1, or begin the model behind it with "
              "INPUT_OPS; else rebuild the model for inference");
  };
  return node.SetOutput(RandomNumbers(std::move(value), 0));
}

// Random numbers times 1, or with 0 or 1 added, as dropout takes them; null: others.
ValueRef KnownRandomNumbers(NodeImporter& node, bool is_product) {
  for (const int i : {0, 1}) {
    const ImportValue& random = *node.input(i);
    const int from = FactsOf(random).random_from;
    if (from < 0 || !node.IsConstant(1 - i)) continue;
    const Tensor& other = *node.input(1 - i)->constant;
    if (other.element_count() != 1 || other.shape().size() > random.type.shape.size()) continue;
    if (is_product && other.at(0) == 1) return RandomNumbers(random, from);
    if (!is_product && other.at(0) == 0) return RandomNumbers(random, from);
    if (!is_product && other.at(0) == 1 && from == 0) return RandomNumbers(random, 1);
  }
  return nullptr;
}

absl::Status ImportAdd(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ValueRef random = KnownRandomNumbers(node, /*is_product=*/false);
  return random != nullptr ? node.SetOutput(std::move(random)) : ImportBinary<Op::kAdd>(node);
}

// The operand beside a mask that keeps all of it; null: there is none.
ValueRef KeptWhole(NodeImporter& node) {
  for (const int i : {0, 1}) {
    if (!FactsOf(*node.input(i)).is_all_ones) continue;
    const absl::StatusOr<Shape> shape = BroadcastShape(node.shape(0), node.shape(1));
    if (shape.ok() && *shape == node.shape(1 - i) && node.type(i).dtype == node.type(1 - i).dtype) {
      return node.input(1 - i);
    }
  }
  return nullptr;
}

absl::Status ImportMul(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  if (ValueRef kept = KeptWhole(node); kept != nullptr) return node.SetOutput(std::move(kept));
  ValueRef random = KnownRandomNumbers(node, /*is_product=*/true);
  return random != nullptr ? node.SetOutput(std::move(random)) : ImportBinary<Op::kMul>(node);
}

// TensorFlow's random numbers are multiples of 2^-23, so that with 1 added they stay below 2.
absl::Status ImportFloor(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  const int from = FactsOf(*node.input(0)).random_from;
  if (from < 0) return ImportEvaluatedUnary(node);
  if (from == 1) return node.SetOutput(AllOnes(node, node.type(0)));
  return node.SetConstant(
      EvaluateBroadcast(Tensor::ScalarFloat(static_cast<float>(from)), node.shape(0)));
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

// Random numbers are at least a rate of 0.
absl::Status ImportGreaterEqual(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  const int from = FactsOf(*node.input(0)).random_from;
  if (from >= 0 && node.IsConstant(1) && node.input(1)->constant->element_count() == 1 &&
      node.rank(1) <= node.rank(0) && node.input(1)->constant->at(0) <= from) {
    return node.SetOutput(AllOnes(node, {DType::kBool, node.shape(0)}));
  }
  return ImportEvaluatedBinary(node);
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
    {"Add", ImportAdd},
    {"AddN", ImportAddN},
    {"AddV2", ImportAdd},
    {"Ceil", ImportEvaluatedUnary},
    {"Div", ImportBinary<Op::kDiv>},
    {"Equal", ImportEvaluatedBinary},
    {"Erf", ImportEvaluatedUnary},
    {"Erfc", ImportEvaluatedUnary},
    {"Exp", ImportUnary<Op::kExp>},
    {"FakeQuantWithMinMaxArgs", ImportFakeQuantArgs},
    {"FakeQuantWithMinMaxVars", ImportFakeQuantVars},
    {"FakeQuantWithMinMaxVarsPerChannel", ImportFakeQuantChannels},
    {"Floor", ImportFloor},
    {"FloorDiv", ImportEvaluatedBinary},
    {"FloorMod", ImportEvaluatedBinary},
    {"Greater", ImportEvaluatedBinary},
    {"GreaterEqual", ImportGreaterEqual},
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
    {"Mul", ImportMul},
    {"Neg", ImportUnary<Op::kNeg>},
    {"NotEqual", ImportEvaluatedBinary},
    {"Pow", ImportBinary<Op::kPow>},
    {"RandomUniform", ImportRandomUniform},
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
