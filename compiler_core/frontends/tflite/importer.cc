#include "compiler_core/frontends/tflite/importer.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/status.h"

namespace npuc::tflite {
frontend::RuleTable<ImportRule> AllRules() {
  return {ElementwiseRules(), WindowRules(), LinearRules(),   ReduceRules(),
          ShapeRules(),       SliceRules(),  RecurrentRules()};
}

Importer::Importer(const ModelFile& file, const CompileOptions& options, Graph* graph,
                   Diagnostics* diagnostics)
    : file_(file),
      options_(options),
      state_(graph, diagnostics, options.model_name,
             "convert the model with static shapes, or cut the model around this operator with "
             "INPUT_OPS or OUTPUT_OPS"),
      endpoints_(options, &state_),
      variables_(file, &state_),
      is_needed_(file.operators().size(), false),
      is_wanted_(file.tensors().size(), false) {}

NodeSource Importer::SourceOf(const OperatorView& op) const {
  return {
      op.outputs.empty() ? absl::StrCat("operator ", op.index) : file_.tensor(op.outputs[0]).name,
      op.op};
}

void Importer::AddError(DiagnosticKind kind, const OperatorView* op, std::string message,
                        std::string fix) {
  state_.AddError(kind, op == nullptr ? NodeSource() : SourceOf(*op), std::move(message),
                  std::move(fix));
}

std::string Importer::Suggestion(absl::string_view name) const {
  std::vector<absl::string_view> names;
  for (const TensorView& tensor : file_.tensors()) names.emplace_back(tensor.name);
  const auto named = [&](const std::vector<int>& tensors) {
    return absl::StrJoin(tensors, ", ", [&](std::string* out, int tensor) {
      absl::StrAppend(out, "'", Printable(file_.tensor(tensor).name), "'");
    });
  };
  return frontend::SuggestName(name, names,
                               absl::StrCat("the model's inputs are ", named(file_.inputs()),
                                            ", its outputs ", named(file_.outputs())));
}

void Importer::AddInput(int index, const Shape& shape) {
  const TensorView& tensor = file_.tensor(index);
  ValueRef& value = values_[index];
  if (!endpoints_.CheckShapeOf(tensor.name, shape)) return;
  if (tensor.type.dtype == DType::kInvalid) {
    return endpoints_.ReportType(tensor.name, ElementTypeName(tensor.element_type));
  }
  value = state_.AddInput(tensor.name,
                          {tensor.quant.has_value() ? DType::kFloat32 : tensor.type.dtype, shape});
  if (!tensor.quant.has_value()) return;
  frontend::Emitter node(&state_, {tensor.name, "QUANTIZE"});
  absl::StatusOr<ValueRef> quantized = node.Requantized(value, *tensor.quant);
  value = quantized.ok() ? *std::move(quantized) : nullptr;  // reported where it failed
}

void Importer::ResolveInputs() {
  const auto exists = [this](absl::string_view name) { return file_.FindTensor(name) >= 0; };
  const auto suggest = [this](absl::string_view name) { return Suggestion(name); };
  for (const InputDecl& input : options_.inputs) {
    if (!endpoints_.TakeInput(input.name, exists, suggest)) continue;
    const int index = file_.FindTensor(input.name);
    cuts_.emplace(index, false);
    const TensorView& tensor = file_.tensor(index);
    bool fits = input.shape.size() == tensor.type.shape.size();
    for (size_t i = 0; fits && i < input.shape.size(); ++i) {
      const bool varies = i < tensor.signature.size() && tensor.signature[i] < 0;
      // A batch of another size than the one that the file was made with.
      fits = varies || i == 0 || input.shape[i] == tensor.type.shape[i];
    }
    if (!fits) {
      endpoints_.ReportConflict(input, ShapeToString(tensor.type.shape));
      continue;
    }
    shapes_are_the_files_ = shapes_are_the_files_ && input.shape == tensor.type.shape;
    AddInput(index, input.shape);
  }
  for (const int index : file_.inputs()) {
    if (options_.inputs.empty() && !values_.contains(index)) {
      AddInput(index, file_.tensor(index).type.shape);
    }
  }
}

void Importer::ResolveOutputs() {
  const auto exists = [this](absl::string_view name) { return file_.FindTensor(name) >= 0; };
  const auto suggest = [this](absl::string_view name) { return Suggestion(name); };
  std::vector<std::string> stated;
  for (const int tensor : file_.outputs()) stated.push_back(file_.tensor(tensor).name);
  for (frontend::Endpoints::Output& output : endpoints_.TakeOutputs(stated, exists, suggest)) {
    // The file's own outputs by number: names may stand twice in it.
    const int tensor =
        options_.outputs.empty() ? file_.outputs()[output.index] : file_.FindTensor(output.name);
    outputs_.push_back({.name = std::move(output.name), .tensor = tensor, .fp16 = output.fp16});
  }
}

void Importer::MarkNeeded() {
  for (const Output& output : outputs_) {
    is_wanted_[static_cast<size_t>(output.tensor)] = true;
  }
  // A variable that is read wants what it is assigned, which may read further ones.
  std::set<int> read;
  for (bool grows = true; grows;) {
    grows = false;
    for (size_t k = file_.operators().size(); k-- > 0;) {
      const OperatorView& op = file_.operators()[k];
      bool is_needed = read.contains(variables_.AssignedBy(op));
      for (const int result : op.outputs) {
        is_needed |= is_wanted_[static_cast<size_t>(result)] && !cuts_.contains(result);
      }
      is_needed_[k] = is_needed;
      if (!is_needed) continue;
      const int variable = variables_.ReadBy(op);
      if (variable >= 0) grows |= read.insert(variable).second;
      for (const int operand : op.inputs) {
        if (operand >= 0) is_wanted_[static_cast<size_t>(operand)] = true;
      }
    }
  }
  for (auto& [tensor, is_used] : cuts_) is_used = is_wanted_[static_cast<size_t>(tensor)];
  // Inputs that INPUT_OPS leave out although the outputs need them: as the file states them.
  for (const int index : file_.inputs()) {
    if (is_wanted_[static_cast<size_t>(index)] && !values_.contains(index)) {
      AddInput(index, file_.tensor(index).type.shape);
    }
  }
}

ValueRef Importer::ConstantValue(int index) {
  const TensorView& tensor = file_.tensor(index);
  state_.constant_bytes_left -= tensor.type.size_bytes();
  Tensor data(tensor.type, std::vector<uint8_t>(tensor.data.begin(), tensor.data.end()));
  const NodeSource source{tensor.name, "Const"};
  frontend::Emitter node(&state_, source);
  if (!tensor.quant.has_value()) return node.MakeConstant(std::move(data));
  return node.MakeStored({std::move(data), *tensor.quant}, source);
}

ValueRef Importer::ValueOf(int index, const OperatorView& consumer) {
  const auto it = values_.find(index);
  if (it != values_.end()) return it->second;
  const TensorView& tensor = file_.tensor(index);
  ValueRef value;
  if (tensor.is_sparse) {
    AddError(DiagnosticKind::kUnsupportedOperatorMode, &consumer,
             absl::StrCat("constant '", Printable(tensor.name), "' is stored sparse"),
             "convert the model without sparsity");
  } else if (tensor.data.empty() && tensor.type.element_count() > 0) {
    AddError(DiagnosticKind::kMissingProducer, &consumer,
             absl::StrCat("operand '", Printable(tensor.name),
                          "' is no input, no constant and no result of an earlier operator"),
             tensor.is_variable ? "export the model with its state as inputs and outputs"
                                : "convert the model again");
  } else if (tensor.type.dtype == DType::kInvalid) {
    AddError(DiagnosticKind::kBadTensor, &consumer,
             absl::StrCat("constant '", Printable(tensor.name), "' has type ",
                          ElementTypeName(tensor.element_type), ", which npuc does not compute"),
             "convert the model without it");
  } else {
    value = ConstantValue(index);
  }
  values_.emplace(index, value);
  return value;
}

void Importer::ReportNoRule(const OperatorView& op) {
  AddError(DiagnosticKind::kUnsupportedOperator, &op,
           absl::StrCat("the operator is not supported", rules_.NearestText(op.op)),
           Advice().FixFor(file_.tensor(op.outputs[0]).name, "convert the model without it"));
}

const frontend::CutAdvice& Importer::Advice() {
  if (advice_.has_value()) return *advice_;
  advice_.emplace();
  for (const auto& [tensor, is_used] : cuts_) advice_->AddInput(file_.tensor(tensor).name);
  for (const int tensor : file_.inputs()) advice_->AddInput(file_.tensor(tensor).name);
  const auto names = [this](const std::vector<int>& tensors) {
    std::vector<std::string> found;
    for (const int tensor : tensors) {
      if (tensor >= 0) found.push_back(file_.tensor(tensor).name);
    }
    return found;
  };
  for (const OperatorView& op : file_.operators()) {
    if (!is_needed_[static_cast<size_t>(op.index)]) continue;
    const bool is_supported = op.builtin_code != kCustomOperator &&
                              (rules_.Find(op.op) != nullptr || Variables::IsAbout(op));
    advice_->AddNode(op.op, is_supported, names(op.inputs), names(op.outputs));
  }
  for (const Output& output : outputs_) advice_->AddOutput(file_.tensor(output.tensor).name);
  return *advice_;
}

absl::Status Importer::CheckShapeOf(const OperatorView& op, NodeImporter& node, int result) {
  const TensorView& tensor = file_.tensor(op.outputs[static_cast<size_t>(result)]);
  const Shape& shape = node.outputs()[static_cast<size_t>(result)]->type.shape;
  // Without a binding shape in the file there is nothing to compare.
  if (!shapes_are_the_files_ || tensor.is_dynamic() || tensor.type.shape.empty() ||
      shape == tensor.type.shape) {
    return absl::OkStatus();
  }
  return node.Fail(
      DiagnosticKind::kOperandMismatch,
      absl::StrCat("result '", Printable(tensor.name), "' has shape ", ShapeToString(shape),
                   ", but the model states ", ShapeToString(tensor.type.shape)),
      "convert the model again");
}

absl::Status Importer::TakeResults(const OperatorView& op, NodeImporter& node) {
  const size_t count = std::min(op.outputs.size(), node.outputs().size());
  for (size_t i = 0; i < count; ++i) {
    const int index = op.outputs[i];
    ValueRef value = node.outputs()[i];
    if (cuts_.contains(index) || value == nullptr) continue;
    RETURN_IF_ERROR(CheckShapeOf(op, node, static_cast<int>(i)));
    const TensorView& tensor = file_.tensor(index);
    if (tensor.quant.has_value() && IsFloat(value->type.dtype)) {
      frontend::Emitter quantizer(&state_, {tensor.name, op.op});
      ASSIGN_OR_RETURN(value, quantizer.Requantized(value, *tensor.quant));
    }
    values_[index] = std::move(value);
  }
  return absl::OkStatus();
}

void Importer::ImportVariable(const OperatorView& op) {
  if (op.op == "READ_VARIABLE") {
    const ValueRef value = variables_.Read(op);
    for (const int result : op.outputs) values_.emplace(result, value);
  }
  if (op.op == "ASSIGN_VARIABLE") {
    const bool has_value = variables_.AssignedBy(op) >= 0;
    variables_.Assign(op, has_value ? ValueOf(op.inputs[1], op) : nullptr);
  }
}

void Importer::ImportOperator(const OperatorView& op) {
  if (op.builtin_code != kCustomOperator && Variables::IsAbout(op)) return ImportVariable(op);
  const ImportRule* const rule = rules_.Find(op.op);
  if (rule == nullptr || op.builtin_code == kCustomOperator) {
    ReportNoRule(op);
    for (const int result : op.outputs) values_.emplace(result, nullptr);
    return;
  }
  std::vector<ValueRef> inputs;
  bool is_complete = true;
  for (const int operand : op.inputs) {
    const bool is_state = operand >= 0 && file_.tensor(operand).is_variable;
    inputs.push_back(operand < 0 || is_state ? nullptr : ValueOf(operand, op));
    is_complete = is_complete && (operand < 0 || is_state || inputs.back() != nullptr);
  }
  // Results that stay without a value count as failed.
  absl::Status status = absl::OkStatus();
  if (is_complete) {
    NodeImporter node(&state_, &file_, &op, SourceOf(op), std::move(inputs));
    status = rule->import(node);
    if (status.ok()) status = TakeResults(op, node);
    if (!status.ok()) {
      node.ReportMismatch(status,
                          state_.diagnostics->has_errors()
                              ? "convert the model again"
                              : "check the shapes in INPUT_OPS, or convert the model again");
    }
  }
  (void)state_.ConstantsFit(SourceOf(op));
  for (const int result : op.outputs) values_.emplace(result, nullptr);
}

void Importer::AddOutputs() {
  variables_.AddOutputs();
  for (const Output& output : outputs_) {
    const std::vector<int>& inputs = file_.inputs();
    if (cuts_.contains(output.tensor) ||
        std::find(inputs.begin(), inputs.end(), output.tensor) != inputs.end()) {
      endpoints_.ReportInputAsOutput(output.name);
      continue;
    }
    const auto it = values_.find(output.tensor);
    ValueRef value = it == values_.end() ? nullptr : it->second;
    if (it == values_.end() && !file_.tensor(output.tensor).data.empty()) {
      value = ConstantValue(output.tensor);
    }
    if (value == nullptr) {
      if (!state_.diagnostics->has_errors()) {
        AddError(DiagnosticKind::kMissingProducer, nullptr,
                 absl::StrCat("no operator computes output '", Printable(output.name), "'"),
                 "name another output in OUTPUT_OPS");
      }
      continue;
    }
    state_.AddOutput(output.name, std::move(value), output.fp16);
  }
}

void Importer::ReportUnusedInputs() {
  for (const auto& [tensor, is_used] : cuts_) {
    if (is_used) continue;
    endpoints_.ReportUnused(file_.tensor(tensor).name);
  }
}

void Importer::Run() {
  ResolveInputs();
  ResolveOutputs();
  MarkNeeded();
  for (const OperatorView& op : file_.operators()) {
    if (is_needed_[static_cast<size_t>(op.index)]) ImportOperator(op);
  }
  AddOutputs();
  if (!state_.diagnostics->has_errors()) ReportUnusedInputs();
}

}  // namespace npuc::tflite
