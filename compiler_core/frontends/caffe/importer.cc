#include "compiler_core/frontends/caffe/importer.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/frontends/caffe/schema.h"
#include "compiler_core/frontends/common/const_inputs.h"
#include "compiler_core/frontends/common/outline.h"
#include "compiler_core/frontends/common/plugin_import.h"

namespace npuc::caffe {
namespace {

std::string Quoted(absl::string_view name) { return absl::StrCat("'", Printable(name), "'"); }

// The options, with the tensors that a decoding layer reads where OUTPUT_OPS names its results.
CompileOptions WithRawOutputs(const Net& net, CompileOptions options) {
  std::vector<std::string> outputs;
  for (const std::string& name : options.outputs) {
    const auto decoding =
        std::find_if(net.decodings().begin(), net.decodings().end(), [&](const Decoding& d) {
          return std::find(d.results.begin(), d.results.end(), name) != d.results.end();
        });
    if (decoding == net.decodings().end() || net.Find(name) >= 0) {
      outputs.push_back(name);
      continue;
    }
    for (const int raw : decoding->layer.bottoms) {
      if (raw >= 0) outputs.push_back(net.tensors()[static_cast<size_t>(raw)].name);
    }
  }
  options.outputs = std::move(outputs);
  return options;
}

}  // namespace

Importer::Importer(const Net& net, const CompileOptions& options, const frontend::Plugins& plugins,
                   Graph* graph, Diagnostics* diagnostics)
    : net_(net),
      options_(WithRawOutputs(net, options)),
      state_(graph, diagnostics, options,
             "make it a blob of the layer, or cut the model around this layer with INPUT_OPS or "
             "OUTPUT_OPS"),
      endpoints_(options_, &state_),
      plugins_(plugins),
      subgraphs_(plugins),
      values_(net.tensors().size()) {}

int Importer::FindInput(absl::string_view name) const {
  for (size_t i = 0; i < net_.tensors().size(); ++i) {
    if (net_.tensors()[i].layer < 0 && net_.tensors()[i].blob == name) return static_cast<int>(i);
  }
  return net_.Find(name);
}

std::string Importer::Suggestion(absl::string_view name, absl::string_view otherwise) const {
  return frontend::SuggestName(name, net_.TensorNames(), otherwise);
}

ValueRef Importer::NewInput(int index, const std::string& name, const Shape* declared) {
  const std::optional<std::vector<int64_t>>& dims = tensor(index).dims;
  // A net takes inputs of any size, so a shape that it states is a proposal.
  if (declared != nullptr && dims.has_value() && dims->size() != declared->size()) {
    endpoints_.ReportConflict({name, *declared}, OutlineShape(dims));
    return nullptr;
  }
  const bool is_known = declared != nullptr ||
                        (dims.has_value() &&
                         std::none_of(dims->begin(), dims->end(), [](int64_t d) { return d < 0; }));
  if (!is_known) {
    AddError(DiagnosticKind::kOpenInput, {},
             absl::StrCat("input ", Quoted(name), " is ", OutlineShape(dims),
                          "; every dimension must be known"),
             absl::StrCat("add '", Printable(name), ": ", ShapeToWrite(dims),
                          "' to INPUT_OPS with the shape at inference time"));
    return nullptr;
  }
  TensorType type{DType::kFloat32, declared != nullptr ? *declared : *dims};
  if (!endpoints_.CheckShapeOf(name, type.shape)) return nullptr;
  return state_.AddInput(name, type);
}

void Importer::ResolveInputs() {
  const auto exists = [this](absl::string_view name) { return FindInput(name) >= 0; };
  const auto suggest = [this](absl::string_view name) {
    return Suggestion(name, "name an input or the top of a layer");
  };
  for (const InputDecl& input : options_.inputs) {
    if (!endpoints_.TakeInput(input.name, exists, suggest)) continue;
    const int index = FindInput(input.name);
    value(index) = {.is_given = true, .value = NewInput(index, input.name, &input.shape)};
  }
  for (const ConstInput& input : options_.const_inputs) {
    if (!endpoints_.TakeInput(input.name, exists, suggest, "CONST_INPUTS")) continue;
    const int index = FindInput(input.name);
    value(index) = {
        .is_given = true,
        .value = frontend::ConstInputValue(state_, input, DType::kFloat32, tensor(index).dims)};
  }
}

void Importer::ResolveOutputs() {
  std::vector<std::string> stated;
  for (const int output : net_.Outputs()) stated.push_back(tensor(output).name);
  outputs_ = endpoints_.TakeOutputs(
      stated, [this](absl::string_view name) { return net_.Find(name) >= 0; },
      [this](absl::string_view name) { return Suggestion(name, "name the top of a layer"); });
}

std::vector<const Layer*> Importer::PriorLayers(int tensor) const {
  std::vector<const Layer*> layers;
  if (tensor < 0 || net_.tensors()[static_cast<size_t>(tensor)].layer < 0) return layers;
  const auto layer_of = [this](int t) -> const Layer* {
    if (t < 0 || net_.tensors()[static_cast<size_t>(t)].layer < 0) return nullptr;
    return &net_.layers()[static_cast<size_t>(net_.tensors()[static_cast<size_t>(t)].layer)];
  };
  const Layer* const last = layer_of(tensor);
  const std::vector<int> sources =
      last->type == "Concat" ? last->bottoms : std::vector<int>{tensor};
  for (const int source : sources) {
    const Layer* const layer = layer_of(source);
    if (layer == nullptr || layer->type != "PriorBox" || layer->bottoms.size() != 2) return {};
    layers.push_back(layer);
  }
  return layers;
}

std::optional<BoxSettings> Importer::BoxesOf(const Decoding& decoding) {
  const std::vector<int>& raw = decoding.layer.bottoms;
  const std::vector<const Layer*> layers = PriorLayers(decoding.priors);
  if (raw.size() != 2 || raw[0] < 0 || raw[1] < 0 || layers.empty()) return std::nullopt;
  std::optional<BoxSettings> settings = BoxesOfDetectionOutput(LayerView(&decoding.layer));
  if (!settings.has_value()) return std::nullopt;
  settings->location = tensor(raw[0]).name;
  settings->confidence = tensor(raw[1]).name;
  const bool has_variances = settings->variances.empty();
  for (const Layer* const layer : layers) {
    std::vector<ValueRef> operands;
    for (const int bottom : layer->bottoms) {
      operands.push_back(bottom < 0 ? nullptr : value(bottom).value);
      if (operands.back() == nullptr) return std::nullopt;  // no output needs it
    }
    const LayerView view(layer);
    LayerImporter node(&state_, &view, std::move(operands), &next_states_);
    if (!AddPriors(node, has_variances, *settings)) return std::nullopt;
  }
  return settings;
}

// Layers whose work the firmware does, where the outputs are what they read.
void Importer::NoteDecodings(std::optional<BoxSettings>* boxes) {
  for (const Decoding& decoding : net_.decodings()) {
    std::vector<std::string> raw;
    for (const int index : decoding.layer.bottoms) {
      if (index >= 0 && value(index).is_needed) raw.push_back(Quoted(tensor(index).name));
    }
    if (raw.empty()) continue;
    std::optional<BoxSettings> found;
    if (net_.decodings().size() == 1) found = BoxesOf(decoding);
    state_.diagnostics->Add(
        {.kind = DiagnosticKind::kDecodingLeftOut,
         .message = absl::StrCat("the layer decodes boxes, which no core does; the outputs are ",
                                 absl::StrJoin(raw, " and "), ", which it reads"),
         .file = state_.file,
         .node = decoding.layer.name,
         .op = decoding.layer.type,
         .fix = found.has_value() ? "the C code that the compile writes decodes them"
                                  : "decode them in the firmware, by the layer's parameters"});
    if (boxes != nullptr) *boxes = std::move(found);
  }
}

// Layers stand behind what they read, so one walk from the last to the first finds all.
void Importer::MarkNeeded() {
  for (const Endpoints::Output& output : outputs_) value(net_.Find(output.name)).is_needed = true;
  for (auto layer = net_.layers().rbegin(); layer != net_.layers().rend(); ++layer) {
    if (!IsNeeded(*layer)) continue;
    for (const int bottom : layer->bottoms) {
      if (bottom >= 0) value(bottom).is_needed = true;
    }
  }
}

bool Importer::IsNeeded(const Layer& layer) {
  return std::any_of(layer.tops.begin(), layer.tops.end(),
                     [&](int top) { return value(top).is_needed && !value(top).is_given; });
}

void Importer::AddNeededInputs() {
  for (size_t i = 0; i < values_.size(); ++i) {
    const NetTensor& input = net_.tensors()[i];
    if (input.layer >= 0 || values_[i].is_given || !values_[i].is_needed) continue;
    values_[i].value = NewInput(static_cast<int>(i), input.blob, nullptr);
  }
}

std::optional<std::vector<ValueRef>> Importer::Operands(const Layer& layer) {
  std::vector<ValueRef> operands;
  bool is_complete = true;
  for (size_t i = 0; i < layer.bottoms.size(); ++i) {
    if (layer.bottoms[i] < 0) {
      AddError(DiagnosticKind::kMissingProducer, {layer.name, layer.type},
               absl::StrCat(Quoted(layer.bottom_names[i]),
                            " is no input, and no layer before this one gives it"),
               Suggestion(layer.bottom_names[i], "correct the net"));
      is_complete = false;
      continue;
    }
    operands.push_back(value(layer.bottoms[i]).value);
    is_complete = is_complete && operands.back() != nullptr;
  }
  if (!is_complete) return std::nullopt;
  return operands;
}

const frontend::CutAdvice& Importer::Advice() {
  if (advice_.has_value()) return *advice_;
  advice_.emplace();
  const auto names_of = [this](const std::vector<int>& tensors) {
    std::vector<std::string> names;
    for (const int i : tensors) {
      if (i >= 0) names.push_back(tensor(i).name);
    }
    return names;
  };
  for (size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].is_given || net_.tensors()[i].layer < 0) {
      advice_->AddInput(net_.tensors()[i].name);
    }
  }
  for (const Layer& layer : net_.layers()) {
    if (!IsNeeded(layer)) continue;
    const bool is_known =
        rules_.Find(layer.type) != nullptr || plugins_.Find(layer.type) != nullptr;
    advice_->AddNode(layer.type, is_known, names_of(layer.bottoms), names_of(layer.tops));
  }
  for (const Endpoints::Output& output : outputs_) advice_->AddOutput(output.name);
  return *advice_;
}

