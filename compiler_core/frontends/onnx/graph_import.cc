#include "compiler_core/frontends/onnx/graph_import.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/frontends/common/plugin_import.h"
#include "compiler_core/frontends/onnx/import_ml.h"
#include "compiler_core/frontends/onnx/tensor_proto.h"

namespace npuc::onnx {

frontend::RuleTable<ImportRule> AllRules() {
  return {BasicRules(),   ElementwiseRules(), ActivationRules(), LinearRules(),    ConvRules(),
          PoolRules(),    NormRules(),        ShapeRules(),      GatherRules(),    ReduceRules(),
          ResizeRules(),  RecurrentRules(),   LossRules(),       QuantizedRules(), MicrosoftRules(),
          QonnxRules(),   MlRules(),          TreeRules(),       SvmRules(),       SignalRules(),
          SequenceRules()};
}

GraphImport::GraphImport(FileImport* shared, const GraphView& graph, GraphImport* around,
                         std::string outer)
    : shared_(*shared),
      state_(shared->state),
      graph_(graph),
      around_(around),
      outer_(std::move(outer)),
      progress_(static_cast<size_t>(graph.node_count()), Progress::kWaiting),
      is_needed_(graph.inputs().size(), false) {}

void GraphImport::AddError(DiagnosticKind kind, const NodeView& node, std::string message,
                           std::string fix) {
  state_.AddError(kind, node.source(), std::move(message), std::move(fix));
}

void GraphImport::Give(absl::string_view tensor, ValueRef value) {
  given_.emplace(tensor, false);
  values_[std::string(tensor)] = std::move(value);
}

bool GraphImport::IsUsed(absl::string_view given) const {
  const auto it = given_.find(given);
  return it != given_.end() && it->second;
}

void GraphImport::ReportCycle(absl::Span<const frontend::OrderingStep> waiting, int node) {
  AddError(DiagnosticKind::kGraphCycle, graph_.node(node),
           frontend::CircleMessage(waiting, node, [&](int i) { return graph_.node(i).name(); }),
           "export the model again");
}

// Depth first without recursion.
std::vector<int> GraphImport::Ordered(absl::Span<const absl::string_view> tensors) {
  enum class Visit : uint8_t { kActive, kOrdered };
  absl::flat_hash_map<int, Visit> visits;
  std::vector<int> order;
  std::vector<frontend::OrderingStep> stack;
  const auto visit = [&](absl::string_view name) {
    read_.emplace(name);
    const auto given = given_.find(name);
    if (given != given_.end()) {
      given->second = true;
      return;
    }
    const int input = graph_.FindInput(name);
    if (input >= 0) is_needed_[static_cast<size_t>(input)] = true;
    const int producer = input >= 0 ? -1 : graph_.FindProducer(name).node;
    if (producer < 0) return;
    const Progress progress = progress_[static_cast<size_t>(producer)];
    // A node whose graphs are running needs what they take from around them.
    const frontend::OrderingStep itself = {producer, 0};
    if (progress == Progress::kRunning) ReportCycle({&itself, 1}, producer);
    if (progress != Progress::kWaiting) return;
    const auto [state, is_new] = visits.emplace(producer, Visit::kActive);
    if (!is_new && state->second == Visit::kActive) ReportCycle(stack, producer);
    if (!is_new) return;
    stack.emplace_back(producer, 0);
    const NodeView& node = graph_.node(producer);
    if (node.Graphs().empty()) return;
    for (std::string& captured : Captured(shared_.file, node)) read_.insert(std::move(captured));
  };
  for (const absl::string_view tensor : tensors) {
    visit(tensor);
    while (!stack.empty()) {
      const int index = stack.back().first;
      const NodeView& node = graph_.node(index);
      if (stack.back().second == static_cast<size_t>(node.input_count())) {
        visits[index] = Visit::kOrdered;
        order.push_back(index);
        stack.pop_back();
        continue;
      }
      visit(node.input(static_cast<int>(stack.back().second++)));
    }
  }
  return order;
}

void GraphImport::Run(absl::Span<const int> order) {
  for (const int index : order) {
    Progress& progress = progress_[static_cast<size_t>(index)];
    // Nodes that a graph inside of another node needed have run already.
    if (progress != Progress::kWaiting) continue;
    progress = Progress::kRunning;
    const frontend::SubgraphMatch* const match =
        subgraphs_ == nullptr ? nullptr : subgraphs_->FindEnd(index);
    if (match != nullptr) {
      ImportSubgraph(*match);
    } else if (subgraphs_ == nullptr || !subgraphs_->IsInside(index)) {
      ImportNode(graph_.node(index));
    }
    progress = Progress::kDone;
  }
}

ValueRef GraphImport::InitializerValue(absl::string_view name, const fe::onnx::TensorProto& tensor,
                                       const NodeSource& consumer) {
  const auto known = shared_.constants.find(&tensor);
  if (known != shared_.constants.end()) return known->second;
  absl::StatusOr<Tensor> decoded =
      DecodeTensor(tensor, state_.constant_bytes_left, state_.external);
  ValueRef value;
  if (decoded.ok()) {
    state_.constant_bytes_left -= decoded->type().size_bytes();
    value = frontend::ConstantValue(*std::move(decoded), {std::string(name), "Constant"});
  } else {
    DiagnosticKind kind = DiagnosticKind::kBadTensor;
    std::string fix = "export the model again";
    if (absl::IsResourceExhausted(decoded.status())) {
      kind = DiagnosticKind::kModelLimitExceeded;
      fix = "compile a smaller model";
    } else if (absl::IsNotFound(decoded.status())) {
      kind = DiagnosticKind::kOnnxExternalData;
      fix = kExternalFix;
    }
    const bool is_told = kind == DiagnosticKind::kOnnxExternalData && state_.has_reported_external;
    state_.has_reported_external |= kind == DiagnosticKind::kOnnxExternalData;
    if (!is_told) {
      state_.AddError(
          kind, consumer,
          absl::StrCat("initializer '", Printable(name), "': ", decoded.status().message()),
          std::move(fix));
    }
  }
  shared_.constants.emplace(&tensor, value);
  return value;
}

ValueRef GraphImport::Capture(absl::string_view name, const NodeSource& consumer) {
  const auto given = given_.find(name);
  if (given != given_.end()) given->second = true;
  if (graph_.Defines(name) && !values_.contains(name)) {
    const absl::string_view tensor[] = {name};
    const std::vector<int> order = Ordered(tensor);
    shared_.add_needed_inputs();
    Run(order);
  }
  return ValueOf(name, consumer);
}

ValueRef GraphImport::ValueOf(absl::string_view name, const NodeSource& consumer) {
  const auto it = values_.find(name);
  if (it != values_.end()) return it->second;
  if (around_ != nullptr && !graph_.Defines(name)) return around_->Capture(name, consumer);
  ValueRef value;
  const fe::onnx::TensorProto* initializer = graph_.FindInitializer(name);
  if (initializer != nullptr) {
    value = InitializerValue(name, *initializer, consumer);
  } else if (graph_.FindProducer(name).node < 0) {
    state_.AddError(
        DiagnosticKind::kMissingProducer, consumer,
        absl::StrCat("'", Printable(name),
                     "' is no input, no initializer and no node's "
                     "result"),
        graph_.has_initializers()
            ? frontend::SuggestName(name, graph_.TensorNames(), "export the model again")
            : "the file holds no initializers, so its weights are missing: export the "
              "model with them (export_params=True of torch.onnx.export)");
  }
  values_.emplace(std::string(name), value);
  return value;
}

ValueRef GraphImport::Result(absl::string_view tensor) {
  const auto it = values_.find(tensor);
  if (it != values_.end()) return it->second;
  return graph_.FindProducer(tensor).node < 0 ? ValueOf(tensor, {}) : nullptr;
}

const ImportRule* GraphImport::RuleOf(const FileImport& shared, const NodeView& node) {
  return shared.rules.Find(NameOf(node));
}

bool GraphImport::IsSupported(const FileImport& shared, const NodeView& node) {
  return RuleOf(shared, node) != nullptr || IsControl(node) ||
         shared.file.FunctionOf(node) != nullptr || shared.plugins.Find(NameOf(node)) != nullptr;
}

std::vector<std::string> GraphImport::Captured(const ModelFile& file, const NodeView& node) {
  std::vector<std::string> names;
  for (const fe::onnx::GraphProto* proto : node.Graphs()) {
    const GraphView& graph = file.Of(proto);
    const auto take = [&](absl::string_view name) {
      if (!name.empty() && !graph.Defines(name)) names.emplace_back(name);
    };
    for (const NodeView& inner : graph.nodes()) {
      for (int i = 0; i < inner.input_count(); ++i) take(inner.input(i));
      for (const std::string& name : Captured(file, inner)) take(name);
    }
    for (const TensorInfo& output : graph.outputs()) take(output.name);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string GraphImport::CutAdvice(const NodeView& node) const {
  return shared_.cut_advice(outer_.empty() ? node.output(0) : outer_);
}

void GraphImport::ReportNoRule(const NodeView& node) {
  std::string message = node.domain().empty() ? std::string("the operator")
                                              : absl::StrCat("the operator of domain '",
                                                             Printable(node.domain()), "'");
  absl::StrAppend(&message, " is not supported", frontend::Unroller::InsideOf(outer_));
  if (!node.Graphs().empty()) absl::StrAppend(&message, ", nor are the graphs inside of it");
  if (node.domain().empty()) absl::StrAppend(&message, shared_.rules.NearestText(node.op()));
  AddError(DiagnosticKind::kUnsupportedOperator, node, std::move(message), CutAdvice(node));
}

bool GraphImport::TakesSequences(const NodeView& node) const {
  if (const ImportRule* const rule = RuleOf(shared_, node)) return rule->takes_sequences;
  // Graphs of the file pass them on.
  return node.op() == "Loop" || shared_.file.FunctionOf(node) != nullptr;
}

std::optional<std::vector<ValueRef>> GraphImport::Operands(const NodeView& node) {
  std::vector<ValueRef> operands;
  bool is_complete = true;
  for (int i = 0; i < node.input_count(); ++i) {
    const absl::string_view name = node.input(i);
    if (name.empty() || left_out_.contains(name)) {
      operands.push_back(nullptr);
      continue;
    }
    operands.push_back(ValueOf(name, node.source()));
    if (IsSequence(operands.back()) && !TakesSequences(node)) {
      AddError(DiagnosticKind::kOperandMismatch, node,
               absl::StrCat("operand ", i, ", '", Printable(name),
                            "', is a sequence of tensors; the operator takes a tensor"),
               "take one tensor of it by SequenceAt, or all by ConcatFromSequence");
      operands.back() = nullptr;
    }
    is_complete = is_complete && operands.back() != nullptr;
  }
  if (!is_complete) return std::nullopt;
  return operands;
}

void GraphImport::SetResults(const NodeView& node, absl::Span<const ValueRef> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (static_cast<int>(i) >= node.output_count()) break;
    const absl::string_view name = node.output(static_cast<int>(i));
    if (!name.empty() && !given_.contains(name)) values_[std::string(name)] = values[i];
  }
}

void GraphImport::TakeResults(const NodeView& node, NodeImporter& importer,
                              const absl::Status& status) {
  if (!status.ok()) {
    return importer.ReportMismatch(
        status, "check the shapes in INPUT_OPS against those that the model was trained with");
  }
  if (!state_.ConstantsFit(node.source())) return;
  SetResults(node, importer.outputs());
}

void GraphImport::ImportPlugin(const NodeView& node, const frontend::PluginOp& op) {
  std::optional<std::vector<ValueRef>> operands = Operands(node);
  if (!operands.has_value()) return;
  NodeImporter importer(&state_, &node, *std::move(operands));
  TakeResults(node, importer, frontend::RunPluginOp(importer, op, node));
}

void GraphImport::ImportSubgraph(const frontend::SubgraphMatch& match) {
  const NodeView& end = graph_.node(match.end);
  std::vector<ValueRef> operands;
  for (const frontend::OperandPlace& place : match.operands) {
    operands.push_back(ValueOf(graph_.node(place.node).input(place.operand), end.source()));
    if (operands.back() == nullptr) return;
  }
  NodeImporter importer(&state_, &end, std::move(operands));
  const auto view = [this](int i) -> const NodeView& { return graph_.node(i); };
  TakeResults(end, importer, frontend::RunPluginSubgraph(importer, match, view));
}

void GraphImport::ImportNode(const NodeView& node) {
  if (const frontend::PluginOp* const plugin = shared_.plugins.Find(NameOf(node))) {
    return ImportPlugin(node, *plugin);
  }
  const ImportRule* const rule = RuleOf(shared_, node);
  const GraphView* const function = rule == nullptr ? shared_.file.FunctionOf(node) : nullptr;
  if (rule == nullptr && function == nullptr && !IsControl(node)) return ReportNoRule(node);
  std::optional<std::vector<ValueRef>> operands = Operands(node);
  if (!operands.has_value()) return;
  if (rule == nullptr) {
    const Results results = function != nullptr ? ImportCall(node, *function, *operands)
                                                : ImportControl(node, *operands);
    if (results.has_value()) SetResults(node, *results);
    return;
  }
  state_.opset = graph_.opset();
  NodeImporter importer(&state_, &node, *std::move(operands), &graph_);
  for (int i = 0; i < node.output_count(); ++i) {
    if (!IsRead(node.output(i))) importer.SkipOutput(i);
  }
  TakeResults(node, importer, rule->import(importer));
}

}  // namespace npuc::onnx
