// Matrix products.
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/tflite/node_import.h"
#include "npuc/fe/tflite/npuc_tflite_generated.h"

namespace npuc::tflite {
namespace {

// x [..., in] (or any shape of so many elements), weight [out, in] -> [..., out].
absl::Status ImportFullyConnected(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 3));
  ASSIGN_OR_RETURN(const auto* o, node.Required(node.raw().options_as_FullyConnectedOptions()));
  if (o->weights_format() != 0) {
    return node.FailMode("shuffled weights", "convert the model with weights in their own order");
  }
  if (node.rank(1) != 2 || node.shape(1)[1] < 1 ||
      node.type(0).element_count() % node.shape(1)[1] != 0) {
    return absl::InvalidArgumentError(absl::StrCat("weights ", TypeToString(node.type(1)),
                                                   " do not fit operand ",
                                                   TypeToString(node.type(0))));
  }
  const int64_t inner = node.shape(1)[1];
  ASSIGN_OR_RETURN(const ValueRef rows,
                   node.Reshaped(node.input(0), {node.type(0).element_count() / inner, inner}));
  // Known weights are stored transposed: the product then needs no flag.
  ValueRef weight = node.input(1);
  const bool is_known = node.IsKnown(1);
  if (is_known) {
    ASSIGN_OR_RETURN(weight, node.TransposedWeight(weight));
  }
  ASSIGN_OR_RETURN(ValueRef y, node.Emit("MatMul", {rows, weight}, {{"transpose_b", !is_known}}));
  if (node.has(2)) {
    ASSIGN_OR_RETURN(y, node.Emit("Add", {y, node.input(2)}));
  }
  ASSIGN_OR_RETURN(y, node.Activated(std::move(y), o->activation()));
  if (!o->keep_num_dims() || node.rank(0) < 1) return node.SetOutput(std::move(y));
  Shape shape = node.shape(0);
  if (shape.back() != inner) {
    return absl::InvalidArgumentError("keep_num_dims with another last dimension than the weights");
  }
  shape.back() = node.shape(1)[0];
  return node.SetOutput(node.Reshaped(y, std::move(shape)));
}

absl::Status ImportBatchMatMul(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  const auto* o = node.raw().options_as_BatchMatMulOptions();
  return node.EmitOutput(
      "MatMul", {node.input(0), node.input(1)},
      {{"transpose_a", o != nullptr && o->adj_x()}, {"transpose_b", o != nullptr && o->adj_y()}});
}

constexpr ImportRule kLinearRules[] = {{"BATCH_MATMUL", ImportBatchMatMul},
                                       {"FULLY_CONNECTED", ImportFullyConnected}};

}  // namespace

absl::Span<const ImportRule> LinearRules() { return kLinearRules; }

}  // namespace npuc::tflite
