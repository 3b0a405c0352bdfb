// Matrix products.
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/einsum.h"
#include "compiler_core/frontends/onnx/node_import.h"

namespace npuc::onnx {
namespace {

// As numpy.matmul: a vector is a row on the left and a column on the right.
absl::Status ImportMatMul(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  if (node.rank(0) == 0 || node.rank(1) == 0) {
    return absl::InvalidArgumentError("a scalar operand; MatMul takes vectors and matrices");
  }
  ValueRef a = node.input(0);
  ValueRef b = node.input(1);
  const bool is_row = node.rank(0) == 1;
  const bool is_column = node.rank(1) == 1;
  if (is_row) {
    ASSIGN_OR_RETURN(a, node.Reshaped(a, {1, node.shape(0)[0]}));
  }
  if (is_column) {
    ASSIGN_OR_RETURN(b, node.Reshaped(b, {node.shape(1)[0], 1}));
  }
  ASSIGN_OR_RETURN(ValueRef y, node.Emit("MatMul", {a, b}));
  Shape shape = y->type.shape;
  if (is_column) shape.pop_back();
  if (is_row) shape.erase(shape.end() - (is_column ? 1 : 2));
  return node.SetOutput(node.Reshaped(y, std::move(shape)));
}

// Stored integers times a number > 0: the same ones by another scale. Null where the value has
// none, or the number is not > 0.
ValueRef ScaledStored(NodeImporter& node, const ValueRef& value, double factor) {
  if (!value->stored.has_value() || !(factor > 0) || !std::isfinite(factor)) return nullptr;
  frontend::StoredIntegers scaled = *value->stored;
  for (double& scale : scaled.params.scale) scale *= factor;
  return node.MakeStored(std::move(scaled), value->source);
}

absl::Status ImportGemm(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 3));
  if (node.rank(0) != 2 || node.rank(1) != 2) {
    return absl::InvalidArgumentError(absl::StrCat("operands are ", TypeToString(node.type(0)),
                                                   " and ", TypeToString(node.type(1)),
                                                   "; Gemm takes two matrices"));
  }
  ASSIGN_OR_RETURN(const double alpha, node.FloatOr("alpha", 1));
  ASSIGN_OR_RETURN(const double beta, node.FloatOr("beta", 1));
  const bool has_fraction = alpha != std::floor(alpha) || beta != std::floor(beta);
  if (has_fraction && IsInteger(node.type(0).dtype)) {
    return node.FailMode(absl::StrCat("alpha ", alpha, " and beta ", beta,
                                      " beside integers of type ", NameOf(node.type(0).dtype)),
                         "cast the operands to float before the node");
  }
  ASSIGN_OR_RETURN(const bool transpose_a, node.BoolOr("transA", false));
  ASSIGN_OR_RETURN(const bool transpose_b, node.BoolOr("transB", false));
  // A constant weight takes the transposition in advance, one of stored integers alpha as well.
  ValueRef b = node.input(1);
  bool flag_b = transpose_b;
  if ((node.IsConstant(1) || b->stored.has_value()) && transpose_b) {
    ASSIGN_OR_RETURN(b, node.Transposed(b, {1, 0}));
    flag_b = false;
  }
  const ValueRef scaled = ScaledStored(node, b, alpha);
  Term product(node, node.Emit("MatMul", {node.input(0), scaled != nullptr ? scaled : b},
                               {{"transpose_a", transpose_a}, {"transpose_b", flag_b}}));
  if (scaled == nullptr) product = product * alpha;
  if (!node.has(2) || beta == 0) return node.SetOutput(product.value);
  const ValueRef c = ScaledStored(node, node.input(2), beta);
  const Term bias = c != nullptr ? Term(node, c) : Term(node, node.input(2)) * beta;
  return node.SetOutput((product + bias).value);
}

absl::Status ImportEinsum(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, kMaxInputsPerNode));
  ASSIGN_OR_RETURN(const std::string equation, node.StringOr("equation", ""));
  std::vector<ValueRef> operands;
  for (int i = 0; i < node.input_count(); ++i) {
    if (!node.has(i)) return node.ExpectInputs(i + 1, kMaxInputsPerNode);
    operands.push_back(node.input(i));
  }
  return node.SetOutput(frontend::Einsum(node, equation, operands));
}

constexpr ImportRule kLinearRules[] = {
    {"Einsum", ImportEinsum}, {"Gemm", ImportGemm}, {"MatMul", ImportMatMul}};

}  // namespace

absl::Span<const ImportRule> LinearRules() { return kLinearRules; }

}  // namespace npuc::onnx
