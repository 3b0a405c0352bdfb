#include "compiler_core/frontends/compass/importer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/status.h"

namespace npuc::compass {
namespace {

std::string Quoted(const std::vector<std::string>& names) {
  return absl::StrJoin(names, ", ", [](std::string* out, const std::string& name) {
    absl::StrAppend(out, "'", Printable(name), "'");
  });
}

}  // namespace

Importer::Importer(const Document& document, const ByteSource& bin, const CompileOptions& options,
                   Graph* graph, Diagnostics* diagnostics)
    : document_(document),
      bin_(bin),
      options_(options),
      state_(graph, diagnostics, options, "write the IR again"),
      endpoints_(options, &state_),
      layers_(document.layers.size()) {}

std::vector<std::string> Importer::HeadList(absl::string_view key) const {
  return ParseList(document_.head.ValueOr(key, "[]")).value_or(std::vector<std::string>());
}

std::string Importer::Suggestion(absl::string_view name) const {
  std::vector<absl::string_view> names;
  for (const auto& [known, tensor] : tensors_) names.push_back(known);
  return frontend::SuggestName(
      name, names,
      absl::StrCat("the IR's inputs are ", Quoted(HeadList("input_tensors")), ", its outputs ",
                   Quoted(HeadList("output_tensors"))));
}

void Importer::ReadLayers() {
  LayerReporter reporter(options_.model_name, *state_.diagnostics);
  for (size_t i = 0; i < layers_.size(); ++i) {
    LayerState& layer = layers_[i];
    LayerView& view = layer.view;
    view.block = &document_.layers[i];
    view.name = view.block->ValueOr("layer_name", "");
    view.type = view.block->ValueOr("layer_type", "");
    view.bottoms = ParseIntLists(view.block->ValueOr("layer_bottom_shape", "[]"))
                       .value_or(std::vector<Shape>());
    view.tops =
        ParseIntLists(view.block->ValueOr("layer_top_shape", "[]")).value_or(std::vector<Shape>());
    layer.bottoms =
        ParseList(view.block->ValueOr("layer_bottom", "[]")).value_or(std::vector<std::string>());
    layer.tops = ReadTops(view, reporter);
    for (const Top& top : layer.tops) {
      tensors_.emplace(top.name, TensorState{static_cast<int>(i), &top});
    }
  }
}

void Importer::AddInput(TensorState& tensor) {
  if (tensor.value != nullptr) return;
  const Top& top = *tensor.top;
  const LayerState& layer = layers_[static_cast<size_t>(tensor.layer)];
  ValueRef value = state_.AddInput(top.name, {DType::kFloat32, top.type.shape});
  LayerImporter node(&state_, &layer.view, {&top, 1}, &bin_, {}, {});
  absl::StatusOr<ValueRef> finished = node.Finish(std::move(value));
  if (finished.ok()) tensor.value = *std::move(finished);  // else it was reported
}

void Importer::ResolveInputs() {
  const auto exists = [this](absl::string_view name) { return Exists(name); };
  const auto suggest = [this](absl::string_view name) { return Suggestion(name); };
  for (const InputDecl& input : options_.inputs) {
    if (!endpoints_.TakeInput(input.name, exists, suggest)) continue;
    TensorState& tensor = tensors_.at(input.name);
    if (input.shape == tensor.top->type.shape) {
      tensor.is_cut = true;
      AddInput(tensor);
      continue;
    }
    state_.AddError(DiagnosticKind::kInputShapeConflict, {},
                    absl::StrCat("INPUT_OPS declares '", Printable(input.name), "' as ",
                                 ShapeToString(input.shape), ", but the model states ",
                                 ShapeToString(tensor.top->type.shape)),
                    "declare the model's shape");
  }
  // The order is the head's; those that INPUT_OPS leave out are added where an output needs them.
  if (!options_.inputs.empty()) return;
  for (const std::string& name : HeadList("input_tensors")) {
    TensorState& tensor = tensors_.at(name);
    const LayerView& view = layers_[static_cast<size_t>(tensor.layer)].view;
    if (view.type == "Input") {
      AddInput(tensor);
      continue;
    }
    state_.AddError(
        DiagnosticKind::kModelFileInvalid, {},
        absl::StrCat("input_tensors names '", Printable(name), "', which layer '",
                     Printable(view.name), "' of type ", Printable(view.type), " makes"),
        "name results of Input layers");
  }
}

void Importer::ResolveOutputs() {
  outputs_ = endpoints_.TakeOutputs(
      HeadList("output_tensors"), [this](absl::string_view name) { return Exists(name); },
      [this](absl::string_view name) { return Suggestion(name); });
}

void Importer::MarkNeeded() {
  const auto want = [this](const std::string& name) {
    const auto found = tensors_.find(name);
    if (found != tensors_.end()) found->second.is_wanted = true;
  };
  for (const frontend::Endpoints::Output& output : outputs_) want(output.name);
  for (size_t k = layers_.size(); k-- > 0;) {
    LayerState& layer = layers_[k];
    for (const Top& top : layer.tops) {
      const TensorState& tensor = tensors_.at(top.name);
      layer.is_needed = layer.is_needed || (tensor.is_wanted && !tensor.is_cut);
    }
    if (!layer.is_needed) continue;
    for (const std::string& bottom : layer.bottoms) want(bottom);
  }
  for (const auto& [name, tensor] : tensors_) {
    if (!tensor.is_cut || tensor.is_wanted || state_.diagnostics->has_errors()) continue;
    endpoints_.ReportUnused(name);
  }
}

bool Importer::HasRule(const LayerView& layer, const std::string& result) {
  if (layer.type == "Input" || layer.type == "Constant" || rules_.Find(layer.type) != nullptr) {
    return true;
  }
  const Entry* const entry = layer.block->Find("layer_type");
  state_.diagnostics->Add(
      {.kind = DiagnosticKind::kUnsupportedOperator,
       .message = absl::StrCat("layers of type ", Printable(layer.type), " are not supported",
                               rules_.NearestText(layer.type)),
       .file = options_.model_name,
       .line = entry == nullptr ? layer.block->line : entry->line,
       .node = layer.name,
       .op = layer.type,
       .fix = Advice().FixFor(result, "write the model without the layer")});
  return false;
}

const frontend::CutAdvice& Importer::Advice() {
  if (advice_.has_value()) return *advice_;
  advice_.emplace();
  for (const auto& [name, tensor] : tensors_) {
    if (tensor.is_cut || tensor.value != nullptr) advice_->AddInput(name);
  }
  for (const LayerState& layer : layers_) {
    if (!layer.is_needed || layer.view.type == "Input" || layer.view.type == "Constant") continue;
    std::vector<std::string> results;
    for (const Top& top : layer.tops) results.push_back(top.name);
    advice_->AddNode(layer.view.type, rules_.Find(layer.view.type) != nullptr,
                     {layer.bottoms.begin(), layer.bottoms.end()}, results);
  }
  for (const frontend::Endpoints::Output& output : outputs_) advice_->AddOutput(output.name);
  return *advice_;
}

absl::StatusOr<std::vector<ValueRef>> Importer::RunRule(LayerImporter& node,
                                                        const LayerState& layer) {
  if (layer.view.type == "Constant") {
    ASSIGN_OR_RETURN(Tensor values, node.ReadConstant("weights"));
    if (values.type() != node.top().type) {
      return node.FailInvalid("weights_shape", absl::StrCat(TypeToString(values.type()), " is not ",
                                                            TypeToString(node.top().type)));
    }
    if (IsInteger(values.dtype()) && !node.top().quant.has_value()) {
      return std::vector<ValueRef>{node.MakeConstant(std::move(values))};
    }
    return std::vector<ValueRef>{node.MakeWeight(std::move(values), node.top().quant, "weights")};
  }
  RETURN_IF_ERROR(node.ReadSettings());
  const ImportRule& rule = *rules_.Find(layer.view.type);
  std::vector<ValueRef> values;
  if (rule.import_all != nullptr) {
    ASSIGN_OR_RETURN(values, rule.import_all(node));
  } else {
    ASSIGN_OR_RETURN(values.emplace_back(), rule.import(node));
  }
  if (values.size() != layer.tops.size()) {
    return node.FailInvalid("layer_top", absl::StrCat("has ", layer.tops.size(),
                                                      " tensors; the layer gives ", values.size()));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    ASSIGN_OR_RETURN(values[i], node.Finish(std::move(values[i]), i));
  }
  return values;
}

void Importer::ImportLayer(LayerState& layer) {
  if (!HasRule(layer.view, layer.tops[0].name)) return;
  if (layer.view.type == "Input") return AddInput(tensors_.at(layer.tops[0].name));
  std::vector<ValueRef> inputs;
  std::vector<const Top*> bottoms;
  for (const std::string& bottom : layer.bottoms) {
    const TensorState& tensor = tensors_.at(bottom);
    if (tensor.value == nullptr) return;  // its layer failed, which has been reported
    inputs.push_back(tensor.value);
    bottoms.push_back(tensor.top);
  }
  LayerImporter node(&state_, &layer.view, layer.tops, &bin_, std::move(inputs),
                     std::move(bottoms));
  absl::StatusOr<std::vector<ValueRef>> values = RunRule(node, layer);
  if (!values.ok()) {
    if (node.has_reported()) return;
    (void)node.FailAt("layer_type", DiagnosticKind::kOperandMismatch,
                      std::string(values.status().message()), "write the IR again");
    return;
  }
  for (size_t i = 0; i < values->size(); ++i) {
    TensorState& result = tensors_.at(layer.tops[i].name);
    if (!result.is_cut) result.value = std::move((*values)[i]);
  }
}

void Importer::AddOutputs() {
  for (const frontend::Endpoints::Output& output : outputs_) {
    const TensorState& tensor = tensors_.at(output.name);
    const ValueRef& value = tensor.value;
    const bool is_input = layers_[static_cast<size_t>(tensor.layer)].view.type == "Input";
    if (tensor.is_cut || is_input) {
      endpoints_.ReportInputAsOutput(output.name);
      continue;
    }
    if (value != nullptr)
      state_.AddOutput(output.name, value, output.fp16);  // else it was reported
  }
}

void Importer::Run() {
  ReadLayers();
  if (state_.diagnostics->has_errors()) return;
  ResolveInputs();
  ResolveOutputs();
  MarkNeeded();
  for (LayerState& layer : layers_) {
    if (layer.is_needed) ImportLayer(layer);
  }
  AddOutputs();
}

}  // namespace npuc::compass
