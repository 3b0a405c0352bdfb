#include "compiler_core/frontends/tflite/node_import.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "npuc/fe/tflite/npuc_tflite_generated.h"

namespace npuc::tflite {

namespace fb = ::npuc::fe::tflite;

namespace {

// Operands that are the shape of the result.
struct ShapeOperand {
  absl::string_view op;
  size_t operand;
};
constexpr ShapeOperand kShapeOperands[] = {
    {"BROADCAST_TO", 1}, {"RESHAPE", 1}, {"TRANSPOSE_CONV", 0}};

bool IsShapeOperand(absl::string_view op, size_t operand) {
  return std::any_of(
      std::begin(kShapeOperands), std::end(kShapeOperands),
      [&](const ShapeOperand& known) { return known.op == op && known.operand == operand; });
}

// True where the file states a tensor's shape. Shapes that its writer did not know are empty there.
bool HasStatedShape(const TensorView& tensor) {
  return !tensor.is_dynamic() && !tensor.type.shape.empty();
}

}  // namespace

bool IsStatedShape(const SubgraphView& graph, int tensor) {
  bool is_read = false;
  for (const OperatorView& op : graph.operators) {
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      if (op.inputs[i] != tensor) continue;
      const bool is_shape = IsShapeOperand(op.op, i) && op.outputs.size() == 1 &&
                            HasStatedShape(graph.tensor(op.outputs[0]));
      if (!is_shape) return false;
      is_read = true;
    }
  }
  return is_read;
}

absl::StatusOr<Shape> NodeImporter::ResultShape(int i) {
  if (!frontend::IsKnown(input(i)) && HasStatedShape(output(0))) return output(0).type.shape;
  return ConstantInts(i, "result's shape");
}

absl::StatusOr<ValueRef> NodeImporter::TransposedWeight(const ValueRef& weight) {
  const auto found = place_.transposed->find(weight);
  if (found != place_.transposed->end()) return found->second;
  ASSIGN_OR_RETURN(ValueRef transposed, Transposed(weight, {1, 0}));
  place_.transposed->emplace(weight, transposed);
  return transposed;
}

absl::StatusOr<Variables*> NodeImporter::States() {
  if (place_.variables != nullptr) return place_.variables;
  return FailMode("an operator with a state inside of a loop, branch or composite",
                  "keep the operator outside of it");
}

absl::StatusOr<ValueRef> NodeImporter::Activated(ValueRef value, int activation) {
  const Term x(*this, value);
  switch (activation) {
    case fb::Activation_NONE:
      return value;
    case fb::Activation_RELU:
      return Relu(x).value;
    case fb::Activation_RELU_N1_TO_1:
      return Min(Max(x, -1), 1).value;
    case fb::Activation_RELU6:
      return Apply("Relu6", x).value;
    case fb::Activation_TANH:
      return FailMode("fused activation TANH, which TensorFlow Lite's own kernels ignore",
                      "convert the model with TANH as an operator of its own");
    default:
      return FailMode(absl::StrCat("fused activation ", activation),
                      "use no activation, or one of RELU, RELU6 and RELU_N1_TO_1");
  }
}

absl::StatusOr<ValueRef> NodeImporter::ActivatedState(ValueRef value, int activation) {
  if (activation == fb::Activation_TANH) return Tanh(Term(*this, value)).value;
  return Activated(std::move(value), activation);
}

absl::Status NodeImporter::SetActivated(absl::StatusOr<ValueRef> value, int activation) {
  RETURN_IF_ERROR(value.status());
  return SetOutput(Activated(*std::move(value), activation));
}

}  // namespace npuc::tflite
