// Matrix products and biases.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/tensorflow/node_import.h"

namespace npuc::tf {
namespace {

absl::Status ImportMatMul(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  if (node.rank(0) != 2 || node.rank(1) != 2) {
    return absl::InvalidArgumentError(absl::StrCat("operands are ", TypeToString(node.type(0)),
                                                   " and ", TypeToString(node.type(1)),
                                                   "; MatMul takes two matrices"));
  }
  ASSIGN_OR_RETURN(const bool transpose_a, node.BoolOr("transpose_a", false));
  ASSIGN_OR_RETURN(const bool transpose_b, node.BoolOr("transpose_b", false));
  return node.EmitOutput("MatMul", {node.input(0), node.input(1)},
                         {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
}

absl::Status ImportBatchMatMul(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const bool transpose_a, node.BoolOr("adj_x", false));
  ASSIGN_OR_RETURN(const bool transpose_b, node.BoolOr("adj_y", false));
  return node.EmitOutput("MatMul", {node.input(0), node.input(1)},
                         {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
}

// An Add whose second operand is the bias along the channels.
absl::Status ImportBiasAdd(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const bool is_nhwc, node.IsNhwc());
  const int rank = node.rank(0);
  const int channel_axis = is_nhwc ? rank - 1 : 1;
  if (rank < 2 || node.rank(1) != 1 ||
      node.shape(1)[0] != node.shape(0)[static_cast<size_t>(channel_axis)]) {
    return absl::InvalidArgumentError(absl::StrCat("the value is ", TypeToString(node.type(0)),
                                                   " and the bias ", TypeToString(node.type(1)),
                                                   "; the bias must have one value per channel"));
  }
  ValueRef bias = node.input(1);
  if (channel_axis != rank - 1) {
    Shape shape(static_cast<size_t>(rank - channel_axis), 1);
    shape[0] = node.shape(1)[0];
    ASSIGN_OR_RETURN(bias, node.Reshaped(bias, std::move(shape)));
  }
  return node.EmitOutput("Add", {node.input(0), std::move(bias)});
}

constexpr ImportRule kLinearRules[] = {
    {"BatchMatMul", ImportBatchMatMul},   {"BatchMatMulV2", ImportBatchMatMul},
    {"BatchMatMulV3", ImportBatchMatMul}, {"BiasAdd", ImportBiasAdd},
    {"BiasAddV1", ImportBiasAdd},         {"MatMul", ImportMatMul},
};

}  // namespace

absl::Span<const ImportRule> LinearRules() { return kLinearRules; }

}  // namespace npuc::tf
