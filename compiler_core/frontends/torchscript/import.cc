#include "compiler_core/frontends/torchscript/import.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/run_import.h"
#include "compiler_core/frontends/torchscript/archive.h"
#include "compiler_core/frontends/torchscript/attribute_states.h"
#include "compiler_core/frontends/torchscript/executor.h"
#include "compiler_core/frontends/torchscript/forward_inputs.h"
#include "compiler_core/frontends/torchscript/op_call.h"

namespace npuc {
namespace pt {
namespace {

constexpr size_t kMaxOutputs = 256;
constexpr int kMaxOutputDepth = 16;
// Runs of forward, until a line of so many attributes that hand on their values is known as states.
constexpr int kMaxRounds = 32;

// The values of a graph that these depend on, by number.
std::vector<bool> NeededBy(const Graph& graph, const std::vector<ValueId>& roots) {
  std::vector<bool> needed(static_cast<size_t>(graph.value_count()), false);
  for (const ValueId root : roots) needed[root.value()] = true;
  for (int i = graph.node_count() - 1; i >= 0; --i) {
    const Node& node = graph.nodes()[static_cast<size_t>(i)];
    const bool is_needed = std::any_of(node.outputs.begin(), node.outputs.end(),
                                       [&](ValueId id) { return needed[id.value()]; });
    if (!is_needed) continue;
    for (const ValueId id : node.inputs) needed[id.value()] = true;
  }
  return needed;
}

void ReportUnsettled(const AttributePlan& before, const AttributePlan& after,
                     const std::string& file, Diagnostics* diagnostics) {
  for (const auto& [path, kept] : after) {
    const auto it = before.find(path);
    if (it != before.end() && it->second.value == kept.value) continue;
    diagnostics->Add(
        {.kind = DiagnosticKind::kTorchStateWritten,
         .message =
             absl::StrCat("each call of forward leaves another number, or a tensor of another "
                          "shape, in attribute '",
                          Printable(path), "'"),
         .file = file,
         .fix = "keep tensors of one shape in attributes; count calls outside of the model"});
  }
}

// One run of forward: makes inputs, runs, flattens the result. Used once.
class TorchImporter {
 public:
  // `plan`: what calls find in the attributes that they write; `unused`: states that nothing
  // depends on.
  TorchImporter(const TorchArchive* archive, const CompileOptions& options,
                const frontend::Plugins& plugins, const AttributePlan& plan,
                const std::set<std::string>& unused, Graph* graph, Diagnostics* diagnostics)
      : options_(options),
        graph_(graph),
        diagnostics_(diagnostics),
        state_(graph, diagnostics, options),
        executor_(archive, &state_, &plugins) {
    state_.core = FindCore(options.core);
    state_.attributes.Begin(&plan, &unused);
  }

  void Run() {
    const ScriptValue root = executor_.Root();
    if (!root.Is(ScriptKind::kObject)) return;
    const ScriptFunction* forward = executor_.FindMethod(root.object, "forward");
    if (forward == nullptr) {
      if (!diagnostics_->has_errors()) {
        AddError(
            DiagnosticKind::kTorchNameUnknown,
            absl::StrCat("class ", Printable(root.object->class_name), " has no method forward"),
            "save a module with torch.jit.save(torch.jit.script(module), file)");
      }
      return;
    }
    if (!MakeForwardInputs(*forward, options_, state_, executor_, inputs_)) return;
    const ScriptValue result = executor_.Call(*forward, inputs_.arguments);
    if (result.Is(ScriptKind::kPoison)) {
      // Where the run was broken off, what went wrong before is of interest, too.
      if (result.integer >= 0) state_.Flush(result.integer);
      if (result.integer < 0) state_.FlushAll();
      if (!diagnostics_->has_errors()) {
        AddError(DiagnosticKind::kInternalError, "the run ended without a result", "report it");
      }
      return;
    }
    Flatten(result, 0);
    state_.AddStateOutputs();
    AddStateOutputs();
    AddOutputs();
    WarnAboutUnusedInputs();
  }

