// Layer types that compute: functions, products, normalisations, comparisons, indices. Source of
// the attributes and formulas: the operators of Arm-China/Compass_Optimizer, since Compass does not
// publish its IR definition.
#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/activations.h"
#include "compiler_core/frontends/common/selection.h"
#include "compiler_core/frontends/compass/layer_import.h"

namespace npuc::compass {
namespace {

using frontend::Term;

constexpr int64_t kMaxWindow = 4096;

Term X(LayerImporter& node) { return Term(node, node.input(0)); }

// --- functions of one value ---

absl::StatusOr<ValueRef> LeakyRelu(LayerImporter& node) {
  ASSIGN_OR_RETURN(const double slope, node.RealOr("negative_slope_value", 0.01));
  return frontend::LeakyRelu(X(node), slope).value;
}

absl::StatusOr<ValueRef> Elu(LayerImporter& node) {
  ASSIGN_OR_RETURN(const double alpha, node.RealOr("alpha", 1));
  return frontend::Elu(X(node), alpha, 1).value;
}

absl::StatusOr<ValueRef> Clip(LayerImporter& node) {
  ASSIGN_OR_RETURN(const double low, node.RealOr("clip_min", 0));
  ASSIGN_OR_RETURN(const double high, node.RealOr("clip_max", 6));
  if (low >= high) return node.FailInvalid("clip_max", "is not above clip_min");
  return frontend::Clip(X(node), node.Scalar(low), node.Scalar(high)).value;
}

absl::StatusOr<ValueRef> HardSigmoid(LayerImporter& node) {
  ASSIGN_OR_RETURN(const double alpha, node.RealOr("alpha", 1.0 / 6));
  ASSIGN_OR_RETURN(const double beta, node.RealOr("beta", 0.5));
  ASSIGN_OR_RETURN(const double low, node.RealOr("clip_min", 0));
  ASSIGN_OR_RETURN(const double high, node.RealOr("clip_max", 1));
  const Term line = X(node) * alpha + beta;
  return Min(Max(line, low), high).value;
}

absl::StatusOr<ValueRef> Gelu(LayerImporter& node) {
  const bool by_tanh = absl::AsciiStrToUpper(node.TextOr("approximate", "NONE")) == "TANH";
  return (by_tanh ? frontend::GeluByProducts(X(node)) : frontend::Gelu(X(node))).value;
}

// One of three: an operator of the IR, or of the evaluator's (Ceil, Sign); a formula; a function
// that reads attributes.
struct Function {
  absl::string_view name;  // of an Activation's method, and in upper case of a layer type
  absl::string_view op = "";
  Term (*formula)(const Term& x) = nullptr;
  absl::StatusOr<ValueRef> (*import)(LayerImporter& node) = nullptr;
};
constexpr Function kFunctions[] = {
    {"ABS", "Abs"},
    {"CEIL", "Ceil"},
    {"CLIP", "", nullptr, Clip},
    {"ELU", "", nullptr, Elu},
    {"EXP", "Exp"},
    {"FLOOR", "Floor"},
    {"GELU", "", nullptr, Gelu},
    {"HARDSIGMOID", "", nullptr, HardSigmoid},
    {"HARDSWISH", "", frontend::HardSwish},
    {"LEAKYRELU", "", nullptr, LeakyRelu},
    {"LOG", "Log"},
    {"MISH", "", frontend::Mish},
    {"NEGATIVE", "Neg"},
    {"RECIPROCAL", "Reciprocal"},
    {"RELU", "Relu"},
    {"RELU6", "Relu6"},
    {"ROUND", "Round"},
    {"RSQRT", "Rsqrt"},
    {"SELU", "Selu"},
    {"SIGMOID", "Sigmoid"},
    {"SIGN", "Sign"},
    {"SILU", "", frontend::Silu},
    {"SOFTPLUS", "", frontend::Softplus},
    {"SOFTSIGN", "", frontend::Softsign},
    {"SQRT", "Sqrt"},
    {"SQUARE", "Square"},
    {"TANH", "Tanh"},
};

absl::StatusOr<ValueRef> Apply(LayerImporter& node, const Function& function) {
  if (function.formula != nullptr) return function.formula(X(node)).value;
  if (function.import != nullptr) return function.import(node);
  if (function.op != "Ceil" && function.op != "Sign")
    return node.Emit(function.op, {node.input(0)});
  ASSIGN_OR_RETURN(ValueRef value, frontend::ComputedUnary(node, function.op, node.input(0)));
  if (value != nullptr) return value;
  return absl::InvalidArgumentError(absl::StrCat("a bottom of ", NameOf(node.type(0).dtype)));
}

const Function* FindFunction(absl::string_view name) {
  const auto* const found =
      std::find_if(std::begin(kFunctions), std::end(kFunctions),
                   [name](const Function& function) { return function.name == name; });
  return found == std::end(kFunctions) ? nullptr : found;
}

// A layer whose type is a function's name.
absl::StatusOr<ValueRef> ImportFunction(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(ValueRef value,
                   Apply(node, *FindFunction(absl::AsciiStrToUpper(node.source().op))));
  return Activated(node, std::move(value));
}

absl::StatusOr<ValueRef> ImportActivation(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  const Function* const function = FindFunction(node.Text("method"));
  if (function != nullptr) return Apply(node, *function);
  return node.FailAt("method", DiagnosticKind::kUnsupportedOperatorMode,
                     absl::StrCat("'", Printable(node.Text("method")), "' is not supported"), kCut);
}

// --- of two and three values ---

absl::StatusOr<ValueRef> ImportBinary(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(ValueRef value, node.Emit(node.source().op, {node.input(0), node.input(1)}));
  return Activated(node, std::move(value));
}

absl::StatusOr<ValueRef> ImportMatMul(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const bool transpose_a, node.FlagOr("trans_a", false));
  ASSIGN_OR_RETURN(const bool transpose_b, node.FlagOr("trans_b", false));
  ASSIGN_OR_RETURN(ValueRef value,
                   node.Emit("MatMul", {node.input(0), node.input(1)},
                             {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}}));
  return Activated(node, std::move(value));
}

