#include "compiler_core/frontends/onnx/importer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/frontends/common/outline.h"

namespace npuc::onnx {

Importer::Importer(const ModelFile& file, const CompileOptions& options, Graph* graph,
                   Diagnostics* diagnostics)
    : file_(file),
      main_(file.main()),
      options_(options),
      state_(
          graph, diagnostics, options.model_name,
          "make it an initializer, or cut the model around this node with INPUT_OPS or OUTPUT_OPS"),
      endpoints_(options, &state_),
      shared_{.file = file,
              .state = state_,
              .cut_advice =
                  [this](absl::string_view tensor) {
                    return Advice().FixFor(std::string(tensor), "export the model without it");
                  },
              .add_needed_inputs = [this] { AddNeededInputs(); }},
      graph_(&shared_, main_, nullptr, "") {}

void Importer::AddError(DiagnosticKind kind, NodeSource source, std::string message,
                        std::string fix) {
  state_.AddError(kind, std::move(source), std::move(message), std::move(fix));
}

std::string Importer::Suggestion(absl::string_view name, absl::string_view otherwise) const {
  return frontend::SuggestName(name, main_.TensorNames(), otherwise);
}

bool Importer::InputType(const std::string& name, const TensorInfo* info, const Shape* declared,
                         TensorType* type) {
  const std::string shown = Printable(name);
  if (info != nullptr && !info->is_tensor) {
    AddError(DiagnosticKind::kInputTypeUnsupported, {},
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
          DiagnosticKind::kOnnxDynamicInput, {},
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

ValueRef Importer::NewInput(const std::string& name, const TensorInfo* info,
                            const Shape* declared) {
  TensorType type;
  return InputType(name, info, declared, &type) ? state_.AddInput(name, type) : nullptr;
}

void Importer::ResolveInputs() {
  const auto exists = [this](absl::string_view name) { return main_.Defines(name); };
  for (const InputDecl& input : options_.inputs) {
    const bool taken = endpoints_.TakeInput(input.name, exists, [this](absl::string_view name) {
      return Suggestion(name, "name an input or a node's result");
    });
    if (!taken) continue;
    cuts_.push_back(input.name);
    const int index = main_.FindInput(input.name);
    const TensorInfo* info =
        index >= 0 ? &main_.inputs()[static_cast<size_t>(index)] : main_.FindInfo(input.name);
    graph_.Give(input.name, NewInput(input.name, info, &input.shape));
  }
  if (!options_.inputs.empty()) return;
  for (const TensorInfo& input : main_.inputs()) {
    if (main_.FindInitializer(input.name) == nullptr && !graph_.IsGiven(input.name)) {
      graph_.Give(input.name, NewInput(input.name, &input, nullptr));
    }
  }
}

void Importer::ResolveOutputs() {
  std::vector<std::string> stated;
  for (const TensorInfo& output : main_.outputs()) stated.push_back(output.name);
  outputs_ = endpoints_.TakeOutputs(
      stated, [this](absl::string_view name) { return main_.Defines(name); },
      [this](absl::string_view name) { return Suggestion(name, "name a node's result"); });
}

// Inputs that INPUT_OPS leave out although the outputs need them: as the file states them.
void Importer::AddNeededInputs() {
  for (size_t i = 0; i < main_.inputs().size(); ++i) {
    const TensorInfo& input = main_.inputs()[i];
    if (!graph_.NeedsInput(static_cast<int>(i)) || graph_.IsGiven(input.name) ||
        main_.FindInitializer(input.name) != nullptr) {
      continue;
    }
    graph_.Give(input.name, NewInput(input.name, &input, nullptr));
  }
}

const frontend::CutAdvice& Importer::Advice() {
  if (advice_.has_value()) return *advice_;
  advice_.emplace();
  for (const std::string& name : cuts_) advice_->AddInput(name);
  for (const TensorInfo& input : main_.inputs()) {
    if (main_.FindInitializer(input.name) == nullptr) advice_->AddInput(input.name);
  }
  for (const int index : order_) {
    const NodeView& node = main_.node(index);
    std::vector<std::string> operands = GraphImport::Captured(file_, node);
    std::vector<std::string> results;
    for (int i = 0; i < node.input_count(); ++i) {
      if (!node.input(i).empty()) operands.emplace_back(node.input(i));
    }
    for (int i = 0; i < node.output_count(); ++i) {
      if (!node.output(i).empty()) results.emplace_back(node.output(i));
    }
    advice_->AddNode(node.op(), GraphImport::IsSupported(shared_, node), operands, results);
  }
  for (const Endpoints::Output& output : outputs_) advice_->AddOutput(output.name);
  return *advice_;
}

void Importer::AddOutputs() {
  for (const Endpoints::Output& output : outputs_) {
    if (graph_.IsGiven(output.name) || main_.FindInput(output.name) >= 0) {
      endpoints_.ReportInputAsOutput(output.name);
      continue;
    }
    ValueRef value = graph_.Result(output.name);
    if (value == nullptr) {
      if (!state_.diagnostics->has_errors()) {
        const int producer = main_.FindProducer(output.name).node;
        AddError(DiagnosticKind::kUnsupportedOperatorMode,
                 producer < 0 ? NodeSource() : main_.node(producer).source(),
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
  for (const std::string& name : cuts_) {
    if (!graph_.IsUsed(name)) endpoints_.ReportUnused(name);
  }
}

void Importer::Run() {
  ResolveInputs();
  ResolveOutputs();
  std::vector<absl::string_view> wanted;
  for (const Endpoints::Output& output : outputs_) wanted.push_back(output.name);
  order_ = graph_.Ordered(wanted);
  AddNeededInputs();
  graph_.Run(order_);
  AddOutputs();
  if (!state_.diagnostics->has_errors()) ReportUnusedInputs();
}

}  // namespace npuc::onnx