  // The values that the next call finds in the attributes that calls write.
  const AttributePlan& next_plan() const { return next_plan_; }
  int64_t steps() const { return executor_.steps(); }

  // Paths of the states that none of the model's own outputs depends on.
  std::set<std::string> UnusedStates() const {
    std::vector<ValueId> roots;
    for (size_t i = state_outputs_; i < graph_->outputs().size(); ++i) {
      roots.push_back(graph_->outputs()[i].value);
    }
    std::set<std::string> unused;
    for (const AttributeStates::State& state : state_.attributes.states())
      unused.insert(state.path);
    for (bool is_new = true; is_new;) {
      is_new = false;
      const std::vector<bool> needed = NeededBy(*graph_, roots);
      for (size_t i = 0; i < state_.attributes.states().size() && i < state_outputs_; ++i) {
        const AttributeStates::State& state = state_.attributes.states()[i];
        if (!needed[state.input.value()] || unused.erase(state.path) == 0) continue;
        roots.push_back(graph_->outputs()[i].value);
        is_new = true;
      }
    }
    return unused;
  }

  // Says where the states' first values are others than zeros.
  void NoteFirstValues() {
    for (const auto& [path, kept] : next_plan_) NoteFirst(path, kept.value, kept.first);
  }

 private:
  void AddError(DiagnosticKind kind, std::string message, std::string fix) {
    diagnostics_->Add({.kind = kind,
                       .message = std::move(message),
                       .file = options_.model_name,
                       .fix = std::move(fix)});
  }

  void Flatten(const ScriptValue& value, int depth) {
    if (outputs_.size() > kMaxOutputs || depth > kMaxOutputDepth) {
      if (!too_many_) {
        AddError(DiagnosticKind::kModelLimitExceeded,
                 absl::StrCat("the model has more than ", kMaxOutputs, " outputs, or nests them ",
                              "deeper than ", kMaxOutputDepth),
                 "return fewer tensors");
      }
      too_many_ = true;
      return;
    }
    if (value.Is(ScriptKind::kPoison)) state_.Flush(value.integer);
    if (value.Is(ScriptKind::kTensor) || value.Is(ScriptKind::kPoison)) {
      outputs_.push_back(value);
      return;
    }
    if (value.IsSequence()) {
      for (const ScriptValue& item : value.list->items) {
        if (too_many_) return;
        Flatten(item, depth + 1);
      }
      return;
    }
    if (value.Is(ScriptKind::kDict)) {
      for (const auto& [key, item] : value.dict->entries) {
        if (too_many_) return;
        Flatten(item, depth + 1);
      }
      return;
    }
    if (value.IsNone() && depth > 0) return;  // an optional result that is left out
    const bool is_index = value.Is(ScriptKind::kUninitialized);
    AddError(DiagnosticKind::kTorchOutputNotTensor,
             absl::StrCat("output ", outputs_.size(), " is ",
                          is_index ? "the index of a maximum, which the core does not compute"
                                   : pt::NameOf(value.kind),
                          "; the outputs of a compiled model are tensors"),
             "return tensors, or lists, tuples and dicts of them");
    outputs_.push_back(ScriptValue::Poison());
  }

  // A state's next value, in the order of the states' inputs.
  void AddStateOutputs() {
    OpCall call(&state_, {}, {"", ""});
    absl::StatusOr<AttributePlan> next = state_.attributes.Next(call);
    if (!next.ok()) return;  // reported
    next_plan_ = *std::move(next);
    for (const AttributeStates::State& state : state_.attributes.states()) {
      const std::string& name = graph_->def(state.input).source.name;
      OpCall output(&state_, {}, {absl::StrCat(name, "_out"), ""});
      ValueId id = state.input;
      if (const ValueRef after = state_.attributes.After(state.path)) {
        const absl::StatusOr<ValueId> placed = output.Place(*after);
        if (!placed.ok()) continue;
        id = *placed;
      }
      AddOutput(absl::StrCat(name, "_out"), id, /*fp16=*/true);
    }
    state_outputs_ = graph_->outputs().size();
  }