// Booleans of numbers: whether they are not 0.
absl::StatusOr<ValueRef> Truth(LayerImporter& node, const ValueRef& value) {
  if (value->type.dtype == DType::kBool) return value;
  const ValueRef zero = node.Scalar(0, value->type.dtype);
  return frontend::ComputedBinary(node, "NotEqual", value, zero);
}

absl::StatusOr<ValueRef> ImportLogical(LayerImporter& node) {
  constexpr Names kMethods[] = {{"EQUAL", "Equal"},     {"NOT_EQUAL", "NotEqual"},
                                {"GREATER", "Greater"}, {"GREATER_EQUAL", "GreaterEqual"},
                                {"LESS", "Less"},       {"LESS_EQUAL", "LessEqual"},
                                {"AND", "LogicalAnd"},  {"OR", "LogicalOr"},
                                {"XOR", "LogicalXor"},  {"NOT", "LogicalNot"}};
  ASSIGN_OR_RETURN(const std::string op, MethodOf(node, kMethods));
  const bool is_not = op == "LogicalNot";
  RETURN_IF_ERROR(node.ExpectInputs(is_not ? 1 : 2, is_not ? 1 : 2));
  ValueRef a = node.input(0);
  ValueRef b = is_not ? nullptr : node.input(1);
  if (op.starts_with("Logical")) {
    ASSIGN_OR_RETURN(a, Truth(node, a));
    if (is_not) return frontend::ComputedUnary(node, op, a);
    ASSIGN_OR_RETURN(b, Truth(node, b));
  }
  ASSIGN_OR_RETURN(ValueRef value, frontend::ComputedBinary(node, op, a, b));
  if (value != nullptr) return value;
  return absl::InvalidArgumentError(
      absl::StrCat("bottoms of ", NameOf(a->type.dtype), " and ", NameOf(b->type.dtype)));
}

absl::StatusOr<ValueRef> ImportWhere(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(3, 3));
  ASSIGN_OR_RETURN(const ValueRef condition, Truth(node, node.input(0)));
  return frontend::Selected(node, condition, node.input(1), node.input(2));
}

absl::StatusOr<ValueRef> ImportCast(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  const bool is_real = node.top().quant.has_value() || IsFloat(node.top().type.dtype);
  return frontend::CastTo(node, node.input(0), is_real ? DType::kFloat32 : node.top().type.dtype);
}

// --- indices ---

absl::StatusOr<ValueRef> ImportArgMinMax(LayerImporter& node) {
  constexpr Names kMethods[] = {{"MAX", "max"}, {"MIN", "min"}};
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const std::string method, MethodOf(node, kMethods));
  frontend::ArgOptions options{.keep_dims = true, .is_min = method == "min"};
  ASSIGN_OR_RETURN(options.axis, node.AxisOr("axis", -1));
  ASSIGN_OR_RETURN(options.last, node.FlagOr("select_last_index", false));
  options.dtype = node.top().type.dtype == DType::kInt64 ? DType::kInt64 : DType::kInt32;
  return frontend::ArgOf(node, node.input(0), options);
}

