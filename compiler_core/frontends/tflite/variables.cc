#include "compiler_core/frontends/tflite/variables.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/graph/types.h"

namespace npuc::tflite {
namespace {

constexpr absl::string_view kAssign = "ASSIGN_VARIABLE";
constexpr absl::string_view kCallOnce = "CALL_ONCE";
constexpr absl::string_view kHandle = "VAR_HANDLE";
constexpr absl::string_view kRead = "READ_VARIABLE";

// True where every element stands for 0.
bool IsZero(const TensorView& value) {
  const Tensor tensor(value.type, std::vector<uint8_t>(value.data.begin(), value.data.end()));
  for (int64_t i = 0; i < tensor.element_count(); ++i) {
    const double zero =
        value.quant.has_value() ? static_cast<double>(value.quant->zero_point[0]) : 0.0;
    if (tensor.at(i) != zero) return false;
  }
  return true;
}

}  // namespace

Variables::Variables(const ModelFile& file, ImportState* state) : file_(file), state_(*state) {
  std::map<std::string, int> by_name;
  for (const OperatorView& op : file.operators()) {
    if (op.op != kHandle || op.outputs.empty()) continue;
    const std::string name =
        op.variable.empty() ? absl::StrCat("variable_", op.index) : op.variable;
    const auto [it, is_new] = by_name.emplace(name, static_cast<int>(variables_.size()));
    if (is_new && variables_.size() == kMost) {
      state_.AddError(DiagnosticKind::kModelLimitExceeded, {name, op.op},
                      absl::StrCat("the model has more than ", kMost, " variables"),
                      "compile a smaller model");
      return;
    }
    if (is_new) variables_.emplace_back().name = name;
    by_handle_[op.outputs[0]] = it->second;
  }
}

bool Variables::IsAbout(const OperatorView& op) {
  return op.op == kAssign || op.op == kCallOnce || op.op == kHandle || op.op == kRead;
}

int Variables::IndexOf(int handle) const {
  const auto it = by_handle_.find(handle);
  return it == by_handle_.end() ? -1 : it->second;
}

int Variables::ReadBy(const OperatorView& op) const {
  return op.op == kRead && op.inputs.size() == 1 && op.outputs.size() == 1 ? IndexOf(op.inputs[0])
                                                                           : -1;
}

int Variables::AssignedBy(const OperatorView& op) const {
  return op.op == kAssign && op.inputs.size() == 2 && op.inputs[1] >= 0 ? IndexOf(op.inputs[0])
                                                                        : -1;
}

ValueRef Variables::Read(const OperatorView& op) {
  const int index = ReadBy(op);
  if (index < 0) {
    state_.AddError(DiagnosticKind::kMalformedNode, {absl::StrCat("operator ", op.index), op.op},
                    "it reads no variable that a VAR_HANDLE names", "convert the model again");
    return nullptr;
  }
  Variable& variable = variables_[static_cast<size_t>(index)];
  if (variable.current != nullptr) return variable.current;
  if (variable.input != nullptr) return variable.input;
  const TensorView& tensor = file_.tensor(op.outputs[0]);
  if (tensor.type.dtype == DType::kInvalid || tensor.is_dynamic()) {
    state_.AddError(
        DiagnosticKind::kBadTensor, {tensor.name, op.op},
        absl::StrCat("variable '", Printable(variable.name), "' is ",
                     ElementTypeName(tensor.element_type), ShapeToString(tensor.type.shape),
                     "; a state has a known shape and a type that npuc computes"),
        "convert the model with static shapes");
    return nullptr;
  }
  variable.stored = &tensor;
  variable.is_read = true;
  in_order_.push_back(index);
  variable.input = MakeInput(variable.name, tensor.type, tensor.quant);
  return variable.input;
}

ValueRef Variables::MakeInput(const std::string& name, TensorType type,
                              const std::optional<QuantParams>& quant) {
  if (quant.has_value()) type.dtype = DType::kFloat32;
  const ValueRef input = state_.AddInput(name, type);
  if (!quant.has_value()) return input;
  frontend::Emitter node(&state_, {name, "QUANTIZE"});
  absl::StatusOr<ValueRef> quantized = node.Requantized(input, *quant);
  return quantized.ok() ? *std::move(quantized) : nullptr;  // reported where it failed
}

ValueRef Variables::ReadState(const std::string& name, Shape shape,
                              const std::optional<QuantParams>& quant) {
  if (variables_.size() == kMost) {
    state_.AddError(DiagnosticKind::kModelLimitExceeded, {name, ""},
                    absl::StrCat("the model has more than ", kMost, " states"),
                    "compile a smaller model");
    return nullptr;
  }
  in_order_.push_back(static_cast<int>(variables_.size()));
  Variable& variable = variables_.emplace_back();
  variable.name = name;
  variable.is_read = true;
  variable.input = MakeInput(name, {DType::kFloat32, std::move(shape)}, quant);
  return variable.input;
}

void Variables::SetState(const std::string& name, ValueRef value) {
  for (Variable& variable : variables_) {
    if (variable.name == name) variable.current = std::move(value);
  }
}

void Variables::Assign(const OperatorView& op, ValueRef value) {
  const int index = AssignedBy(op);
  if (index < 0) {
    return state_.AddError(
        DiagnosticKind::kMalformedNode, {absl::StrCat("operator ", op.index), op.op},
        "it assigns no variable that a VAR_HANDLE names", "convert the model again");
  }
  Variable& variable = variables_[static_cast<size_t>(index)];
  if (value != nullptr && variable.stored != nullptr &&
      value->type.shape != variable.stored->type.shape) {
    return state_.AddError(DiagnosticKind::kOperandMismatch, {variable.name, op.op},
                           absl::StrCat("variable '", Printable(variable.name), "' is read as ",
                                        ShapeToString(variable.stored->type.shape),
                                        " and assigned ", ShapeToString(value->type.shape)),
                           "convert the model again");
  }
  variable.current = std::move(value);
}

void Variables::NoteInitialValue(const Variable& variable) {
  const TensorView* initial = file_.FindInitialValue(variable.name);
  if (initial == nullptr || initial->data.empty() || IsZero(*initial)) return;
  state_.diagnostics->Add(
      {.kind = DiagnosticKind::kStateBeginsElsewhere,
       .message = absl::StrCat("the model begins with variable '", Printable(variable.name),
                               "' other than 0; states of a compiled model begin with 0"),
       .file = state_.file,
       .node = variable.name,
       .op = std::string(kCallOnce),
       .fix = "write the variable's first value into that input before the first frame"});
}

void Variables::AddOutputs() {
  for (const int index : in_order_) {
    const Variable& variable = variables_[static_cast<size_t>(index)];
    NoteInitialValue(variable);
    if (variable.current != nullptr) {
      state_.AddOutput(absl::StrCat(variable.name, "_out"), variable.current, /*fp16=*/true);
    }
  }
  for (const Variable& variable : variables_) {
    if (variable.is_read || variable.current == nullptr) continue;
    state_.AddOutput(absl::StrCat(variable.name, "_out"), variable.current, /*fp16=*/false);
  }
}

}  // namespace npuc::tflite
