#include "compiler_core/frontends/onnx/importer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/frontends/common/outline.h"
#include "compiler_core/frontends/onnx/tensor_proto.h"

namespace npuc::onnx {

frontend::RuleTable<ImportRule> AllRules() {
  return {BasicRules(),  ElementwiseRules(), ActivationRules(), LinearRules(),    ConvRules(),
          PoolRules(),   NormRules(),        ShapeRules(),      GatherRules(),    ReduceRules(),
          ResizeRules(), RecurrentRules(),   LossRules(),       QuantizedRules(), MicrosoftRules()};
}

Importer::Importer(const ModelFile& file, const CompileOptions& options, Graph* graph,
                   Diagnostics* diagnostics)
    : file_(file),
      options_(options),
      state_(
          graph, diagnostics, options.model_name,
          "make it an initializer, or cut the model around this node with INPUT_OPS or OUTPUT_OPS"),
      endpoints_(options, &state_),
      visits_(static_cast<size_t>(file.node_count()), Visit::kUnseen),
      is_needed_(file.inputs().size(), false) {
  state_.opset = file.opset();
}

void Importer::AddError(DiagnosticKind kind, int node, std::string message, std::string fix) {
  state_.AddError(kind, node < 0 ? NodeSource() : file_.node(node).source(), std::move(message),
                  std::move(fix));
}

bool Importer::Exists(absl::string_view name) const {
  return file_.FindInput(name) >= 0 || file_.FindProducer(name).node >= 0 ||
         file_.FindInitializer(name) != nullptr;
}

std::string Importer::Suggestion(absl::string_view name, absl::string_view otherwise) const {
  return frontend::SuggestName(name, file_.TensorNames(), otherwise);
}

bool Importer::InputType(const std::string& name, const TensorInfo* info, const Shape* declared,
                         TensorType* type) {
  const std::string shown = Printable(name);
  if (info != nullptr && !info->is_tensor) {
    AddError(DiagnosticKind::kInputTypeUnsupported, -1,
             absl::StrCat("input '", shown,
                          "' is a sequence, a map or an optional value; model "
                          "inputs must be tensors"),
             "export the model with an input for each tensor");
    return false;
  }
  type->dtype = DType::kFloat32;
  if (info != nullptr && info->data_type != 0) type->dtype = DTypeFromWire(info->data_type);
  if (type->dtype == DType::kInvalid) {
    endpoints_.ReportType(name, DataTypeName(info->data_type));
    return false;
  }
  const bool is_known = info != nullptr && info->dims.has_value();
  if (declared != nullptr && is_known && frontend::Contradicts(*info->dims, *declared)) {
    endpoints_.ReportConflict({name, *declared}, ToString(*info->dims));
    return false;
  }
  Shape one_item;
  if (declared == nullptr && is_known && OnlyBatchIsUnknown(*info->dims)) {
    one_item = *info->dims;
    one_item[0] = 1;
    declared = &one_item;
    NoteOneItem(name, *info->dims);
  }
  if (declared == nullptr) {
    if (!is_known ||
        std::any_of(info->dims->begin(), info->dims->end(), [](int64_t dim) { return dim < 0; })) {
      AddError(
          DiagnosticKind::kOnnxDynamicInput, -1,
          absl::StrCat("input '", shown, "' is ",
                       is_known ? ToString(*info->dims) : "of unknown shape",
                       "; every dimension must be known"),
          absl::StrCat("add '", shown, ": ", ShapeToWrite(is_known ? info->dims : std::nullopt),
                       "' to INPUT_OPS with the shape at inference time"));
      return false;
    }
    declared = &*info->dims;
  }
  if (!endpoints_.CheckShapeOf(name, *declared)) return false;
  type->shape = *declared;
  return true;
}

void Importer::NoteOneItem(const std::string& name, const std::vector<int64_t>& stated) {
  state_.diagnostics->Add(
      {.kind = DiagnosticKind::kInputOfOneItem,
       .message = absl::StrCat("input '", Printable(name), "' is ", ToString(stated),
                               "; it is taken as one item, ", ShapeToWrite(stated)),
       .file = state_.file,
       .fix = "for another number declare it in INPUT_OPS"});
}

void Importer::AddInput(const std::string& name, const TensorInfo* info, const Shape* declared) {
  TensorType type;
  values_[name] = InputType(name, info, declared, &type) ? state_.AddInput(name, type) : nullptr;
}

void Importer::ResolveInputs() {
  const auto exists = [this](absl::string_view name) { return Exists(name); };
  for (const InputDecl& input : options_.inputs) {
    const bool taken = endpoints_.TakeInput(input.name, exists, [this](absl::string_view name) {
      return Suggestion(name, "name an input or a node's result");
    });
    if (!taken) continue;
    cuts_.emplace(input.name, false);
    const int index = file_.FindInput(input.name);
    const TensorInfo* info =
        index >= 0 ? &file_.inputs()[static_cast<size_t>(index)] : file_.FindInfo(input.name);
    AddInput(input.name, info, &input.shape);
  }
  if (!options_.inputs.empty()) return;
  for (const TensorInfo& input : file_.inputs()) {
    if (file_.FindInitializer(input.name) == nullptr && !values_.contains(input.name)) {
      AddInput(input.name, &input, nullptr);
    }
  }
}

void Importer::ResolveOutputs() {
  std::vector<std::string> stated;
  for (const TensorInfo& output : file_.outputs()) stated.push_back(output.name);
  outputs_ = endpoints_.TakeOutputs(
      stated, [this](absl::string_view name) { return Exists(name); },
      [this](absl::string_view name) { return Suggestion(name, "name a node's result"); });
}

void Importer::ReportCycle(const std::vector<frontend::OrderingStep>& stack, int node) {
  AddError(DiagnosticKind::kGraphCycle, node,
           frontend::CircleMessage(stack, node, [&](int i) { return file_.node(i).name(); }),
           "export the model again");
}

// Depth first without recursion.
void Importer::OrderFrom(absl::string_view tensor) {
  std::vector<frontend::OrderingStep> stack;
  const auto visit = [&](absl::string_view name) {
    const auto cut = cuts_.find(name);
    if (cut != cuts_.end()) {
      cut->second = true;
      return;
    }
    const int input = file_.FindInput(name);
    if (input >= 0) is_needed_[static_cast<size_t>(input)] = true;
    const int producer = input >= 0 ? -1 : file_.FindProducer(name).node;
    if (producer < 0) return;
    Visit& state = visits_[static_cast<size_t>(producer)];
    if (state == Visit::kActive) ReportCycle(stack, producer);
    if (state != Visit::kUnseen) return;
    state = Visit::kActive;
    stack.emplace_back(producer, 0);
  };
  visit(tensor);
  while (!stack.empty()) {
    const int index = stack.back().first;
    const NodeView& node = file_.node(index);
    if (stack.back().second == static_cast<size_t>(node.input_count())) {
      visits_[static_cast<size_t>(index)] = Visit::kOrdered;
      order_.push_back(index);
      stack.pop_back();
      continue;
    }
    visit(node.input(static_cast<int>(stack.back().second++)));
  }
}

// Inputs that INPUT_OPS leave out although the outputs need them: as the file states them.
void Importer::AddNeededInputs() {
  for (size_t i = 0; i < is_needed_.size(); ++i) {
    const TensorInfo& input = file_.inputs()[i];
    if (!is_needed_[i] || values_.contains(input.name) ||
        file_.FindInitializer(input.name) != nullptr) {
      continue;
    }
    AddInput(input.name, &input, nullptr);
  }
}

ValueRef Importer::InitializerValue(absl::string_view name, const fe::onnx::TensorProto& tensor,
                                    int consumer) {
  absl::StatusOr<Tensor> decoded = DecodeTensor(tensor, state_.constant_bytes_left);
  if (!decoded.ok()) {
    DiagnosticKind kind = DiagnosticKind::kBadTensor;
    std::string fix = "export the model again";
    if (absl::IsResourceExhausted(decoded.status())) {
      kind = DiagnosticKind::kModelLimitExceeded;
      fix = "compile a smaller model";
    } else if (absl::IsNotFound(decoded.status())) {
      kind = DiagnosticKind::kOnnxExternalData;
      fix = "save the model in one file (save_as_external_data=False)";
    }
    AddError(kind, consumer,
             absl::StrCat("initializer '", Printable(name), "': ", decoded.status().message()),
             std::move(fix));
    return nullptr;
  }
  state_.constant_bytes_left -= decoded->type().size_bytes();
  return frontend::ConstantValue(*std::move(decoded), {std::string(name), "Constant"});
}

ValueRef Importer::ValueOf(absl::string_view name, int consumer) {
  const auto it = values_.find(name);
  if (it != values_.end()) return it->second;
  ValueRef value;
  const fe::onnx::TensorProto* initializer = file_.FindInitializer(name);
  if (initializer != nullptr) {
    value = InitializerValue(name, *initializer, consumer);
  } else if (file_.FindProducer(name).node < 0) {
    AddError(DiagnosticKind::kMissingProducer, consumer,
             absl::StrCat("'", Printable(name),
                          "' is no input, no initializer and no node's "
                          "result"),
             Suggestion(name, "export the model again"));
  }
  values_.emplace(std::string(name), value);
  return value;
}

void Importer::ReportNoRule(int index) {
  const NodeView& node = file_.node(index);
  std::string message = node.domain().empty()
                            ? std::string("the operator is not supported")
                            : absl::StrCat("the operator of domain '", Printable(node.domain()),
                                           "' is not supported");
  if (node.HasGraphs()) absl::StrAppend(&message, ", nor are the graphs inside of it");
  if (node.domain().empty()) absl::StrAppend(&message, rules_.NearestText(node.op()));
  AddError(DiagnosticKind::kUnsupportedOperator, index, std::move(message),
           Advice().FixFor(std::string(node.output(0)), "export the model without it"));
}

const frontend::CutAdvice& Importer::Advice() {
  if (advice_.has_value()) return *advice_;
  advice_.emplace();
  for (const auto& [name, is_used] : cuts_) advice_->AddInput(name);
  for (const TensorInfo& input : file_.inputs()) {
    if (file_.FindInitializer(input.name) == nullptr) advice_->AddInput(input.name);
  }
  for (const int index : order_) {
    const NodeView& node = file_.node(index);
    std::vector<std::string> operands, results;
    for (int i = 0; i < node.input_count(); ++i) {
      if (!node.input(i).empty()) operands.emplace_back(node.input(i));
    }
    for (int i = 0; i < node.output_count(); ++i) {
      if (!node.output(i).empty()) results.emplace_back(node.output(i));
    }
    const bool is_supported = node.domain().empty() && rules_.Find(node.op()) != nullptr;
    advice_->AddNode(node.op(), is_supported, operands, results);
  }
  for (const Endpoints::Output& output : outputs_) advice_->AddOutput(output.name);
  return *advice_;
}

void Importer::ImportNode(int index) {
  const NodeView& node = file_.node(index);
  const ImportRule* const rule = node.domain().empty()
                                     ? rules_.Find(node.op())
                                     : rules_.Find(absl::StrCat(node.domain(), ".", node.op()));
  if (rule == nullptr) {
    ReportNoRule(index);
    return;
  }
  std::vector<ValueRef> inputs;
  bool is_complete = true;
  for (int i = 0; i < node.input_count(); ++i) {
    if (node.input(i).empty()) {
      inputs.push_back(nullptr);
      continue;
    }
    inputs.push_back(ValueOf(node.input(i), index));
    is_complete = is_complete && inputs.back() != nullptr;
  }
  if (!is_complete) return;
  NodeImporter importer(&state_, &node, std::move(inputs));
  const absl::Status status = rule->import(importer);
  if (!status.ok()) {
    return importer.ReportMismatch(
        status, "check the shapes in INPUT_OPS against those that the model was trained with");
  }
  if (!state_.ConstantsFit(node.source())) return;
  for (size_t i = 0; i < importer.outputs().size(); ++i) {
    if (static_cast<int>(i) >= node.output_count() || node.output(static_cast<int>(i)).empty()) {
      continue;
    }
    const absl::string_view name = node.output(static_cast<int>(i));
    if (!cuts_.contains(name)) values_[std::string(name)] = importer.outputs()[i];
  }
}

void Importer::AddOutputs() {
  for (const Endpoints::Output& output : outputs_) {
    if (cuts_.contains(output.name) || file_.FindInput(output.name) >= 0) {
      endpoints_.ReportInputAsOutput(output.name);
      continue;
    }
    const auto it = values_.find(output.name);
    const int producer = file_.FindProducer(output.name).node;
    ValueRef value = it != values_.end() ? it->second : nullptr;
    if (it == values_.end() && producer < 0) value = ValueOf(output.name, -1);
    if (value == nullptr) {
      if (!state_.diagnostics->has_errors()) {
        AddError(DiagnosticKind::kUnsupportedOperatorMode, producer,
                 absl::StrCat("result '", Printable(output.name), "' of the node is not supported"),
                 "name another output in OUTPUT_OPS");
      }
      continue;
    }
    value = frontend::WrittenAsFloat(std::move(value));
    if (value->constant.has_value() && !value->id.valid()) {  // NaN, too, may be an output
      value->id = state_.builder.Const(*value->constant, value->source);
    }
    state_.AddOutput(output.name, std::move(value), output.fp16);
  }
}

void Importer::ReportUnusedInputs() {
  for (const InputDecl& input : options_.inputs) {
    const auto cut = cuts_.find(input.name);
    if (cut == cuts_.end() || cut->second) continue;
    endpoints_.ReportUnused(input.name);
  }
}

void Importer::Run() {
  ResolveInputs();
  ResolveOutputs();
  for (const Endpoints::Output& output : outputs_) OrderFrom(output.name);
  AddNeededInputs();
  for (int node : order_) ImportNode(node);
  AddOutputs();
  if (!state_.diagnostics->has_errors()) ReportUnusedInputs();
}

}  // namespace npuc::onnx