void Importer::ReportNoRule(const Layer& layer) {
  AddError(DiagnosticKind::kUnsupportedOperator, {layer.name, layer.type},
           absl::StrCat("the layer is not supported", rules_.NearestText(layer.type)),
           Advice().FixFor(tensor(layer.tops[0]).name, "train the net without it"));
}

bool Importer::CheckParameters(const LayerView& view) {
  const std::optional<absl::string_view> unread = view.Unread();
  if (!unread.has_value()) return true;
  if (unread->empty()) {
    ReportForeignParameters(view.layer());
    return false;
  }
  AddError(DiagnosticKind::kBadAttribute, view.source(),
           absl::StrCat("parameter ", Quoted(*unread), " of ", ParameterOf(view.layer().type),
                        " is none that npuc knows of this layer; it may change the result"),
           "remove it from the .prototxt where it does not");
  return false;
}

void Importer::ReportForeignParameters(const Layer& layer) {
  AddError(DiagnosticKind::kCaffeForeignParameters, {layer.name, layer.type},
           "the .caffemodel holds parameters of the layer under a number that Caffe does not have; "
           "forks disagree about those",
           "name the net's .prototxt in PROTOTXT");
}

void Importer::MatchSubgraphs() {
  if (subgraphs_.is_empty()) return;
  const auto name_of = [this](int i) { return i < 0 ? std::string() : tensor(i).name; };
  for (size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].is_given || net_.tensors()[i].layer < 0) {
      subgraphs_.AddInput(net_.tensors()[i].name);
    }
  }
  for (size_t i = 0; i < net_.layers().size(); ++i) {
    const Layer& layer = net_.layers()[i];
    if (!IsNeeded(layer)) continue;
    std::vector<std::string> operands;
    std::map<int, std::string> results;
    for (const int bottom : layer.bottoms) operands.push_back(name_of(bottom));
    for (const int top : layer.tops)
      results.emplace(static_cast<int>(results.size()), name_of(top));
    subgraphs_.AddNode(static_cast<int>(i), layer.name, layer.type, std::move(operands),
                       std::move(results));
  }
  for (const Endpoints::Output& output : outputs_) subgraphs_.AddOutput(output.name);
  subgraphs_.Match(*state_.diagnostics);
}

