// Matrix products.
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
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

absl::Status ImportGemm(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 3));
  if (node.rank(0) != 2 || node.rank(1) != 2) {
    return absl::InvalidArgumentError(absl::StrCat("operands are ", TypeToString(node.type(0)),
                                                   " and ", TypeToString(node.type(1)),
                                                   "; Gemm takes two matrices"));
  }
  ASSIGN_OR_RETURN(const double alpha, node.FloatOr("alpha", 1));
  ASSIGN_OR_RETURN(const double beta, node.FloatOr("beta", 1));
  ASSIGN_OR_RETURN(const bool transpose_a, node.BoolOr("transA", false));
  ASSIGN_OR_RETURN(const bool transpose_b, node.BoolOr("transB", false));
  // A constant weight takes the transposition and alpha in advance.
  ValueRef b = node.input(1);
  bool flag_b = transpose_b;
  if (node.IsConstant(1) && transpose_b) {
    ASSIGN_OR_RETURN(b, node.Transposed(b, {1, 0}));
    flag_b = false;
  }
  Term product(node, node.Emit("MatMul", {node.input(0), b},
                               {{"transpose_a", transpose_a}, {"transpose_b", flag_b}}));
  product = product * alpha;
  if (!node.has(2) || beta == 0) return node.SetOutput(product.value);
  return node.SetOutput((product + Term(node, node.input(2)) * beta).value);
}

constexpr ImportRule kRules[] = {{"Gemm", ImportGemm}, {"MatMul", ImportMatMul}};

}  // namespace

absl::Span<const ImportRule> LinearRules() { return kRules; }

}  // namespace npuc::onnx
