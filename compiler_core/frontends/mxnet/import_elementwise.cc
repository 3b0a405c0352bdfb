// Element-wise operators, under all of the names that they have had.
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/activations.h"
#include "compiler_core/frontends/common/shared_rules.h"
#include "compiler_core/frontends/mxnet/node_import.h"

namespace npuc::mxnet {
namespace {

using frontend::ImportFormula;
using frontend::ImportIdentity;

template <Op kOp>
absl::Status Unary(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  return node.EmitOutput(NameOf(kOp), {node.input(0)});
}

template <Op kOp>
absl::Status Binary(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  return node.EmitOutput(NameOf(kOp), {node.input(0), node.input(1)});
}

// With a number, which kNumberFirst makes the left operand.
template <Op kOp, bool kNumberFirst = false>
absl::Status WithScalar(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  if (!node.node().HasAttr("scalar")) {
    return node.BadAttribute(absl::NotFoundError("attribute 'scalar' is missing"));
  }
  ASSIGN_OR_RETURN(const double scalar, node.FloatOr("scalar", 0));
  const ValueRef number = node.ScalarLike(node.input(0), scalar);
  if (kNumberFirst) return node.EmitOutput(NameOf(kOp), {number, node.input(0)});
  return node.EmitOutput(NameOf(kOp), {node.input(0), number});
}

absl::Status ImportSum(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, static_cast<int>(kMaxInputsPerNode)));
  ValueRef sum = node.input(0);
  for (int i = 1; i < node.input_count(); ++i) {
    ASSIGN_OR_RETURN(sum, node.Emit("Add", {sum, node.input(i)}));
  }
  return node.SetOutput(std::move(sum));
}

absl::Status ImportClip(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ValueRef bounds[2];
  for (const bool is_low : {true, false}) {
    const absl::string_view name = is_low ? "a_min" : "a_max";
    if (!node.node().HasAttr(name)) continue;
    ASSIGN_OR_RETURN(const double bound, node.FloatOr(name, 0));
    bounds[is_low ? 0 : 1] = node.Scalar(bound, node.type(0).dtype);
  }
  return node.SetOutput(frontend::Clip(Term(node, node.input(0)), bounds[0], bounds[1]).value);
}

// All floats are one type at run time.
absl::Status ImportCast(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const std::string to, node.StringOr("dtype", "float32"));
  const bool is_float = to == "float32" || to == "float16" || to == "float64" || to == "bfloat16";
  if (IsFloat(node.type(0).dtype) && is_float) return node.SetOutput(node.input(0));
  if (is_float && !node.IsConstant(0)) {
    return node.EmitOutput("Cast", {node.input(0)},
                           {{"dtype", std::string(NameOf(DType::kFloat32))}});
  }
  if (is_float) return node.SetOutput(node.Converted(node.input(0), DType::kFloat32));
  return node.BadChoice("dtype", to, "float32, float16 or float64");
}

absl::Status ImportCastAll(NodeImporter& node) {
  std::vector<ValueRef> values;
  for (int i = 0; i < node.input_count(); ++i) values.push_back(node.input(i));
  return node.SetOutputs(std::move(values));
}

Term Cube(const Term& x) {
  const Term square = Apply("Square", x);
  return square * x;
}