void Importer::RunPlugin(const Layer& layer, const frontend::PluginOp& op) {
  if (layer.has_foreign_params) return ReportForeignParameters(layer);
  std::optional<std::vector<ValueRef>> operands = Operands(layer);
  if (!operands.has_value()) return;
  const LayerView view(&layer);
  LayerImporter node(&state_, &view, *std::move(operands), &next_states_);
  TakeResults(layer, node, frontend::RunPluginOp(node, op, view));
}

void Importer::RunSubgraph(const frontend::SubgraphMatch& match) {
  const auto layer_at = [this](int index) -> const Layer& {
    return net_.layers()[static_cast<size_t>(index)];
  };
  std::vector<ValueRef> operands;
  for (const frontend::OperandPlace& place : match.operands) {
    const int bottom = layer_at(place.node).bottoms[static_cast<size_t>(place.operand)];
    operands.push_back(value(bottom).value);
    if (operands.back() == nullptr) return;
  }
  const Layer& end = layer_at(match.end);
  const LayerView view(&end);
  LayerImporter node(&state_, &view, std::move(operands), &next_states_);
  const auto view_of = [&](int i) { return LayerView(&layer_at(i)); };
  TakeResults(end, node, frontend::RunPluginSubgraph(node, match, view_of));
}

void Importer::RunLayer(const Layer& layer) {
  if (const frontend::PluginOp* const plugin = plugins_.Find(layer.type)) {
    return RunPlugin(layer, *plugin);
  }
  const ImportRule* const rule = rules_.Find(layer.type);
  if (rule == nullptr) return ReportNoRule(layer);
  if (layer.has_foreign_params) return ReportForeignParameters(layer);
  std::optional<std::vector<ValueRef>> operands = Operands(layer);
  if (!operands.has_value()) return;
  const LayerView view(&layer);
  LayerImporter node(&state_, &view, *std::move(operands), &next_states_);
  const absl::Status status = rule->import(node);
  if (status.ok() && !CheckParameters(view)) return;
  TakeResults(layer, node, status);
}

