#include "compiler_core/frontends/tflite/node_import.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "npuc/fe/tflite/npuc_tflite_generated.h"

namespace npuc::tflite {

namespace fb = ::npuc::fe::tflite;

absl::StatusOr<ValueRef> NodeImporter::TransposedWeight(const ValueRef& weight) {
  const auto found = place_.transposed->find(weight);
  if (found != place_.transposed->end()) return found->second;
  ASSIGN_OR_RETURN(ValueRef transposed, Transposed(weight, {1, 0}));
  place_.transposed->emplace(weight, transposed);
  return transposed;
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