absl::StatusOr<std::vector<ValueRef>> ImportTopK(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const int64_t axis, node.AxisOr("axis", -1));
  ASSIGN_OR_RETURN(const bool largest, node.FlagOr("largest", true));
  const int64_t k = node.NumberOr("k", 0);
  const int64_t most = std::min(frontend::kMaxExtrema, node.shape(0)[static_cast<size_t>(axis)]);
  if (k < 1 || k > most) {
    return node.FailAt("k", DiagnosticKind::kUnsupportedOperatorMode,
                       absl::StrCat("is ", k, "; supported are 1..", most), kCut);
  }
  ASSIGN_OR_RETURN(frontend::Extrema extrema,
                   frontend::ExtremaOf(node, node.input(0), axis, k, !largest));
  return std::vector<ValueRef>{std::move(extrema.values), std::move(extrema.indices)};
}

// --- normalisations ---

absl::StatusOr<ValueRef> ImportLogSoftmax(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const int64_t axis, node.AxisOr("axis", -1));
  return node.Emit("LogSoftmax", {node.input(0)}, {{"axis", axis}});
}

// A vector [n] as an operand beside `rank` dimensions, along one of them.
absl::StatusOr<ValueRef> Along(LayerImporter& node, const ValueRef& vector, int64_t axis) {
  Shape shape(node.shape(0).size(), 1);
  if (vector->type.element_count() != node.shape(0)[static_cast<size_t>(axis)]) {
    return node.FailInvalid("weights_shape", absl::StrCat("has ", vector->type.element_count(),
                                                          " values for dimension ", axis, " of ",
                                                          PrintShape(node.shape(0))));
  }
  shape[static_cast<size_t>(axis)] = vector->type.element_count();
  return node.Reshaped(vector, std::move(shape));
}

// x * weights + biases along an axis.
absl::StatusOr<ValueRef> Scaled(LayerImporter& node, const Operands& operands, const Term& x,
                                int64_t axis) {
  ASSIGN_OR_RETURN(const ValueRef weight, Along(node, operands.weight, axis));
  ASSIGN_OR_RETURN(const ValueRef bias, Along(node, operands.bias, axis));
  const Term product = x * Term(node, weight);
  return (product + Term(node, bias)).value;
}

absl::StatusOr<ValueRef> ImportBatchNorm(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const int64_t axis, node.AxisOr("axis", -1));
  ASSIGN_OR_RETURN(const Operands operands, WeightsOf(node));
  // Integers with their scales: a convolution of one pixel keeps them, as one layer.
  if (operands.weight->stored.has_value() && node.rank(0) == 4 && axis == 3 &&
      operands.weight->type.element_count() == node.shape(0)[3]) {
    ASSIGN_OR_RETURN(const ValueRef weight,
                     node.Reshaped(operands.weight, {1, 1, node.shape(0)[3], 1}));
    ASSIGN_OR_RETURN(const ValueRef sums,
                     node.Emit("DepthwiseConv2D", {node.input(0), weight},
                               {{"strides", Shape{1, 1}}, {"pads", Shape(4, 0)}}));
    ASSIGN_OR_RETURN(ValueRef value, node.Emit("Add", {sums, operands.bias}));
    return Activated(node, std::move(value));
  }
  ASSIGN_OR_RETURN(ValueRef value, Scaled(node, operands, X(node), axis));
  return Activated(node, std::move(value));
}

absl::StatusOr<std::vector<int64_t>> NormAxes(LayerImporter& node, std::vector<int64_t> fallback) {
  if (!node.Has("axis")) return fallback;
  std::optional<Shape> list = ParseInts(node.Text("axis"));
  const std::optional<int64_t> one = ParseInt(node.Text("axis"));
  if (one.has_value()) list = Shape{*one};
  if (!list.has_value()) return node.FailInvalid("axis", "is no list of dimensions");
  return node.Axes(*list, node.rank(0));
}

// LayerNorm along the last dimension, InstanceNorm over those between the first and the last.
absl::StatusOr<ValueRef> ImportNorm(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  const int64_t last = node.rank(0) - 1;
  std::vector<int64_t> usual = {last};
  if (node.source().op == "InstanceNorm") {
    usual.clear();
    for (int64_t d = 1; d < last; ++d) usual.push_back(d);
  }
  if (last < 1 || usual.empty())
    return node.FailInvalid("layer_bottom_shape", "has too few dimensions");
  ASSIGN_OR_RETURN(const std::vector<int64_t> axes, NormAxes(node, std::move(usual)));
  ASSIGN_OR_RETURN(const double epsilon, node.RealOr("epsilon", 1e-5));
  const Term normalized = frontend::Normalize(X(node), axes, epsilon).value;
  ASSIGN_OR_RETURN(const Operands operands, WeightsOf(node));
  return Scaled(node, operands, normalized, last);
}

absl::StatusOr<ValueRef> ImportNormalization(LayerImporter& node) {
  constexpr Names kMethods[] = {{"L1", "1"}, {"L2", "2"}};
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const std::string method, MethodOf(node, kMethods));
  ASSIGN_OR_RETURN(const std::vector<int64_t> axes, NormAxes(node, {node.rank(0) - 1}));
  const Term norm = frontend::Norm(X(node), method == "1" ? 1 : 2, axes, true);
  constexpr double kLeast = 1e-12;
  const Term divisor = Max(norm, kLeast);
  return (X(node) / divisor).value;
}