void Importer::TakeResults(const Layer& layer, LayerImporter& node, const absl::Status& status) {
  if (!status.ok()) {
    return node.ReportMismatch(
        status, "check the shapes in INPUT_OPS against those that the model was trained with");
  }
  if (!state_.ConstantsFit(node.source())) return;
  if (node.outputs().size() < layer.tops.size()) {
    AddError(DiagnosticKind::kUnsupportedOperatorMode, node.source(),
             absl::StrCat("the layer has ", layer.tops.size(), " tops; npuc computes ",
                          node.outputs().size()),
             "remove the others from the .prototxt, and the layers that read them");
    return;
  }
  for (size_t i = 0; i < layer.tops.size(); ++i) {
    Value& top = value(layer.tops[i]);
    if (!top.is_given) top.value = node.outputs()[i];
  }
}

void Importer::AddOutputs() {
  for (auto& [name, value] : next_states_) {
    state_.AddOutput(name, std::move(value), /*fp16=*/true);
  }
  for (const Endpoints::Output& output : outputs_) {
    const int index = net_.Find(output.name);
    if (value(index).is_given || tensor(index).layer < 0) {
      endpoints_.ReportInputAsOutput(output.name);
      continue;
    }
    ValueRef result = value(index).value;
    if (result == nullptr) continue;  // reported
    state_.AddOutput(output.name, std::move(result), output.fp16);
  }
}

void Importer::Run(std::optional<BoxSettings>* boxes) {
  ResolveInputs();
  ResolveOutputs();
  MarkNeeded();
  AddNeededInputs();
  MatchSubgraphs();
  for (size_t i = 0; i < net_.layers().size(); ++i) {
    const Layer& layer = net_.layers()[i];
    const int index = static_cast<int>(i);
    if (!IsNeeded(layer) || subgraphs_.IsInside(index)) continue;
    if (const frontend::SubgraphMatch* const match = subgraphs_.FindEnd(index)) {
      RunSubgraph(*match);
    } else {
      RunLayer(layer);
    }
  }
  AddOutputs();
  NoteDecodings(boxes);
  if (state_.diagnostics->has_errors()) return;
  for (const InputDecl& input : options_.inputs) {
    const int index = FindInput(input.name);
    if (index >= 0 && !value(index).is_needed) endpoints_.ReportUnused(input.name);
  }
}

}  // namespace npuc::caffe
