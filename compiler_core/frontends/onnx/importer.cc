#include "compiler_core/frontends/onnx/importer.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/frontends/common/const_inputs.h"
#include "compiler_core/frontends/common/outline.h"

namespace npuc::onnx {

Importer::Importer(const ModelFile& file, const CompileOptions& options, ExternalFile external,
                   const frontend::Plugins& plugins, Graph* graph, Diagnostics* diagnostics)
    : file_(file),
      main_(file.main()),
      options_(options),
      state_(
          graph, diagnostics, options,
          "make it an initializer, or cut the model around this node with INPUT_OPS or OUTPUT_OPS"),
      endpoints_(options, &state_),
      subgraphs_(plugins),
      shared_{.file = file,
              .state = state_,
              .cut_advice =
                  [this](absl::string_view tensor) {
                    return Advice().FixFor(std::string(tensor), "export the model without it");
                  },
              .add_needed_inputs = [this] { AddNeededInputs(); },
              .plugins = plugins},
      graph_(&shared_, main_, nullptr, "") {
  state_.external = std::move(external);
}

void Importer::AddError(DiagnosticKind kind, NodeSource source, std::string message,
                        std::string fix) {
  state_.AddError(kind, std::move(source), std::move(message), std::move(fix));
}

std::string Importer::Suggestion(absl::string_view name, absl::string_view otherwise) const {
  return frontend::SuggestName(name, main_.TensorNames(), otherwise);
}

bool Importer::InputType(const std::string& name, const TensorInfo* info, const Shape* declared,
                         TensorType* type) {
  if (info != nullptr && !info->is_tensor) {
    AddError(DiagnosticKind::kInputTypeUnsupported, {},
             absl::StrCat("input '", Printable(name),
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
  const std::optional<std::vector<int64_t>> dims = DimsOf(info);
  if (declared != nullptr && dims.has_value() && frontend::Contradicts(*dims, *declared)) {
    endpoints_.ReportConflict({name, *declared}, ToString(*dims));
    return false;
  }
  Shape stated;
  if (declared == nullptr && dims.has_value()) {
    stated = *dims;
    if (OnlyBatchIsUnknown(*dims)) {
      stated[0] = 1;
      NoteOneItem(name, *dims);
    }
    declared = &stated;
  }
  if (declared == nullptr ||
      std::any_of(declared->begin(), declared->end(), [](int64_t dim) { return dim < 0; })) {
    ReportOpenShape(name, info, dims);
    return false;
  }
  if (!endpoints_.CheckShapeOf(name, *declared)) return false;
  type->shape = *declared;
  return true;
}

std::optional<std::vector<int64_t>> Importer::DimsOf(const TensorInfo* info) {
  if (info == nullptr || !info->dims.has_value()) return std::nullopt;
  std::vector<int64_t> dims = *info->dims;
  for (size_t i = 0; i < dims.size(); ++i) {
    const auto given = options_.dims.find(info->dim_names[i]);
    if (dims[i] >= 0 || given == options_.dims.end()) continue;
    dims[i] = given->second;
    dims_taken_.insert(given->first);
  }
  return dims;
}

void Importer::ReportOpenShape(const std::string& name, const TensorInfo* info,
                               const std::optional<std::vector<int64_t>>& dims) {
  std::vector<std::string> named;
  for (size_t i = 0; dims.has_value() && i < dims->size(); ++i) {
    if ((*dims)[i] < 0 && !info->dim_names[i].empty()) named.push_back(info->dim_names[i]);
  }
  const std::string shown = Printable(name);
  std::string fix = absl::StrCat("add '", shown, ": ", ShapeToWrite(dims),
                                 "' to INPUT_OPS with the shape at inference time");
  if (!named.empty()) {
    absl::StrAppend(&fix, ", or name the dimension in DIMS: {'", Printable(named[0]), "': ...}");
  }
  AddError(DiagnosticKind::kOpenInput, {},
           absl::StrCat("input '", shown, "' is ",
                        dims.has_value() ? ToString(*dims) : "of unknown shape",
                        "; every dimension must be known"),
           std::move(fix));
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
  AddConstInputs();
  if (!options_.inputs.empty()) return;
  for (const TensorInfo& input : main_.inputs()) {
    if (main_.FindInitializer(input.name) == nullptr && !graph_.IsGiven(input.name)) {
      graph_.Give(input.name, NewInput(input.name, &input, nullptr));
    }
  }
}

// A tensor of which the file states no type has whole numbers as i64, as shapes do.
void Importer::AddConstInputs() {
  const auto exists = [this](absl::string_view name) { return main_.Defines(name); };
  const auto suggest = [this](absl::string_view name) {
    return Suggestion(name, "name an input or a node's result");
  };
  for (const ConstInput& input : options_.const_inputs) {
    if (!endpoints_.TakeInput(input.name, exists, suggest, "CONST_INPUTS")) continue;
    const int index = main_.FindInput(input.name);
    const TensorInfo* info =
        index >= 0 ? &main_.inputs()[static_cast<size_t>(index)] : main_.FindInfo(input.name);
    DType dtype = input.is_whole ? DType::kInt64 : DType::kFloat32;
    if (info != nullptr && info->data_type != 0) dtype = DTypeFromWire(info->data_type);
    if (dtype == DType::kInvalid) {
      endpoints_.ReportType(input.name, DataTypeName(info->data_type));
      graph_.Give(input.name, nullptr);
      continue;
    }
    graph_.Give(input.name, frontend::ConstInputValue(state_, input, dtype, DimsOf(info)));
  }
}

void Importer::ReportUnusedDims() {
  std::vector<absl::string_view> known;
  for (const TensorInfo& input : main_.inputs()) {
    for (const std::string& name : input.dim_names) {
      if (!name.empty()) known.emplace_back(name);
    }
  }
  for (const auto& [name, size] : options_.dims) {
    if (dims_taken_.contains(name)) continue;
    const bool is_known = std::find(known.begin(), known.end(), name) != known.end();
    AddError(DiagnosticKind::kInputNotInModel, {},
             absl::StrCat("DIMS names '", Printable(name), "', which is no open dimension of ",
                          is_known ? "an input that needs it" : "the model's inputs"),
             is_known ? std::string("remove it, or do not list those inputs in INPUT_OPS")
                      : frontend::SuggestName(name, known, "remove it"));
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

void Importer::MatchSubgraphs() {
  if (subgraphs_.is_empty()) return;
  for (const std::string& name : cuts_) subgraphs_.AddInput(name);
  for (const TensorInfo& input : main_.inputs()) {
    if (main_.FindInitializer(input.name) == nullptr) subgraphs_.AddInput(input.name);
  }
  for (const int index : order_) {
    const NodeView& node = main_.node(index);
    std::vector<std::string> operands;
    std::map<int, std::string> results;
    for (int i = 0; i < node.input_count(); ++i) operands.emplace_back(node.input(i));
    for (int i = 0; i < node.output_count(); ++i) results.emplace(i, node.output(i));
    // Operands of graphs inside of the node stand behind its own, at no place of a pattern.
    const std::vector<std::string> captured = GraphImport::Captured(file_, node);
    operands.insert(operands.end(), captured.begin(), captured.end());
    subgraphs_.AddNode(index, node.name(), NameOf(node), std::move(operands), std::move(results));
  }
  for (const Endpoints::Output& output : outputs_) subgraphs_.AddOutput(output.name);
  subgraphs_.Match(*state_.diagnostics);
  graph_.Replace(&subgraphs_);
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
  state_.AddStateOutputs();
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
    if (IsSequence(value)) {
      AddError(DiagnosticKind::kUnsupportedOperatorMode, value->source,
               absl::StrCat("output '", Printable(output.name), "' is a sequence of tensors"),
               "name tensors of it in OUTPUT_OPS");
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
  MatchSubgraphs();
  graph_.Run(order_);
  AddOutputs();
  if (!state_.diagnostics->has_errors()) {
    ReportUnusedInputs();
    ReportUnusedDims();
  }
}

}  // namespace npuc::onnx