// x / (bias + alpha * mean of squares) ^ beta, the mean over `size` neighbours.
absl::StatusOr<ValueRef> ImportLrn(LayerImporter& node) {
  constexpr Names kMethods[] = {{"ACROSS_CHANNELS", "across"}, {"WITHIN_CHANNEL", "within"}};
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const std::string method, MethodOf(node, kMethods));
  ASSIGN_OR_RETURN(const double alpha, node.RealOr("alpha", 1e-4));
  ASSIGN_OR_RETURN(const double beta, node.RealOr("beta", 0.75));
  ASSIGN_OR_RETURN(const double bias, node.RealOr("bias", 1));
  const int64_t size = node.NumberOr("size", 0);
  if (size < 1 || size > kMaxWindow || node.rank(0) != 4) {
    return node.FailInvalid(
        "size", absl::StrCat("is ", size, " over ", PrintShape(node.shape(0)), "; it must be 1..",
                             kMaxWindow, " over [n,h,w,c]"));
  }
  const Term x = X(node);
  ASSIGN_OR_RETURN(const ValueRef squares, node.Emit("Square", {node.input(0)}));
  ValueRef mean;
  if (method == "within") {
    if (size % 2 == 0) return node.FailInvalid("size", "is even; a window has a middle");
    const int64_t pad = (size - 1) / 2;
    ASSIGN_OR_RETURN(mean, node.Emit("AvgPool", {squares},
                                     {{"kernel", Shape{size, size}},
                                      {"strides", Shape{1, 1}},
                                      {"pads", Shape(4, pad)}}));
  } else {
    std::vector<int64_t> paddings(8, 0);
    paddings[6] = size / 2;
    paddings[7] = (size - 1) / 2;
    ASSIGN_OR_RETURN(const ValueRef padded, node.Padded(squares, paddings, 0));
    ASSIGN_OR_RETURN(ValueRef sum, node.Sliced(padded, 3, 0, node.shape(0)[3]));
    for (int64_t i = 1; i < size; ++i) {
      ASSIGN_OR_RETURN(const ValueRef part, node.Sliced(padded, 3, i, node.shape(0)[3]));
      ASSIGN_OR_RETURN(sum, node.Emit("Add", {sum, part}));
    }
    ASSIGN_OR_RETURN(mean, (Term(node, sum) * (1.0 / static_cast<double>(size))).value);
  }
  const Term base = Term(node, mean) * alpha + bias;
  const Term power = Pow(base, beta);
  return (x / power).value;
}

constexpr ImportRule kMathRules[] = {
    {"Abs", ImportFunction},
    {"Activation", ImportActivation},
    {"Add", ImportBinary},
    {"ArgMinMax", ImportArgMinMax},
    {"BatchNorm", ImportBatchNorm},
    {"Cast", ImportCast},
    {"Ceil", ImportFunction},
    {"Clip", ImportFunction},
    {"Div", ImportBinary},
    {"ELU", ImportFunction},
    {"Exp", ImportFunction},
    {"Floor", ImportFunction},
    {"GELU", ImportFunction},
    {"HardSigmoid", ImportFunction},
    {"Hardswish", ImportFunction},
    {"InstanceNorm", ImportNorm},
    {"LRN", ImportLrn},
    {"LayerNorm", ImportNorm},
    {"LeakyRELU", ImportFunction},
    {"Log", ImportFunction},
    {"LogSoftmax", ImportLogSoftmax},
    {"Logical", ImportLogical},
    {"MISH", ImportFunction},
    {"MatMul", ImportMatMul},
    {"Mul", ImportBinary},
    {"Negative", ImportFunction},
    {"Normalization", ImportNormalization},
    {"Pow", ImportBinary},
    {"RELU", ImportFunction},
    {"RELU6", ImportFunction},
    {"Reciprocal", ImportFunction},
    {"Round", ImportFunction},
    {"Rsqrt", ImportFunction},
    {"SELU", ImportFunction},
    {"Sigmoid", ImportFunction},
    {"Sign", ImportFunction},
    {"Silu", ImportFunction},
    {"Softplus", ImportFunction},
    {"Softsign", ImportFunction},
    {"Sqrt", ImportFunction},
    {"Square", ImportFunction},
    {"SquaredDifference", ImportBinary},
    {"Sub", ImportBinary},
    {"Tanh", ImportFunction},
    {"TopK", nullptr, ImportTopK},
    {"Where", ImportWhere},
};

}  // namespace

absl::Span<const ImportRule> MathRules() { return kMathRules; }

}  // namespace npuc::compass