  // An output that is an input, or an output already, gets a copy of its own.
  void AddOutput(const std::string& name, ValueId value, bool fp16) {
    const auto is_value = [&](const GraphOutput& output) { return output.value == value; };
    const auto& inputs = graph_->inputs();
    if (std::find(inputs.begin(), inputs.end(), value) != inputs.end() ||
        std::any_of(graph_->outputs().begin(), graph_->outputs().end(), is_value)) {
      const absl::StatusOr<ValueId> copy =
          state_.builder.AddOne(Op::kIdentity, {value}, {}, {name, ""});
      if (!copy.ok()) return;
      value = *copy;
    }
    graph_->AddOutput({name, value, fp16});
  }

  void AddOutputs() {
    std::set<size_t> fp16;
    for (const std::string& name : options_.fp16_outputs) {
      size_t index = 0;
      if (absl::SimpleAtoi(name, &index) && index < outputs_.size()) {
        fp16.insert(index);
        continue;
      }
      AddError(DiagnosticKind::kOutputNotInModel,
               absl::StrCat("FP16_OUT_OPS names output ", Printable(name), "; the model has ",
                            outputs_.size(), " outputs, lists, tuples and dicts flattened"),
               "count from 0");
    }
    if (outputs_.empty()) {
      AddError(DiagnosticKind::kTorchOutputNotTensor, "the model returns nothing",
               "return at least one tensor");
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (!outputs_[i].Is(ScriptKind::kTensor)) continue;
      const std::string name = absl::StrCat("output_", i);
      OpCall call(&state_, {}, {name, ""});
      const absl::StatusOr<ValueRef> value = call.Read(outputs_[i].tensor);
      if (!value.ok()) continue;
      const absl::StatusOr<ValueId> id = call.Place(**value);
      if (id.ok()) AddOutput(name, *id, fp16.count(i) > 0);
    }
  }

  void WarnAboutUnusedInputs() {
    if (diagnostics_->has_errors()) return;
    std::vector<ValueId> roots;
    for (const GraphOutput& output : graph_->outputs()) roots.push_back(output.value);
    const std::vector<bool> needed = NeededBy(*graph_, roots);
    for (const auto& [key, id] : inputs_.inputs) {
      if (needed[id.value()]) continue;
      diagnostics_->Add(
          {.kind = DiagnosticKind::kUnusedInput,
           .message = "the input is declared in INPUT_OPS, but no output depends on it",
           .file = options_.model_name,
           .node = graph_->def(id).source.name,
           .fix = absl::StrCat("remove input ", key, ", or check the model")});
    }
  }

  // `first`: of the same place in the attribute as the archive has it; null: there is none.
  void NoteFirst(const std::string& path, const KeptValue& value,
                 const std::optional<KeptValue>& first) {
    const bool is_dict = value.kind == ScriptKind::kDict;
    for (size_t i = is_dict ? 1 : 0; i < value.items.size(); i += is_dict ? 2 : 1) {
      const bool has_same = first.has_value() && first->kind == value.kind &&
                            first->items.size() == value.items.size();
      const std::string part = is_dict ? value.items[i - 1].text : absl::StrCat(i);
      NoteFirst(absl::StrCat(path, ".", part), value.items[i],
                has_same ? std::optional<KeptValue>(first->items[i]) : std::nullopt);
    }
    const auto& states = state_.attributes.states();
    const bool is_state = std::any_of(states.begin(), states.end(),
                                      [&](const auto& state) { return state.path == path; });
    if (!is_state) return;
    const bool has_shape = first.has_value() && first->kind == ScriptKind::kTensor &&
                           first->constant.has_value() && first->constant->shape() == value.shape;
    if (has_shape && IsZero(*first->constant)) return;
    const std::string what = absl::StrCat("attribute '", Printable(path), "'");
    diagnostics_->Add(
        {.kind = DiagnosticKind::kStateBeginsElsewhere,
         .message = has_shape
                        ? absl::StrCat("the model begins with ", what,
                                       " other than 0; states of a compiled model begin with 0")
                        : absl::StrCat("the first call of the model finds no tensor of ",
                                       ShapeToString(value.shape), " in ", what,
                                       "; the compiled model finds zeros"),
         .file = options_.model_name,
         .node = path,
         .fix = has_shape
                    ? "write the attribute's first value into that input before the first frame"
                    : "compare the first frame with the model's; where it differs, write the state "
                      "behind a first call into that input before the first frame"});
  }

