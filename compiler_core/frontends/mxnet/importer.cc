#include "compiler_core/frontends/mxnet/importer.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "compiler_core/frontends/common/const_inputs.h"
#include "compiler_core/frontends/common/outline.h"
#include "compiler_core/frontends/common/plugin_import.h"

namespace npuc::mxnet {
namespace {

// Operators that turn results of a detector into boxes.
constexpr absl::string_view kBoxDecoders[] = {
    "MultiBoxDetection", "Proposal",         "_contrib_MultiBoxDetection", "_contrib_MultiProposal",
    "_contrib_Proposal", "_contrib_box_nms", "_contrib_box_decode",        "_contrib_box_iou"};

bool IsBoxDecoder(const NodeView& node) {
  return std::find(std::begin(kBoxDecoders), std::end(kBoxDecoders), node.op()) !=
         std::end(kBoxDecoders);
}

// The name that PLUGINS have for a node's operator: of MXNet's Custom it is op_type.
std::string PluginNameOf(const NodeView& node) {
  const absl::StatusOr<std::string> type = node.String("op_type");
  return node.op() == "Custom" && type.ok() ? *type : std::string(node.op());
}

// The shape that a variable's attribute states; a 0 is unknown, which is -1 here.
std::optional<std::vector<int64_t>> StatedShape(const NodeView& variable) {
  auto dims = variable.Ints("__shape__");
  if (!dims.ok() || dims->empty()) return std::nullopt;
  for (int64_t& dim : *dims) dim = dim <= 0 ? -1 : dim;
  return *std::move(dims);
}

}  // namespace

size_t OperandsAtInference(const ImportRule* rule, const NodeView& node) {
  const size_t count = node.inputs().size();
  return rule == nullptr ? count : std::min(count, static_cast<size_t>(rule->labels_from));
}

Importer::Importer(const Symbol& symbol, ParamsFile& params, absl::string_view params_file,
                   const CompileOptions& options, const frontend::Plugins& plugins, Graph* graph,
                   Diagnostics* diagnostics)
    : symbol_(symbol),
      params_(params),
      params_file_(params_file),
      options_(options),
      state_(graph, diagnostics, options,
             "make it a parameter, or cut the model around this node with INPUT_OPS or OUTPUT_OPS"),
      endpoints_(options, &state_),
      plugins_(plugins),
      subgraphs_(plugins),
      is_needed_(symbol.nodes().size(), false),
      values_(symbol.nodes().size()) {}

// Gluon's save_params(strip_prefix) leaves out what all names begin with: the file's names are the
// symbol's but for one prefix, which all of them must lack.
void Importer::RestorePrefix() {
  const std::vector<ParamsFile::Array>& arrays = params_.arrays();
  if (arrays.empty()) return;
  for (const NodeView& node : symbol_.nodes()) {
    if (node.is_variable() && params_.Find(node.name()) != nullptr) return;
  }
  for (const NodeView& node : symbol_.nodes()) {
    absl::string_view prefix = node.name();
    if (!node.is_variable() || !absl::ConsumeSuffix(&prefix, arrays[0].name)) continue;
    const bool fits =
        std::all_of(arrays.begin(), arrays.end(), [&](const ParamsFile::Array& array) {
          const auto entry = symbol_.FindTensor(absl::StrCat(prefix, array.name));
          return entry.has_value() && symbol_.node(entry->node).is_variable();
        });
    if (!prefix.empty() && fits) return params_.AddPrefix(std::string(prefix));
  }
}

std::string Importer::Suggestion(absl::string_view name) const {
  return frontend::SuggestName(name, symbol_.NodeNames(),
                               "name a variable or a layer of the symbol");
}

ValueRef Importer::NewInput(const Entry& entry, const Shape& shape) {
  const std::string name = symbol_.NameOf(entry);
  if (!endpoints_.CheckShapeOf(name, shape)) return nullptr;
  return state_.AddInput(name, {DType::kFloat32, shape});
}

void Importer::ResolveInputs() {
  const auto exists = [this](absl::string_view name) {
    return symbol_.FindTensor(name).has_value();
  };
  const auto suggest = [this](absl::string_view name) { return Suggestion(name); };
  for (const InputDecl& input : options_.inputs) {
    if (!endpoints_.TakeInput(input.name, exists, suggest)) continue;
    const Entry entry = *symbol_.FindTensor(input.name);
    cuts_.push_back(input.name);
    const auto stated = StatedShape(symbol_.node(entry.node));
    if (stated.has_value() && frontend::Contradicts(*stated, input.shape)) {
      endpoints_.ReportConflict(input, ShapeToString(*stated));
      given_[entry] = {};
      continue;
    }
    given_[entry].value = NewInput(entry, input.shape);
  }
  for (const ConstInput& input : options_.const_inputs) {
    if (!endpoints_.TakeInput(input.name, exists, suggest, "CONST_INPUTS")) continue;
    const Entry entry = *symbol_.FindTensor(input.name);
    given_[entry].value = frontend::ConstInputValue(state_, input, DType::kFloat32,
                                                    StatedShape(symbol_.node(entry.node)));
  }
}

// The nodes whose results depend on an input.
std::vector<bool> Importer::RunTimeNodes() const {
  std::vector<bool> is_run_time(symbol_.nodes().size(), false);
  for (size_t i = 0; i < symbol_.nodes().size(); ++i) {
    const NodeView& node = symbol_.nodes()[i];
    if (node.is_variable()) is_run_time[i] = params_.Find(node.name()) == nullptr;
    for (const Entry& input : node.inputs()) {
      if (is_run_time[static_cast<size_t>(input.node)]) is_run_time[i] = true;
    }
    if (absl::EndsWith(node.op(), "MultiBoxPrior"))
      is_run_time[i] = false;  // a shape is all it reads
  }
  return is_run_time;
}

std::vector<Entry> Importer::StatedOutputs() {
  const std::vector<bool> is_run_time = RunTimeNodes();
  std::vector<bool> is_behind(symbol_.nodes().size(), false);  // a decoder, or behind one
  std::vector<Entry> decoded;
  std::vector<std::string> decoders;
  for (size_t i = 0; i < symbol_.nodes().size(); ++i) {
    const NodeView& node = symbol_.nodes()[i];
    is_behind[i] = IsBoxDecoder(node) ||
                   std::any_of(node.inputs().begin(), node.inputs().end(), [&](const Entry& e) {
                     return is_behind[static_cast<size_t>(e.node)];
                   });
    if (!IsBoxDecoder(node)) continue;
    decoders.push_back(absl::StrCat("'", Printable(node.name()), "' (", node.op(), ")"));
    for (const Entry& input : node.inputs()) {
      const size_t from = static_cast<size_t>(input.node);
      if (is_run_time[from] && !is_behind[from]) decoded.push_back(input);
    }
  }
  std::vector<Entry> outputs;
  bool takes_decoded = false;
  for (const Entry& head : symbol_.heads()) {
    if (!is_behind[static_cast<size_t>(head.node)]) {
      outputs.push_back(head);
    } else if (!std::exchange(takes_decoded, true)) {
      outputs.insert(outputs.end(), decoded.begin(), decoded.end());
    }
  }
  std::vector<Entry> unique;
  for (const Entry& entry : outputs) {
    if (std::find(unique.begin(), unique.end(), entry) == unique.end()) unique.push_back(entry);
  }
  if (takes_decoded) {
    state_.diagnostics->Add(
        {.kind = DiagnosticKind::kDecodingLeftOut,
         .message = absl::StrCat("the model ends with the decoding of boxes, ",
                                 absl::StrJoin(decoders, ", "),
                                 ", which no core computes; the program ends before it"),
         .file = state_.file,
         .fix = "decode the boxes from the outputs on the host"});
  }
  return unique;
}

void Importer::ResolveOutputs() {
  std::vector<Entry> stated;
  if (options_.outputs.empty()) stated = StatedOutputs();
  std::vector<std::string> names;
  for (const Entry& entry : stated) names.push_back(symbol_.NameOf(entry));
  for (frontend::Endpoints::Output& output : endpoints_.TakeOutputs(
           names, [this](absl::string_view name) { return symbol_.FindTensor(name).has_value(); },
           [this](absl::string_view name) { return Suggestion(name); })) {
    const Entry entry = *symbol_.FindTensor(output.name);
    outputs_.push_back({.name = std::move(output.name), .entry = entry, .fp16 = output.fp16});
  }
}

void Importer::MarkNeeded(const Entry& entry) {
  const auto given = given_.find(entry);
  if (given != given_.end()) {
    given->second.is_used = true;
  } else {
    is_needed_[static_cast<size_t>(entry.node)] = true;
  }
}

// True: a node that is needed has the variable where its operator has a parameter.
bool Importer::IsParameterPlace(int variable) const {
  for (size_t i = 0; i < symbol_.nodes().size(); ++i) {
    const NodeView& node = symbol_.nodes()[i];
    const ImportRule* const rule = is_needed_[i] ? rules_.Find(node.op()) : nullptr;
    if (rule == nullptr) continue;
    for (size_t k = 0; k < node.inputs().size(); ++k) {
      if (rule->IsParameter(k) && node.inputs()[k].node == variable) return true;
    }
  }
  return false;
}

void Importer::AddStatedInput(int node) {
  const NodeView& variable = symbol_.node(node);
  const std::string shown = Printable(variable.name());
  if (IsParameterPlace(node)) {
    return state_.AddError(
        DiagnosticKind::kMxNetParams, variable.source(),
        absl::StrCat("parameter '", shown, "' is not in ", Printable(params_file_)),
        "name the .params file that was saved with the symbol; of a Gluon net save both with "
        "export()");
  }
  const std::optional<std::vector<int64_t>> dims = StatedShape(variable);
  const bool is_open = !dims.has_value() ||
                       std::any_of(dims->begin(), dims->end(), [](int64_t dim) { return dim < 0; });
  if (is_open) {
    return state_.AddError(DiagnosticKind::kOpenInput, {},
                           absl::StrCat("input '", shown, "' is ", OutlineShape(dims),
                                        "; every dimension must be known"),
                           absl::StrCat("add '", shown, ": ", ShapeToWrite(dims),
                                        "' to INPUT_OPS with the shape at inference time"));
  }
  values_[static_cast<size_t>(node)] = {NewInput({node, 0}, *dims)};
}

void Importer::ImportParameter(int node, const ParamsFile::Array& array) {
  absl::StatusOr<Tensor> tensor = params_.Decode(array, state_.constant_bytes_left);
  const NodeSource source = {std::string(symbol_.node(node).name()), "Parameter"};
  if (!tensor.ok()) {
    const bool is_limit = absl::IsResourceExhausted(tensor.status());
    return state_.AddError(
        is_limit ? DiagnosticKind::kModelLimitExceeded : DiagnosticKind::kBadTensor, source,
        absl::StrCat("parameter '", Printable(source.name), "': ", tensor.status().message()),
        is_limit ? "compile a smaller model" : "save the model again");
  }
  state_.constant_bytes_left -= tensor->type().size_bytes();
  values_[static_cast<size_t>(node)] = {frontend::ConstantValue(*std::move(tensor), source)};
}

void Importer::AddNeededVariables() {
  for (size_t i = 0; i < symbol_.nodes().size(); ++i) {
    const NodeView& node = symbol_.nodes()[i];
    if (!is_needed_[i] || !node.is_variable()) continue;
    const ParamsFile::Array* const array = params_.Find(node.name());
    if (array != nullptr) {
      ImportParameter(static_cast<int>(i), *array);
    } else {
      AddStatedInput(static_cast<int>(i));
    }
  }
}

const frontend::PluginOp* Importer::FindPlugin(const NodeView& node) const {
  return plugins_.Find(PluginNameOf(node));
}

void Importer::MatchSubgraphs() {
  if (subgraphs_.is_empty()) return;
  for (const auto& [entry, given] : given_) subgraphs_.AddInput(symbol_.NameOf(entry));
  // The first result of each node, and those that something reads.
  std::vector<std::map<int, std::string>> results(symbol_.nodes().size());
  const auto read = [&](const Entry& entry) {
    results[static_cast<size_t>(entry.node)].emplace(entry.output, symbol_.NameOf(entry));
  };
  for (size_t i = 0; i < results.size(); ++i) read({static_cast<int>(i), 0});
  for (const NodeView& node : symbol_.nodes()) {
    std::for_each(node.inputs().begin(), node.inputs().end(), read);
  }
  for (const Output& output : outputs_) read(output.entry);
  for (size_t i = 0; i < symbol_.nodes().size(); ++i) {
    const NodeView& node = symbol_.nodes()[i];
    if (!is_needed_[i]) continue;
    const int index = static_cast<int>(i);
    if (node.is_variable()) {
      if (params_.Find(node.name()) == nullptr) subgraphs_.AddInput(symbol_.NameOf({index, 0}));
      continue;
    }
    std::vector<std::string> operands;
    const size_t count = OperandsAtInference(rules_.Find(node.op()), node);
    for (size_t k = 0; k < count; ++k) operands.push_back(symbol_.NameOf(node.inputs()[k]));
    subgraphs_.AddNode(index, node.name(), PluginNameOf(node), std::move(operands),
                       std::move(results[i]));
  }
  for (const Output& output : outputs_) subgraphs_.AddOutput(symbol_.NameOf(output.entry));
  subgraphs_.Match(*state_.diagnostics);
}

ValueRef Importer::OperandOf(const NodeView& node, size_t i) {
  const Entry& entry = node.inputs()[i];
  const auto given = given_.find(entry);
  if (given != given_.end()) return given->second.value;
  const std::vector<ValueRef>& results = values_[static_cast<size_t>(entry.node)];
  if (static_cast<size_t>(entry.output) < results.size()) {
    return results[static_cast<size_t>(entry.output)];
  }
  if (!results.empty()) {
    state_.AddError(
        DiagnosticKind::kMissingProducer, node.source(),
        absl::StrCat("operand ", i, " is result ", entry.output, " of '",
                     Printable(symbol_.node(entry.node).name()), "', which has ", results.size()),
        "save the symbol again");
  }
  return nullptr;
}

void Importer::TakeResults(int index, NodeImporter& importer, const absl::Status& status) {
  if (!status.ok()) {
    return importer.ReportMismatch(
        status, "check the shapes in INPUT_OPS against those that the model was trained with");
  }
  if (state_.ConstantsFit(importer.source())) {
    values_[static_cast<size_t>(index)] = importer.outputs();
  }
}

void Importer::ImportNode(int index) {
  const NodeView& node = symbol_.node(index);
  const frontend::PluginOp* const plugin = FindPlugin(node);
  const ImportRule* const rule = rules_.Find(node.op());
  if (rule == nullptr && plugin == nullptr) {
    return state_.AddError(
        DiagnosticKind::kUnsupportedOperator, node.source(),
        absl::StrCat("the operator is not supported", rules_.NearestText(node.op())),
        Advice().FixFor(symbol_.NameOf({index, 0}), "export the model without it"));
  }
  std::vector<ValueRef> operands;
  for (size_t i = 0; i < OperandsAtInference(rule, node); ++i) {
    operands.push_back(OperandOf(node, i));
  }
  if (std::find(operands.begin(), operands.end(), nullptr) != operands.end()) return;
  NodeImporter importer(&state_, &node, std::move(operands));
  TakeResults(
      index, importer,
      plugin == nullptr ? rule->import(importer) : frontend::RunPluginOp(importer, *plugin, node));
}

void Importer::ImportSubgraph(const frontend::SubgraphMatch& match) {
  std::vector<ValueRef> operands;
  for (const frontend::OperandPlace& place : match.operands) {
    operands.push_back(OperandOf(symbol_.node(place.node), static_cast<size_t>(place.operand)));
    if (operands.back() == nullptr) return;
  }
  NodeImporter importer(&state_, &symbol_.node(match.end), std::move(operands));
  const auto view = [this](int i) -> const NodeView& { return symbol_.node(i); };
  TakeResults(match.end, importer, frontend::RunPluginSubgraph(importer, match, view));
}

const frontend::CutAdvice& Importer::Advice() {
  if (advice_.has_value()) return *advice_;
  advice_.emplace();
  for (const std::string& name : cuts_) advice_->AddInput(name);
  for (size_t i = 0; i < symbol_.nodes().size(); ++i) {
    const NodeView& node = symbol_.nodes()[i];
    if (!is_needed_[i]) continue;
    if (node.is_variable()) {
      if (params_.Find(node.name()) == nullptr) advice_->AddInput(std::string(node.name()));
      continue;
    }
    std::vector<std::string> operands;
    const ImportRule* const rule = rules_.Find(node.op());
    for (size_t k = 0; k < OperandsAtInference(rule, node); ++k) {
      operands.push_back(symbol_.NameOf(node.inputs()[k]));
    }
    advice_->AddNode(node.op(), rule != nullptr || FindPlugin(node) != nullptr, operands,
                     {symbol_.NameOf({static_cast<int>(i), 0})});
  }
  for (const Output& output : outputs_) advice_->AddOutput(symbol_.NameOf(output.entry));
  return *advice_;
}

void Importer::AddOutputs() {
  state_.AddStateOutputs();
  for (const Output& output : outputs_) {
    const NodeView& node = symbol_.node(output.entry.node);
    if (given_.contains(output.entry) || node.is_variable()) {
      endpoints_.ReportInputAsOutput(output.name);
      continue;
    }
    const std::vector<ValueRef>& results = values_[static_cast<size_t>(output.entry.node)];
    const size_t at = static_cast<size_t>(output.entry.output);
    if (at >= results.size() || results[at] == nullptr) {
      if (!state_.diagnostics->has_errors()) {
        state_.AddError(DiagnosticKind::kUnsupportedOperatorMode, node.source(),
                        absl::StrCat("the node has no result ", output.entry.output),
                        "name another output in OUTPUT_OPS");
      }
      continue;
    }
    state_.AddOutput(output.name, frontend::WrittenAsFloat(results[at]), output.fp16);
  }
}

void Importer::Run() {
  RestorePrefix();
  ResolveInputs();
  ResolveOutputs();
  for (const Output& output : outputs_) MarkNeeded(output.entry);
  for (size_t i = symbol_.nodes().size(); i-- > 0;) {
    const NodeView& node = symbol_.nodes()[i];
    if (!is_needed_[i]) continue;
    const size_t count = OperandsAtInference(rules_.Find(node.op()), node);
    for (size_t k = 0; k < count; ++k) MarkNeeded(node.inputs()[k]);
  }
  AddNeededVariables();
  MatchSubgraphs();
  for (size_t i = 0; i < symbol_.nodes().size(); ++i) {
    const int index = static_cast<int>(i);
    if (!is_needed_[i] || symbol_.nodes()[i].is_variable() || subgraphs_.IsInside(index)) continue;
    if (const frontend::SubgraphMatch* const match = subgraphs_.FindEnd(index)) {
      ImportSubgraph(*match);
    } else {
      ImportNode(index);
    }
  }
  AddOutputs();
  if (state_.diagnostics->has_errors()) return;
  for (const std::string& name : cuts_) {
    if (!given_[*symbol_.FindTensor(name)].is_used) endpoints_.ReportUnused(name);
  }
}

}  // namespace npuc::mxnet
