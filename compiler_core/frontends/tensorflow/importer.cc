#include "compiler_core/frontends/tensorflow/importer.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/suggest.h"
#include "compiler_core/frontends/common/const_inputs.h"
#include "compiler_core/frontends/common/outline.h"
#include "compiler_core/frontends/common/plugin_import.h"
#include "compiler_core/frontends/tensorflow/features.h"
#include "compiler_core/frontends/tensorflow/outline.h"

namespace npuc::tf {
namespace {

// TensorFlow before graph version 24 wrote a shape that it did not know as [].
constexpr int kFirstProducerWithScalarShapes = 24;

// The element type of a cut node's output, as far as its attributes tell; DT_INVALID (0) if not.
int WireTypeOf(const NodeView& node) {
  for (absl::string_view attr : {"dtype", "DstT", "out_type", "output_type", "T", "SrcT"}) {
    const absl::StatusOr<int> type = node.Type(attr);
    if (type.ok()) return *type;
  }
  return 0;
}

}  // namespace

frontend::RuleTable<ImportRule> AllRules() {
  return {BasicRules(),    ElementwiseRules(), ActivationRules(), LinearRules(),
          ConvRules(),     PoolRules(),        ImageRules(),      ShapeRules(),
          SliceRules(),    ReduceRules(),      SelectionRules(),  ControlRules(),
          DilationRules(), TensorArrayRules(), TensorListRules(), RecurrentRules()};
}

Importer::Importer(const GraphFile& file, const CompileOptions& options,
                   const frontend::Plugins& plugins, Graph* graph, Diagnostics* diagnostics)
    : file_(file),
      options_(options),
      graph_(graph),
      diagnostics_(diagnostics),
      state_(graph, diagnostics, options,
             "freeze it to a constant, or cut the model around this node with INPUT_OPS or "
             "OUTPUT_OPS"),
      plugins_(plugins),
      subgraphs_(plugins),
      nodes_(static_cast<size_t>(file.node_count())) {
  state_.producer_version = file.producer_version();
}

void Importer::AddError(DiagnosticKind kind, int node, std::string message, std::string fix) {
  state_.AddError(kind, node < 0 ? NodeSource() : file_.node(node).source(), std::move(message),
                  std::move(fix));
}

std::string Importer::NearestNode(absl::string_view name) const {
  std::vector<absl::string_view> names;
  for (int i = 0; i < file_.node_count(); ++i) names.push_back(file_.node(i).name());
  return frontend::NearestName(name, names);
}

// Of a file whose names the user does not know: its placeholders, or the nodes that no other takes.
const std::string& Importer::LikelyEndpoints(bool inputs) {
  constexpr size_t kMaxShown = 8;
  std::string& hint = likely_endpoints_[inputs ? 0 : 1];
  if (!hint.empty()) return hint;
  absl::flat_hash_set<absl::string_view> taken;
  for (int i = 0; i < file_.node_count() && !inputs; ++i) {
    for (int k = 0; k < file_.node(i).input_count(); ++k) {
      const absl::StatusOr<TensorName> name = ParseTensorName(file_.node(i).input(k));
      if (name.ok()) taken.insert(name->node);
    }
  }
  std::vector<absl::string_view> found;
  for (int i = 0; i < file_.node_count(); ++i) {
    const NodeView& node = file_.node(i);
    const bool is_placeholder = absl::StartsWith(node.op(), "Placeholder");
    const bool is_end = !is_placeholder && node.op() != "Const" && node.op() != "NoOp" &&
                        !taken.contains(node.name());
    if (inputs ? is_placeholder : is_end) found.push_back(node.name());
  }
  hint = absl::StrCat("name one of its ", file_.node_count(), " nodes");
  if (found.empty()) return hint;
  absl::StrAppend(&hint, inputs ? "; its placeholders: " : "; those that no other takes: ");
  for (size_t i = 0; i < std::min(found.size(), kMaxShown); ++i) {
    absl::StrAppend(&hint, i == 0 ? "" : ", ", Printable(found[i]));
  }
  if (found.size() > kMaxShown) absl::StrAppend(&hint, ", ...");
  return hint;
}

bool Importer::ResolveEndpoint(absl::string_view text, absl::string_view key, DiagnosticKind kind,
                               Edge* edge) {
  const absl::StatusOr<TensorName> name = ParseTensorName(text);
  if (!name.ok() || name->is_control) {
    AddError(kind, -1,
             absl::StrCat(key, " names '", Printable(text),
                          "'; allowed are NAME and NAME:K with the number of an output"),
             "write the node's name");
    return false;
  }
  edge->producer = file_.Find(name->node);
  edge->output = name->output;
  if (edge->producer >= 0) return true;
  const std::string nearest = NearestNode(name->node);
  std::string fix = nearest.empty() ? LikelyEndpoints(kind == DiagnosticKind::kInputNotInModel)
                                    : absl::StrCat("did you mean '", Printable(nearest), "'?");
  AddError(kind, -1,
           absl::StrCat(key, " names '", Printable(text), "', which is no node of the model"),
           std::move(fix));
  return false;
}

bool Importer::CheckInput(const InputDecl& input, int index, int output, TensorType* type) {
  const NodeView& node = file_.node(index);
  const absl::Status shape_status = CheckShape(input.shape);
  if (!shape_status.ok()) {
    AddError(DiagnosticKind::kInputShapeConflict, index,
             absl::StrCat("the shape in INPUT_OPS is refused: ", shape_status.message()),
             "declare a smaller shape");
    return false;
  }
  type->shape = input.shape;
  const int wire_type = WireTypeOf(node);
  type->dtype = DTypeFromWire(wire_type);
  if (type->dtype == DType::kFloat64 || wire_type == 0) type->dtype = DType::kFloat32;
  if (type->dtype == DType::kInvalid) {
    AddError(DiagnosticKind::kInputTypeUnsupported, index,
             absl::StrCat("the input has type ", DataTypeName(wire_type),
                          "; model inputs must be numbers, or true and false"),
             "cut the graph behind it by naming a node of numbers in INPUT_OPS");
    return false;
  }
  if (node.op() != "Placeholder" && node.op() != "PlaceholderWithDefault") return true;
  if (output != 0) {
    AddError(DiagnosticKind::kInputNotInModel, index,
             absl::StrCat("INPUT_OPS names output ", output, " of a node that has one output"),
             "name the node alone");
    return false;
  }
  absl::StatusOr<PartialShape> known = node.ShapeOf("shape");
  if (!known.ok()) return true;
  if (known->dims.empty() && file_.producer_version() < kFirstProducerWithScalarShapes) {
    known->unknown_rank = true;
  }
  if (known->unknown_rank || !frontend::Contradicts(known->dims, input.shape)) return true;
  AddError(DiagnosticKind::kInputShapeConflict, index,
           absl::StrCat("INPUT_OPS declares ", ShapeToString(input.shape),
                        ", but the model's Placeholder is ", ToString(*known)),
           "declare a shape that agrees with the model's");
  return false;
}

void Importer::ResolveInput(const InputDecl& input) {
  Edge edge;
  if (!ResolveEndpoint(input.name, "INPUT_OPS", DiagnosticKind::kInputNotInModel, &edge)) return;
  const CutKey key{edge.producer, edge.output};
  if (cuts_.contains(key)) {
    AddError(DiagnosticKind::kDuplicateEndpoint, edge.producer,
             absl::StrCat("INPUT_OPS names output ", edge.output, " of the node twice"),
             "keep one of the two");
    return;
  }
  TensorType type;
  Cut cut;
  if (CheckInput(input, edge.producer, edge.output, &type)) {
    cut.value = state_.AddInput(input.name, type, std::string(file_.node(edge.producer).op()));
  }
  cuts_.emplace(key, std::move(cut));
  cut_order_.push_back(key);
}

// A node of which the file states no type has whole numbers as i32, as shapes do.
void Importer::AddConstInput(const ConstInput& input) {
  Edge edge;
  if (!ResolveEndpoint(input.name, "CONST_INPUTS", DiagnosticKind::kInputNotInModel, &edge)) return;
  const CutKey key{edge.producer, edge.output};
  if (cuts_.contains(key)) {
    return AddError(DiagnosticKind::kDuplicateEndpoint, edge.producer,
                    absl::StrCat("CONST_INPUTS names output ", edge.output,
                                 " of the node, which INPUT_OPS or CONST_INPUTS has already"),
                    "keep one of the two");
  }
  const NodeView& node = file_.node(edge.producer);
  const int wire_type = WireTypeOf(node);
  DType dtype = DTypeFromWire(wire_type);
  if (wire_type == 0) dtype = input.is_whole ? DType::kInt32 : DType::kFloat32;
  if (dtype == DType::kFloat64) dtype = DType::kFloat32;
  Cut cut;
  if (dtype == DType::kInvalid) {
    AddError(DiagnosticKind::kInputTypeUnsupported, edge.producer,
             absl::StrCat("the input has type ", DataTypeName(wire_type),
                          "; CONST_INPUTS gives numbers, true and false"),
             "name a node behind it");
  } else {
    const absl::StatusOr<PartialShape> known = node.ShapeOf("shape");
    std::optional<std::vector<int64_t>> dims;
    if (known.ok() && !known->unknown_rank) dims = known->dims;
    cut.value = frontend::ConstInputValue(state_, input, dtype, dims);
  }
  cuts_.emplace(key, std::move(cut));
}

void Importer::BeginBehind(const Features& features, const InputDecl& replaced) {
  const bool is_known =
      std::all_of(features.inputs().begin(), features.inputs().end(), [](const InputDecl& input) {
        return !input.shape.empty() && std::none_of(input.shape.begin(), input.shape.end(),
                                                    [](int64_t d) { return d < 1; });
      });
  const int index = file_.Find(replaced.name);
  const std::string begins = NamesOf(features.inputs());
  if (!is_known) {
    AddError(
        DiagnosticKind::kInputTypeUnsupported, index,
        absl::StrCat("the input is sound, of which the model makes features (",
                     features.description(), "); no core computes these"),
        absl::StrCat("name in INPUT_OPS what the application computes, with its shape: ", begins));
    // Operators behind them are not at fault.
    for (const InputDecl& input : features.inputs()) {
      const absl::StatusOr<TensorName> name = ParseTensorName(input.name);
      if (name.ok()) cuts_.emplace(CutKey{file_.Find(name->node), name->output}, Cut());
    }
    return;
  }
  diagnostics_->Add(
      {.kind = DiagnosticKind::kFeaturesLeftOut,
       .message = absl::StrCat("the input is sound; the program begins at ", begins,
                               ", which the application computes: ", features.description()),
       .file = options_.model_name,
       .node = replaced.name,
       .op = index < 0 ? "" : std::string(file_.node(index).op())});
  for (const InputDecl& input : features.inputs()) ResolveInput(input);
}

void Importer::ResolveInputs() {
  const Features features(file_, options_.inputs);
  bool begins_behind = false;
  for (const InputDecl& input : options_.inputs) {
    if (!features.Replaces(input.name)) {
      ResolveInput(input);
    } else if (!std::exchange(begins_behind, true)) {
      BeginBehind(features, input);
    }
  }
  for (const ConstInput& input : options_.const_inputs) AddConstInput(input);
}

void Importer::ResolveOutputs() {
  absl::flat_hash_set<CutKey> seen;
  for (const std::string& name : options_.outputs) {
    Output output{.name = name, .edge = {}};
    if (!ResolveEndpoint(name, "OUTPUT_OPS", DiagnosticKind::kOutputNotInModel, &output.edge)) {
      continue;
    }
    if (!seen.insert({output.edge.producer, output.edge.output}).second) {
      AddError(DiagnosticKind::kDuplicateEndpoint, output.edge.producer,
               absl::StrCat("OUTPUT_OPS names output ", output.edge.output, " of the node twice"),
               "keep one of the two");
      continue;
    }
    outputs_.push_back(std::move(output));
  }
  if (options_.outputs.empty()) {
    AddError(DiagnosticKind::kOutputNotInModel, -1, "OUTPUT_OPS names no output",
             "name at least one node as output");
  }
  for (const std::string& name : options_.fp16_outputs) {
    const absl::StatusOr<TensorName> parsed = ParseTensorName(name);
    const auto it = std::find_if(outputs_.begin(), outputs_.end(), [&](const Output& output) {
      return parsed.ok() && file_.node(output.edge.producer).name() == parsed->node &&
             output.edge.output == parsed->output;
    });
    if (it != outputs_.end()) {
      it->fp16 = true;
      continue;
    }
    const std::vector<absl::string_view> names(options_.outputs.begin(), options_.outputs.end());
    // An output that was refused above is reported already.
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    AddError(DiagnosticKind::kOutputNotInModel, -1,
             absl::StrCat("FP16_OUT_OPS names '", Printable(name), "', which is not in OUTPUT_OPS"),
             DidYouMean(name, names, "name outputs only"));
  }
}

void Importer::ReadEdges(int index) {
  const NodeView& node = file_.node(index);
  NodeState& state = nodes_[static_cast<size_t>(index)];
  for (int i = 0; i < node.input_count(); ++i) {
    const absl::StatusOr<TensorName> name = ParseTensorName(node.input(i));
    if (!name.ok()) {
      AddError(DiagnosticKind::kMalformedNode, index,
               absl::StrCat("input ", i, " of the node is unreadable: ", name.status().message()),
               "export the model again");
      state.visit = Visit::kFailed;
      continue;
    }
    if (name->is_control) continue;  // order of side effects; a compiled graph has none
    Edge edge{file_.Find(name->node), name->output};
    if (edge.producer < 0) {
      const std::string nearest = NearestNode(name->node);
      AddError(DiagnosticKind::kMissingProducer, index,
               absl::StrCat("input ", i, " of the node names '", Printable(name->node),
                            "', which is no node of the model"),
               nearest.empty() ? std::string("freeze the model again")
                               : absl::StrCat("freeze the model again; the nearest name is '",
                                              Printable(nearest), "'"));
      state.visit = Visit::kFailed;
      continue;
    }
    state.edges.push_back(edge);
  }
}

void Importer::ReportCycle(const std::vector<frontend::OrderingStep>& stack, int node) {
  AddError(DiagnosticKind::kGraphCycle, node,
           frontend::CircleMessage(stack, node, [&](int i) { return file_.node(i).name(); }),
           "freeze the model again");
  nodes_[static_cast<size_t>(node)].visit = Visit::kFailed;
}

// Depth first without recursion; appends to order_ every node that `root` needs, producers first.
// What a Merge gets from a NextIteration is left for later, since it closes the circle of a loop.
void Importer::OrderFrom(int root, int output_index) {
  std::vector<frontend::OrderingStep> stack;
  const auto enter = [&](int index) {
    NodeState& state = nodes_[static_cast<size_t>(index)];
    state.visit = Visit::kActive;
    state.needed_by = output_index;
    ReadEdges(index);
    stack.emplace_back(index, 0);
  };
  absl::flat_hash_set<int> on_stack;
  if (nodes_[static_cast<size_t>(root)].visit != Visit::kUnseen) return;
  enter(root);
  on_stack.insert(root);
  while (!stack.empty()) {
    const int index = stack.back().first;
    NodeState& state = nodes_[static_cast<size_t>(index)];
    if (stack.back().second == state.edges.size()) {
      if (state.visit == Visit::kActive) state.visit = Visit::kOrdered;
      order_.push_back(index);
      on_stack.erase(index);
      stack.pop_back();
      continue;
    }
    const Edge edge = state.edges[stack.back().second++];
    if (cuts_.contains({edge.producer, edge.output})) continue;
    if (ControlOp(file_.node(index)) == "Merge" &&
        ControlOp(file_.node(edge.producer)) == "NextIteration") {
      back_edges_.emplace_back(edge.producer, output_index);
      continue;
    }
    if (on_stack.contains(edge.producer)) {
      ReportCycle(stack, edge.producer);
    } else if (nodes_[static_cast<size_t>(edge.producer)].visit == Visit::kUnseen) {
      enter(edge.producer);
      on_stack.insert(edge.producer);
    }
  }
}

ValueRef Importer::ValueOf(const Operand& operand, int consumer) {
  const Edge& edge = operand.edge;
  const auto cut = cuts_.find({edge.producer, edge.output});
  if (cut != cuts_.end()) {
    cut->second.is_used = true;
    return cut->second.value;
  }
  const Result& producer = ResultOf({edge.producer, operand.context});
  if (!producer.is_done) return nullptr;
  if (producer.is_dead) {
    return DeadValue();
  }
  if (static_cast<size_t>(edge.output) < producer.values.size()) {
    return producer.values[static_cast<size_t>(edge.output)];
  }
  const NodeView& node = file_.node(edge.producer);
  AddError(consumer < 0 ? DiagnosticKind::kOutputNotInModel : DiagnosticKind::kMissingProducer,
           consumer < 0 ? edge.producer : consumer,
           absl::StrCat("output ", edge.output, " of node '", Printable(node.name()), "' (",
                        Printable(node.op()), ") is asked for; it has ", producer.values.size(),
                        " that can be used"),
           consumer < 0 ? "name another output" : "freeze the model again");
  return nullptr;
}

void Importer::ReportNoRule(int index) {
  const NodeView& node = file_.node(index);
  const NodeState& state = nodes_[static_cast<size_t>(index)];
  std::string message = absl::StrCat(
      file_.IsFunction(node.op()) ? "calls of functions in the graph's library are not supported"
                                  : "the operator is not supported",
      "; output '", Printable(outputs_[static_cast<size_t>(state.needed_by)].name), "' needs it",
      rules_.NearestText(node.op()));
  AddError(DiagnosticKind::kUnsupportedOperator, index, std::move(message),
           Advice().FixFor(std::string(node.name()), "rebuild the model without it"));
}

std::string Importer::NameOf(const Edge& edge) const {
  const absl::string_view node = file_.node(edge.producer).name();
  return edge.output == 0 ? std::string(node) : absl::StrCat(node, ":", edge.output);
}

const frontend::CutAdvice& Importer::Advice() {
  if (advice_.has_value()) return *advice_;
  advice_.emplace();
  for (const CutKey& key : cut_order_) advice_->AddInput(NameOf({key.first, key.second}));
  // The results of a node that others read, beside its first.
  absl::flat_hash_map<int, std::vector<std::string>> results;
  for (const int index : order_) {
    for (const Edge& edge : nodes_[static_cast<size_t>(index)].edges) {
      if (edge.output > 0) results[edge.producer].push_back(NameOf(edge));
    }
  }
  for (const int index : order_) {
    const NodeView& node = file_.node(index);
    std::vector<std::string> operands;
    for (const Edge& edge : nodes_[static_cast<size_t>(index)].edges) {
      operands.push_back(NameOf(edge));
    }
    std::vector<std::string>& given = results[index];
    given.insert(given.begin(), NameOf({index, 0}));
    const bool is_known = rules_.Find(node.op()) != nullptr || plugins_.Find(node.op()) != nullptr;
    advice_->AddNode(node.op(), is_known, operands, given);
  }
  for (const Output& output : outputs_) advice_->AddOutput(NameOf(output.edge));
  return *advice_;
}

void Importer::ReportUndeclared(int placeholder) {
  std::optional<std::vector<int64_t>> shape;
  if (shapes_to_propose_-- > 0) shape = LikelyShape(file_, placeholder);
  if (shape.has_value() && shape->empty()) shape.reset();
  AddError(DiagnosticKind::kUndeclaredPlaceholder, placeholder,
           "the outputs need this input, and INPUT_OPS does not declare it",
           absl::StrCat("add '", Printable(file_.node(placeholder).name()), ": ",
                        ShapeToWrite(shape), "' to INPUT_OPS with the shape at inference time"));
}

// A TensorArray is no tensor: only the operators on it, and those that pass values on, take it.
bool Importer::CheckHandles(int index, absl::Span<const ValueRef> inputs) {
  const NodeView& node = file_.node(index);
  if (TakesHandles(ControlOp(node))) return true;
  for (const ValueRef& value : inputs) {
    if (FactsOf(*value).array < 0) continue;
    AddError(DiagnosticKind::kOperandMismatch, index,
             absl::StrCat("an operand is the TensorArray '", Printable(value->source.name),
                          "'; it must be a tensor"),
             "export the model again");
    return false;
  }
  return true;
}

void Importer::MatchSubgraphs() {
  if (subgraphs_.is_empty()) return;
  for (const CutKey& key : cut_order_) subgraphs_.AddInput(NameOf({key.first, key.second}));
  // The first result of each node, and those that something reads.
  std::vector<std::map<int, std::string>> results(nodes_.size());
  const auto read = [&](const Edge& edge) {
    results[static_cast<size_t>(edge.producer)].emplace(edge.output, NameOf(edge));
  };
  for (const int index : order_) {
    read({index, 0});
    for (const Edge& edge : nodes_[static_cast<size_t>(index)].edges) read(edge);
  }
  for (const Output& output : outputs_) read(output.edge);
  for (const int index : order_) {
    std::vector<std::string> operands;
    for (const Edge& edge : nodes_[static_cast<size_t>(index)].edges) {
      operands.push_back(NameOf(edge));
    }
    // A node inside of a loop has a value a turn, so that nothing can stand in its place.
    const bool is_outside = frames_.level(index) == 0;
    const NodeView& node = file_.node(index);
    subgraphs_.AddNode(index, is_outside ? node.name() : "", is_outside ? node.op() : "",
                       std::move(operands), std::move(results[static_cast<size_t>(index)]));
  }
  for (const Output& output : outputs_) subgraphs_.AddOutput(NameOf(output.edge));
  subgraphs_.Match(*diagnostics_);
}

void Importer::ImportSubgraph(const frontend::SubgraphMatch& match) {
  NodeState& state = nodes_[static_cast<size_t>(match.end)];
  state.has_failed = true;  // until it is known not to
  std::vector<ValueRef> operands;
  for (const frontend::OperandPlace& place : match.operands) {
    const Edge& edge =
        nodes_[static_cast<size_t>(place.node)].edges[static_cast<size_t>(place.operand)];
    operands.push_back(ValueOf({edge, 0}, match.end));
    if (operands.back() == nullptr) return;
  }
  if (!CheckHandles(match.end, operands)) return;
  RunRule(
      {match.end, 0},
      [&](NodeImporter& node) {
        const auto view = [this](int i) -> const NodeView& { return file_.node(i); };
        return frontend::RunPluginSubgraph(node, match, view);
      },
      std::move(operands));
}

void Importer::ImportNode(const Task& task) {
  const int index = task.node;
  if (const frontend::SubgraphMatch* const match = subgraphs_.FindEnd(index)) {
    return ImportSubgraph(*match);
  }
  if (subgraphs_.IsInside(index)) {
    ResultOf(task).is_done = true;  // without values, which nobody reads
    return;
  }
  NodeState& state = nodes_[static_cast<size_t>(index)];
  const NodeView& node = file_.node(index);
  if (state.has_failed) return;
  state.has_failed = true;  // until it is known not to
  if (node.op() == "Placeholder") {
    ReportUndeclared(index);
    return;
  }
  const frontend::PluginOp* const plugin = plugins_.Find(node.op());
  const ImportRule* const rule = rules_.Find(node.op());
  std::vector<ValueRef> inputs;
  bool is_complete = state.visit != Visit::kFailed;
  bool has_dead = false;
  const size_t operand_count = is_complete ? OperandCount(index) : 0;
  for (size_t i = 0; i < operand_count; ++i) {
    Operand operand;
    ValueRef value = OperandAt(task, i, &operand) ? ValueOf(operand, index) : nullptr;
    if (value == nullptr) {
      is_complete = false;
      continue;
    }
    has_dead = has_dead || FactsOf(*value).is_dead;
    inputs.push_back(std::move(value));
  }
  // An operator on the side of a Switch that is not taken is of no matter.
  const bool is_known = rule != nullptr || plugin != nullptr;
  if (!is_known && !(is_complete && has_dead)) return ReportNoRule(index);
  if (!is_complete || !CheckHandles(index, inputs)) return;
  const LoopFrames::LoopMerge* merge = frames_.FindMerge(index);
  if (merge != nullptr) {  // takes one of its operands, as if the other were not there
    const bool is_first = contexts_[static_cast<size_t>(task.context)].iteration == 0;
    if (is_first) inputs[0] = FirstOf(task, inputs[0]);
    inputs.insert(inputs.begin() + ((is_first ? merge->enter : merge->next) == 0 ? 1 : 0),
                  DeadValue());
  } else if (has_dead && ControlOp(node) != "Merge") {
    Result& result = ResultOf(task);
    result.is_done = result.is_dead = true;
    state.has_failed = false;
    return;
  }
  RunRule(
      task,
      [&](NodeImporter& importer) {
        return plugin == nullptr ? rule->import(importer)
                                 : frontend::RunPluginOp(importer, *plugin, node);
      },
      std::move(inputs));
}

void Importer::RunRule(const Task& task, RunNode import, std::vector<ValueRef> inputs) {
  const NodeView& node = file_.node(task.node);
  NodeImporter importer(&state_, &node, std::move(inputs));
  const int64_t bytes_left = state_.constant_bytes_left;
  const absl::Status status = import(importer);
  if (!status.ok()) {
    return importer.ReportMismatch(
        status, "check the shapes in INPUT_OPS against those that the model was trained with");
  }
  if (!ChargeConstants(importer, bytes_left - state_.constant_bytes_left)) return;
  Result& result = ResultOf(task);
  result.values = importer.outputs();
  result.is_done = true;
  nodes_[static_cast<size_t>(task.node)].has_failed = false;
}

// Takes the constants that a node made from what a model may hold and compute; of their bytes,
// `charged` are taken already.
bool Importer::ChargeConstants(NodeImporter& node, int64_t charged) {
  int64_t bytes = 0;
  for (const ValueRef& value : node.outputs()) {
    if (FactsOf(*value).is_dead || !value->constant.has_value() ||
        value->source.name != node.source().name) {
      continue;
    }
    bytes += value->type.size_bytes();
    state_.fold_work_left -= value->type.element_count();
  }
  state_.constant_bytes_left -= std::max<int64_t>(0, bytes - charged);
  if (state_.constant_bytes_left >= 0 && state_.fold_work_left >= 0) return true;
  (void)node.Fail(DiagnosticKind::kModelLimitExceeded,
                  absl::StrCat("the constants of the model take more than ", kMaxConstantBytes,
                               " bytes or too long to compute"),
                  "compile a smaller model");
  return false;
}

void Importer::AddOutputs() {
  for (const Output& output : outputs_) {
    const NodeView& node = file_.node(output.edge.producer);
    const int level = frames_.level(output.edge.producer);
    if (level != 0 && !cuts_.contains({output.edge.producer, output.edge.output})) {
      const LoopFrames::Frame& frame = frames_.frame(level);
      AddError(DiagnosticKind::kOutputNotInModel, output.edge.producer,
               absl::StrCat("the output lies inside of the while loop '", Printable(frame.name),
                            "', so it has a value for each turn"),
               frame.exits.empty()
                   ? std::string("name what leaves the loop, its Exit nodes")
                   : absl::StrCat("name what leaves the loop, such as '",
                                  Printable(file_.node(frame.exits[0]).name()), "'"));
      continue;
    }
    if (cuts_.contains({output.edge.producer, output.edge.output})) {
      AddError(DiagnosticKind::kDuplicateEndpoint, output.edge.producer,
               "the output is an input of INPUT_OPS, so nothing is computed for it",
               "name a node behind it in OUTPUT_OPS, or one in front of it in INPUT_OPS");
      continue;
    }
    ValueRef value = ValueOf({output.edge, 0}, -1);
    if (value == nullptr) continue;
    if (FactsOf(*value).array >= 0) {
      AddError(DiagnosticKind::kOutputNotInModel, output.edge.producer,
               "the output is a TensorArray, not a tensor",
               "name the TensorArrayGatherV3 that stacks it");
      continue;
    }
    value = frontend::WrittenAsFloat(std::move(value));
    if (FactsOf(*value).is_dead) {
      AddError(DiagnosticKind::kOutputNotInModel, output.edge.producer,
               "the output lies on a branch that is never taken", "name another output");
      continue;
    }
    NodeImporter importer(&state_, &node, {});
    const absl::StatusOr<ValueId> id = importer.Place(*value);
    if (id.ok()) graph_->AddOutput({output.name, *id, output.fp16});
  }
}

void Importer::AnalyseLoops() {
  const auto problems = frames_.Analyse(
      file_, order_,
      [this](int node) -> absl::Span<const Edge> {
        return nodes_[static_cast<size_t>(node)].edges;
      },
      [this](const Edge& edge) {
        return cuts_.contains({edge.producer, edge.output});
      });
  for (const LoopFrames::Problem& problem : problems) {
    AddError(DiagnosticKind::kUnsupportedOperatorMode, problem.node, problem.message,
             "export the loop as tf.while_loop writes it, or name its result in INPUT_OPS");
    nodes_[static_cast<size_t>(problem.node)].visit = Visit::kFailed;
  }
}

void Importer::Run() {
  ResolveInputs();
  ResolveOutputs();
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const Edge& edge = outputs_[i].edge;
    if (!cuts_.contains({edge.producer, edge.output})) {
      OrderFrom(edge.producer, static_cast<int>(i));
    }
  }
  for (size_t i = 0; i < back_edges_.size(); ++i) {  // grows while it runs
    OrderFrom(back_edges_[i].first, back_edges_[i].second);
  }
  AnalyseLoops();
  if (!frames_.is_settled()) return;
  MatchSubgraphs();
  for (int node : order_) {
    if (frames_.level(node) == 0) Evaluate({node, 0});
  }
  EvaluateStates();
  state_.AddStateOutputs();
  AddOutputs();
  if (diagnostics_->has_errors()) return;
  for (const CutKey& key : cut_order_) {
    if (cuts_[key].is_used) continue;
    AddError(DiagnosticKind::kUnusedInput, key.first,
             "the input is declared in INPUT_OPS, but no output depends on it",
             "remove it, or check OUTPUT_OPS");
  }
}

}  // namespace npuc::tf