  static bool IsZero(const Tensor& tensor) {
    for (int64_t i = 0; i < tensor.element_count(); ++i) {
      if (tensor.at(i) != 0) return false;
    }
    return true;
  }

  const CompileOptions& options_;
  Graph* graph_;
  Diagnostics* diagnostics_;
  ImportState state_;
  Executor executor_;
  AttributePlan next_plan_;
  ForwardInputs inputs_;
  std::vector<ScriptValue> outputs_;
  size_t state_outputs_ = 0;  // so many of the graph's outputs, the first ones
  bool too_many_ = false;
};

// TorchScript is code: it has operators, but no nodes with names that a subgraph could be found by.
bool CheckPlugins(const frontend::Plugins& plugins, Diagnostics& diagnostics) {
  for (const auto& op : plugins.subgraphs()) {
    diagnostics.Add({.kind = DiagnosticKind::kConfigConflict,
                     .message = absl::StrCat("operator '", Printable(op->op),
                                             "' is a subgraph; TorchScript is code, which has no "
                                             "nodes to find it by"),
                     .file = op->file,
                     .line = op->line,
                     .fix = "declare operators, or export the model as ONNX"});
  }
  return plugins.subgraphs().empty();
}

// Runs forward until its attributes stay the same from call to call: each run begins with what the
// last one left. A model that writes to none is done after one run.
void ImportForward(const TorchArchive& archive, const CompileOptions& options,
                   const frontend::Plugins& plugins, Graph* graph, Diagnostics* diagnostics) {
  if (!CheckPlugins(plugins, *diagnostics)) return;
  AttributePlan plan;
  std::set<std::string> unused;
  int64_t steps = 0;
  for (int round = 0;; ++round) {
    Graph made;
    made.set_name(graph->name());
    Diagnostics found;
    TorchImporter importer(&archive, options, plugins, plan, unused, &made, &found);
    importer.Run();
    const bool is_settled = found.has_errors() || IsSamePlan(plan, importer.next_plan());
    std::set<std::string> further;
    if (is_settled && !found.has_errors()) further = importer.UnusedStates();
    if (is_settled && further.empty()) {
      if (!found.has_errors()) importer.NoteFirstValues();
      *graph = std::move(made);
      return diagnostics->Append(found);
    }
    steps += importer.steps();
    if (round == kMaxRounds || steps > ExecutorLimits().steps) {
      return ReportUnsettled(plan, importer.next_plan(), options.model_name, diagnostics);
    }
    unused.merge(further);
    plan = importer.next_plan();
  }
}

}  // namespace
}  // namespace pt

absl::StatusOr<Graph> ImportTorchArchive(const pt::TorchArchive& archive,
                                         const CompileOptions& options, Diagnostics& diagnostics,
                                         const frontend::Plugins& plugins) {
  return frontend::RunImport("TorchScript", options, diagnostics,
                             [&](Graph* graph, Diagnostics* found) {
                               pt::ImportForward(archive, options, plugins, graph, found);
                             });
}

absl::StatusOr<Graph> ImportTorchScript(absl::string_view model_bytes,
                                        const CompileOptions& options, Diagnostics& diagnostics,
                                        const frontend::Plugins& plugins) {
  ASSIGN_OR_RETURN(
      const pt::TorchArchive archive,
      pt::ReadTorchArchive(model_bytes, options.model_name, pt::ArchiveLimits(), diagnostics));
  return ImportTorchArchive(archive, options, diagnostics, plugins);
}

std::vector<std::string> ImportedTorchOps() {
  std::vector<std::string> ops = pt::TensorRules().Ops();
  ops.erase(std::remove_if(ops.begin(), ops.end(), [](const auto& op) { return op[0] == '_'; }),
            ops.end());
  return ops;
}

}  // namespace npuc
