// Matrix products.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/paddle/op_import.h"

namespace npuc::paddle {
namespace {

// The value as a matrix whose rows are its first `dims` dimensions.
absl::StatusOr<ValueRef> Flattened(OpImporter& node, const ValueRef& value, int64_t dims) {
  const Shape& shape = value->type.shape;
  if (dims < 1 || dims >= static_cast<int64_t>(shape.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat(TypeToString(value->type), " has no ", dims, " dimensions of rows"));
  }
  const int64_t rows = ElementCount(absl::MakeConstSpan(shape).first(static_cast<size_t>(dims)));
  const int64_t columns =
      ElementCount(absl::MakeConstSpan(shape).subspan(static_cast<size_t>(dims)));
  return node.Reshaped(value, {rows, columns});
}

absl::Status ImportMul(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef x, node.In("X"));
  ASSIGN_OR_RETURN(const ValueRef y, node.In("Y"));
  ASSIGN_OR_RETURN(const int64_t x_dims, node.IntOr("x_num_col_dims", 1));
  ASSIGN_OR_RETURN(const int64_t y_dims, node.IntOr("y_num_col_dims", 1));
  ASSIGN_OR_RETURN(const ValueRef a, Flattened(node, x, x_dims));
  ASSIGN_OR_RETURN(const ValueRef b, Flattened(node, y, y_dims));
  ASSIGN_OR_RETURN(const ValueRef product, node.Emit("MatMul", {a, b}));
  Shape shape(x->type.shape.begin(), x->type.shape.begin() + x_dims);
  shape.insert(shape.end(), y->type.shape.begin() + y_dims, y->type.shape.end());
  return node.Give("Out", node.Reshaped(product, std::move(shape)));
}

// As numpy.matmul, with a transposition of the last two dimensions of either. A vector is a row on
// the left and a column on the right.
absl::StatusOr<ValueRef> Product(OpImporter& node, ValueRef x, ValueRef y, bool turn_x,
                                 bool turn_y) {
  const bool is_row = x->type.shape.size() == 1;
  const bool is_column = y->type.shape.size() == 1;
  if (x->type.shape.empty() || y->type.shape.empty()) {
    return absl::InvalidArgumentError("a scalar operand");
  }
  if (is_row) {
    ASSIGN_OR_RETURN(x, node.Reshaped(x, {1, x->type.shape[0]}));
  }
  if (is_column) {
    ASSIGN_OR_RETURN(y, node.Reshaped(y, {y->type.shape[0], 1}));
  }
  // A constant weight takes the transposition in advance.
  bool flag = turn_y && !is_column;
  if (flag && frontend::IsKnown(y)) {
    std::vector<int64_t> perm;
    const auto rank = static_cast<int64_t>(y->type.shape.size());
    for (int64_t i = 0; i < rank; ++i) perm.push_back(i);
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    ASSIGN_OR_RETURN(y, node.Transposed(y, std::move(perm)));
    flag = false;
  }
  ASSIGN_OR_RETURN(
      const ValueRef product,
      node.Emit("MatMul", {x, y}, {{"transpose_a", turn_x && !is_row}, {"transpose_b", flag}}));
  Shape shape = product->type.shape;
  if (is_column) shape.pop_back();
  if (is_row) shape.erase(shape.end() - (is_column ? 1 : 2));
  return node.Reshaped(product, std::move(shape));
}

absl::Status ImportMatMul(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef x, node.In("X"));
  ASSIGN_OR_RETURN(const ValueRef y, node.In("Y"));
  const bool is_old = node.node().type() == "matmul";
  ASSIGN_OR_RETURN(const bool turn_x, node.BoolOr(is_old ? "transpose_X" : "trans_x", false));
  ASSIGN_OR_RETURN(const bool turn_y, node.BoolOr(is_old ? "transpose_Y" : "trans_y", false));
  ASSIGN_OR_RETURN(const double alpha, node.FloatOr("alpha", 1));
  return node.Give("Out", (Term(node, Product(node, x, y, turn_x, turn_y)) * alpha).value);
}

// fc: a product of matrices, a bias, and perhaps ReLU.
absl::Status ImportFc(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef x, node.In("Input"));
  ASSIGN_OR_RETURN(const ValueRef w, node.In("W"));
  ASSIGN_OR_RETURN(const int64_t dims, node.IntOr("in_num_col_dims", 1));
  ASSIGN_OR_RETURN(const std::string activation, node.StringOr("activation_type", ""));
  ASSIGN_OR_RETURN(const bool padded, node.BoolOr("padding_weights", false));
  if (padded || (activation != "relu" && !activation.empty())) {
    return node.FailMode(
        absl::StrCat("padded weights, or activation '", Printable(activation, 40), "'"),
        "export the model without optimizing it for inference");
  }
  ASSIGN_OR_RETURN(const ValueRef rows, Flattened(node, x, dims));
  ASSIGN_OR_RETURN(ValueRef y, node.Emit("MatMul", {rows, w}));
  if (node.Takes("Bias")) {
    const ValueRef bias = node.Optional("Bias");
    ASSIGN_OR_RETURN(const ValueRef row, node.Reshaped(bias, {bias->type.element_count()}));
    ASSIGN_OR_RETURN(y, node.Emit("Add", {y, row}));
  }
  if (activation == "relu") {
    ASSIGN_OR_RETURN(y, node.Emit("Relu", {y}));
  }
  Shape shape(x->type.shape.begin(), x->type.shape.begin() + dims);
  shape.push_back(y->type.shape[1]);
  return node.Give("Out", node.Reshaped(y, std::move(shape)));
}

constexpr ImportRule kLinearRules[] = {{"bmm", ImportMatMul},
                                       {"fc", ImportFc},
                                       {"matmul", ImportMatMul},
                                       {"matmul_v2", ImportMatMul},
                                       {"mul", ImportMul}};

}  // namespace

absl::Span<const ImportRule> LinearRules() { return kLinearRules; }

}  // namespace npuc::paddle
