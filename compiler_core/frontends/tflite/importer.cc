#include "compiler_core/frontends/tflite/importer.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/const_inputs.h"
#include "compiler_core/frontends/tflite/box_decoder.h"

namespace npuc::tflite {

Importer::Importer(const ModelFile& file, const CompileOptions& options,
                   const frontend::Plugins& plugins, Graph* graph, Diagnostics* diagnostics)
    : file_(file),
      options_(options),
      state_(graph, diagnostics, options,
             "give it with CONST_INPUTS, convert the model with static shapes, or cut the model "
             "around this operator with INPUT_OPS or OUTPUT_OPS"),
      endpoints_(options, &state_),
      variables_(file, &state_),
      subgraphs_(plugins),
      shared_{.file = file,
              .state = state_,
              .cut_advice =
                  [this](absl::string_view tensor) {
                    return Advice().FixFor(std::string(tensor), "convert the model without it");
                  },
              .plugins = plugins},
      graph_(&shared_, file.main(), "", 0) {}

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
  graph_.Give(index, nullptr);
  if (!endpoints_.CheckShapeOf(tensor.name, shape)) return;
  if (tensor.type.dtype == DType::kInvalid) {
    return endpoints_.ReportType(tensor.name, ElementTypeName(tensor.element_type));
  }
  // An input that nothing computes with keeps its place, in a type that every core has.
  const bool is_float = tensor.quant.has_value() || IsStatedShape(file_.main(), index);
  const ValueRef value =
      state_.AddInput(tensor.name, {is_float ? DType::kFloat32 : tensor.type.dtype, shape});
  if (!tensor.quant.has_value()) return graph_.Give(index, value);
  frontend::Emitter node(&state_, {tensor.name, "QUANTIZE"});
  absl::StatusOr<ValueRef> quantized = node.Requantized(value, *tensor.quant);
  graph_.Give(index, quantized.ok() ? *std::move(quantized) : nullptr);  // reported where it failed
}

void Importer::AddConstInput(const ConstInput& input) {
  const int index = file_.FindTensor(input.name);
  const TensorView& tensor = file_.tensor(index);
  graph_.Give(index, nullptr);
  if (tensor.type.dtype == DType::kInvalid) {
    return endpoints_.ReportType(tensor.name, ElementTypeName(tensor.element_type));
  }
  std::vector<int64_t> dims = tensor.type.shape;
  for (size_t i = 0; i < std::min(dims.size(), tensor.signature.size()); ++i) {
    if (tensor.signature[i] < 0) dims[i] = -1;
  }
  const DType dtype = tensor.quant.has_value() ? DType::kFloat32 : tensor.type.dtype;
  const ValueRef value = frontend::ConstInputValue(state_, input, dtype, dims);
  if (value == nullptr || !tensor.quant.has_value()) return graph_.Give(index, value);
  frontend::Emitter node(&state_, {tensor.name, "QUANTIZE"});
  absl::StatusOr<ValueRef> quantized = node.Requantized(value, *tensor.quant);
  graph_.Give(index, quantized.ok() ? *std::move(quantized) : nullptr);  // reported where it failed
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
  for (const ConstInput& input : options_.const_inputs) {
    if (endpoints_.TakeInput(input.name, exists, suggest, "CONST_INPUTS")) AddConstInput(input);
  }
  for (const int index : file_.inputs()) {
    if (options_.inputs.empty() && !graph_.IsGiven(index)) {
      AddInput(index, file_.tensor(index).type.shape);
    }
  }
}

void Importer::ResolveOutputs() {
  const auto exists = [this](absl::string_view name) { return file_.FindTensor(name) >= 0; };
  const auto suggest = [this](absl::string_view name) { return Suggestion(name); };
  const CoreOutputs outputs = OutputsOfCores(file_);
  std::vector<std::string> stated;
  for (const int tensor : outputs.tensors) stated.push_back(file_.tensor(tensor).name);
  for (frontend::Endpoints::Output& output : endpoints_.TakeOutputs(stated, exists, suggest)) {
    // The file's own outputs by number: names may stand twice in it.
    const int tensor =
        options_.outputs.empty() ? outputs.tensors[output.index] : file_.FindTensor(output.name);
    outputs_.push_back({.name = std::move(output.name), .tensor = tensor, .fp16 = output.fp16});
  }
  if (outputs.decoder != nullptr) NoteDecoding(*outputs.decoder);
}