constexpr ImportRule kElementwiseRules[] = {
    {"BlockGrad", ImportIdentity},
    {"Cast", ImportCast},
    {"Dropout", ImportIdentity},
    {"ElementWiseSum", ImportSum},
    {"IdentityAttachKLSparseReg", ImportIdentity},
    {"LinearRegressionOutput", ImportIdentity, 1 << 20, 1},
    {"LogisticRegressionOutput", Unary<Op::kSigmoid>, 1 << 20, 1},
    {"MAERegressionOutput", ImportIdentity, 1 << 20, 1},
    {"MakeLoss", ImportIdentity},
    {"SVMOutput", ImportIdentity, 1 << 20, 1},
    {"_Div", Binary<Op::kDiv>},
    {"_DivScalar", WithScalar<Op::kDiv>},
    {"_Maximum", Binary<Op::kMaximum>},
    {"_MaximumScalar", WithScalar<Op::kMaximum>},
    {"_Minimum", Binary<Op::kMinimum>},
    {"_MinimumScalar", WithScalar<Op::kMinimum>},
    {"_Minus", Binary<Op::kSub>},
    {"_MinusScalar", WithScalar<Op::kSub>},
    {"_Mul", Binary<Op::kMul>},
    {"_MulScalar", WithScalar<Op::kMul>},
    {"_Plus", Binary<Op::kAdd>},
    {"_PlusScalar", WithScalar<Op::kAdd>},
    {"_Power", Binary<Op::kPow>},
    {"_PowerScalar", WithScalar<Op::kPow>},
    {"_RDivScalar", WithScalar<Op::kDiv, true>},
    {"_RMinusScalar", WithScalar<Op::kSub, true>},
    {"_RPowerScalar", WithScalar<Op::kPow, true>},
    {"_copy", ImportIdentity},
    {"_div", Binary<Op::kDiv>},
    {"_div_scalar", WithScalar<Op::kDiv>},
    {"_maximum", Binary<Op::kMaximum>},
    {"_maximum_scalar", WithScalar<Op::kMaximum>},
    {"_minimum", Binary<Op::kMinimum>},
    {"_minimum_scalar", WithScalar<Op::kMinimum>},
    {"_minus", Binary<Op::kSub>},
    {"_minus_scalar", WithScalar<Op::kSub>},
    {"_mul", Binary<Op::kMul>},
    {"_mul_scalar", WithScalar<Op::kMul>},
    {"_plus", Binary<Op::kAdd>},
    {"_plus_scalar", WithScalar<Op::kAdd>},
    {"_power", Binary<Op::kPow>},
    {"_power_scalar", WithScalar<Op::kPow>},
    {"_rdiv_scalar", WithScalar<Op::kDiv, true>},
    {"_rminus_scalar", WithScalar<Op::kSub, true>},
    {"_rpower_scalar", WithScalar<Op::kPow, true>},
    {"_sub", Binary<Op::kSub>},
    {"abs", Unary<Op::kAbs>},
    {"add_n", ImportSum},
    {"amp_cast", ImportCast},
    {"amp_multicast", ImportCastAll},
    {"broadcast_add", Binary<Op::kAdd>},
    {"broadcast_div", Binary<Op::kDiv>},
    {"broadcast_maximum", Binary<Op::kMaximum>},
    {"broadcast_minimum", Binary<Op::kMinimum>},
    {"broadcast_minus", Binary<Op::kSub>},
    {"broadcast_mul", Binary<Op::kMul>},
    {"broadcast_plus", Binary<Op::kAdd>},
    {"broadcast_power", Binary<Op::kPow>},
    {"broadcast_sub", Binary<Op::kSub>},
    {"cast", ImportCast},
    {"clip", ImportClip},
    {"cube", ImportFormula<Cube>},
    {"elemwise_add", Binary<Op::kAdd>},
    {"elemwise_div", Binary<Op::kDiv>},
    {"elemwise_mul", Binary<Op::kMul>},
    {"elemwise_sub", Binary<Op::kSub>},
    {"exp", Unary<Op::kExp>},
    {"expm1", ImportFormula<frontend::Expm1>},
    {"identity", ImportIdentity},
    {"log", Unary<Op::kLog>},
    {"log1p", ImportFormula<frontend::Log1p>},
    {"make_loss", ImportIdentity},
    {"negative", Unary<Op::kNeg>},
    {"reciprocal", Unary<Op::kReciprocal>},
    {"rsqrt", Unary<Op::kRsqrt>},
    {"sqrt", Unary<Op::kSqrt>},
    {"square", Unary<Op::kSquare>},
    {"stop_gradient", ImportIdentity},
};

}  // namespace

absl::Span<const ImportRule> ElementwiseRules() { return kElementwiseRules; }

}  // namespace npuc::mxnet