void Importer::NoteDecoding(const OperatorView& decoder) {
  const auto name = [&](size_t operand) {
    return absl::StrCat("'", Printable(file_.tensor(decoder.inputs[operand]).name), "'");
  };
  const auto is_output = [&](int tensor) {
    return std::any_of(outputs_.begin(), outputs_.end(),
                       [&](const Output& output) { return output.tensor == tensor; });
  };
  if (!is_output(decoder.inputs[0]) || !is_output(decoder.inputs[1])) return;
  boxes_ = BoxesOf(file_, decoder);
  state_.diagnostics->Add(
      {.kind = DiagnosticKind::kDecodingLeftOut,
       .message = absl::StrCat("the operator decodes boxes, which no core does; the outputs are ",
                               name(0), " and ", name(1), ", which it reads"),
       .file = state_.file,
       .node = file_.tensor(decoder.outputs[0]).name,
       .op = decoder.op,
       .fix = boxes_.has_value()
                  ? "the C code that the compile writes decodes them"
                  : absl::StrCat("decode them in the firmware, with the anchors in tensor ",
                                 name(2))});
}

void Importer::MarkNeeded() {
  std::vector<int> tensors;
  for (const Output& output : outputs_) tensors.push_back(output.tensor);
  graph_.MarkNeeded(tensors, &variables_);
  for (auto& [tensor, is_used] : cuts_) is_used = graph_.IsWanted(tensor);
  // Inputs that INPUT_OPS leave out although the outputs need them: as the file states them.
  for (const int index : file_.inputs()) {
    if (graph_.IsWanted(index) && !graph_.IsGiven(index)) {
      AddInput(index, file_.tensor(index).type.shape);
    }
  }
}

// A tensor's name may be another's, too.
void Importer::MatchSubgraphs() {
  if (subgraphs_.is_empty()) return;
  const auto name_of = [this](int tensor) {
    return tensor < 0 ? std::string() : absl::StrCat(file_.tensor(tensor).name, " (", tensor, ")");
  };
  const auto names_of = [&](const std::vector<int>& tensors) {
    std::vector<std::string> names;
    for (const int tensor : tensors) names.push_back(name_of(tensor));
    return names;
  };
  for (const auto& [tensor, is_used] : cuts_) subgraphs_.AddInput(name_of(tensor));
  for (const int tensor : file_.inputs()) subgraphs_.AddInput(name_of(tensor));
  for (const OperatorView& op : file_.operators()) {
    if (!graph_.IsNeeded(op) || op.outputs.empty()) continue;
    std::map<int, std::string> results;
    for (const int tensor : op.outputs) {
      results.emplace(static_cast<int>(results.size()), name_of(tensor));
    }
    subgraphs_.AddNode(op.index, file_.tensor(op.outputs[0]).name, op.op, names_of(op.inputs),
                       std::move(results));
  }
  for (const Output& output : outputs_) subgraphs_.AddOutput(name_of(output.tensor));
  subgraphs_.Match(*state_.diagnostics);
  graph_.Replace(&subgraphs_);
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
    if (!graph_.IsNeeded(op)) continue;
    advice_->AddNode(op.op, SubgraphImport::IsSupported(shared_, op), names(op.inputs),
                     names(op.outputs));
  }
  for (const Output& output : outputs_) advice_->AddOutput(file_.tensor(output.tensor).name);
  return *advice_;
}

void Importer::AddOutputs() {
  variables_.AddOutputs();
  state_.AddStateOutputs();
  for (const Output& output : outputs_) {
    const std::vector<int>& inputs = file_.inputs();
    if (cuts_.contains(output.tensor) ||
        std::find(inputs.begin(), inputs.end(), output.tensor) != inputs.end()) {
      endpoints_.ReportInputAsOutput(output.name);
      continue;
    }
    ValueRef value = graph_.Result(output.tensor);
    if (value == nullptr) {
      if (!state_.diagnostics->has_errors()) {
        state_.AddError(DiagnosticKind::kMissingProducer, {},
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

void Importer::Run(std::optional<BoxSettings>* boxes) {
  ResolveInputs();
  ResolveOutputs();
  MarkNeeded();
  MatchSubgraphs();
  graph_.CheckShapes(shapes_are_the_files_);
  graph_.Run(&variables_);
  AddOutputs();
  if (boxes != nullptr) *boxes = std::move(boxes_);
  if (!state_.diagnostics->has_errors()) ReportUnusedInputs();
}

}  // namespace npuc::tflite
