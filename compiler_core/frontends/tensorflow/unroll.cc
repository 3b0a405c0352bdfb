// Importer: the evaluation of nodes in their contexts. What lies outside of loops is evaluated
// once; a loop is unrolled by asking for the value that leaves it, which asks for that of the turn
// before, and so on. Nothing that no output needs is evaluated.
#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/frontends/tensorflow/importer.h"

namespace npuc::tf {
namespace {

constexpr size_t kMaxNamedInputs = 8;

}  // namespace

Importer::Result& Importer::ResultOf(const Task& task) {
  if (task.context == 0) return nodes_[static_cast<size_t>(task.node)].result;
  return contexts_[static_cast<size_t>(task.context)].results[task.node];
}

bool Importer::IsChanged(int merge) const {
  const LoopFrames::LoopMerge* loop = frames_.FindMerge(merge);
  int node = nodes_[static_cast<size_t>(merge)].edges[loop->next].producer;
  for (size_t steps = 0; node != merge; ++steps) {
    if (steps == nodes_.size()) return true;  // a circle, which is reported where it is evaluated
    const absl::string_view op = ControlOp(file_.node(node));
    const std::vector<Edge>& edges = nodes_[static_cast<size_t>(node)].edges;
    const bool passes = op == "NextIteration" || op == "Switch" || op == "Identity";
    if (!passes || edges.empty()) return true;
    node = edges[0].producer;
  }
  return false;
}

ValueRef Importer::FirstOf(const Task& merge, const ValueRef& first) {
  const int run = contexts_[static_cast<size_t>(merge.context)].run;
  const bool is_tensor = FactsOf(*first).array < 0 && !FactsOf(*first).is_dead;
  if (runs_[static_cast<size_t>(run)].outer != 0 || !is_tensor || first->type.shape.empty() ||
      !IsChanged(merge.node)) {
    return first;
  }
  const int frame = runs_[static_cast<size_t>(run)].frame;
  const auto before = std::count_if(loop_states_.begin(), loop_states_.end(),
                                    [run](const LoopState& state) { return state.run == run; });
  const std::string what = absl::StrCat(before);
  const ValueRef value = state_.KeptState(frames_.frame(frame).name, what, first);
  if (value != first) loop_states_.push_back({merge.node, run, what});
  return value;
}

void Importer::EvaluateStates() {
  for (const LoopState& state : loop_states_) {
    const LoopRun& run = runs_[static_cast<size_t>(state.run)];
    const int context = run.trip_count < 0 ? -1 : ContextOf(state.run, run.trip_count);
    if (context < 0) continue;  // reported
    const Task last{state.merge, context};
    Evaluate(last);
    const Result& result = ResultOf(last);
    if (!result.is_done || result.values.empty()) continue;  // reported
    state_.SetStateAfter(frames_.frame(run.frame).name, state.what, result.values[0]);
  }
}

void Importer::Evaluate(const Task& first) {
  std::vector<Task> stack = {first};
  while (!stack.empty()) {
    const Task task = stack.back();
    Result& result = ResultOf(task);
    if (result.is_settled) {
      stack.pop_back();
      continue;
    }
    const bool is_new = !result.is_active;
    result.is_active = true;
    const int64_t operands =
        static_cast<int64_t>(nodes_[static_cast<size_t>(task.node)].edges.size());
    Step step = Step::kFailed;
    if (!is_new || task.context == 0 || ChargeUnrolled(task.node, 1 + operands / 16)) {
      step = PushOperand(task, &stack);
    }
    if (step == Step::kWaiting) continue;
    if (step == Step::kReady) ImportNode(task);
    Result& settled = ResultOf(task);
    settled.is_active = false;
    settled.is_settled = true;
  }
}

// Takes from what may be evaluated inside of loops; false where it is used up.
bool Importer::ChargeUnrolled(int node, int64_t cost) {
  if (unrolled_left_ >= cost) {
    unrolled_left_ -= cost;
    return true;
  }
  if (unrolled_left_ >= 0) {
    AddError(DiagnosticKind::kModelLimitExceeded, node,
             absl::StrCat("the while loops of the model unroll to more than ", kMaxUnrolledNodes,
                          " nodes"),
             "run the loop on fewer turns, or its body once an inference with its state as input "
             "and output");
  }
  unrolled_left_ = -1;
  return false;
}

int Importer::Lift(int context, int level) const {
  while (true) {
    const int run = contexts_[static_cast<size_t>(context)].run;
    const int frame = run < 0 ? 0 : runs_[static_cast<size_t>(run)].frame;
    if (frame == level) return context;
    if (run < 0) return -1;
    context = runs_[static_cast<size_t>(run)].outer;
  }
}

size_t Importer::OperandCount(int node) const {
  if (frames_.FindMerge(node) != nullptr || frames_.FindExit(node) != nullptr) return 1;
  return nodes_[static_cast<size_t>(node)].edges.size();
}

bool Importer::OperandAt(const Task& task, size_t i, Operand* operand) {
  const std::vector<Edge>& edges = nodes_[static_cast<size_t>(task.node)].edges;
  int context = task.context;
  if (const LoopFrames::LoopMerge* merge = frames_.FindMerge(task.node)) {
    const Context& turn = contexts_[static_cast<size_t>(context)];
    operand->edge = edges[turn.iteration == 0 ? merge->enter : merge->next];
    if (turn.iteration > 0) context = ContextOf(turn.run, turn.iteration - 1);
  } else if (const LoopFrames::LoopExit* exit = frames_.FindExit(task.node)) {
    const int run = RunOf(exit->frame, context);
    const int trip_count = runs_[static_cast<size_t>(run)].trip_count;
    if (trip_count < 0) return false;
    operand->edge = exit->variable;
    context = ContextOf(run, trip_count);
  } else {
    operand->edge = edges[i];
  }
  operand->context = 0;
  if (cuts_.contains({operand->edge.producer, operand->edge.output})) return true;
  operand->context = Lift(context, frames_.level(operand->edge.producer));
  return operand->context >= 0;
}

Importer::Step Importer::PushOperand(const Task& task, std::vector<Task>* stack) {
  const NodeState& state = nodes_[static_cast<size_t>(task.node)];
  if (state.visit == Visit::kFailed || state.has_failed) return Step::kReady;
  if (frames_.FindExit(task.node) != nullptr) {
    const Step step = CountTrips(task, stack);
    if (step != Step::kReady) return step;
  }
  for (size_t i = ResultOf(task).next_operand; i < OperandCount(task.node); ++i) {
    Operand operand;
    if (!OperandAt(task, i, &operand)) {
      AddError(DiagnosticKind::kUnsupportedOperatorMode, task.node,
               absl::StrCat("operand ", i,
                            " comes from inside of another while loop, not through "
                            "an Exit of it"),
               "export the model again");
      return Step::kFailed;
    }
    if (cuts_.contains({operand.edge.producer, operand.edge.output})) continue;
    const Task producer{operand.edge.producer, operand.context};
    const Result& result = ResultOf(producer);
    if (result.is_settled) continue;
    if (result.is_active) {
      AddError(DiagnosticKind::kGraphCycle, task.node,
               absl::StrCat("the node needs its own value by way of '",
                            Printable(file_.node(producer.node).name()), "' in one turn of a loop"),
               "export the model again");
      return Step::kFailed;
    }
    ResultOf(task).next_operand = i;
    stack->push_back(producer);
    return Step::kWaiting;
  }
  return Step::kReady;
}

int Importer::RunOf(int frame, int outer) {
  const auto [it, is_new] =
      run_by_key_.try_emplace(std::make_pair(frame, outer), static_cast<int>(runs_.size()));
  if (is_new) {
    runs_.emplace_back();
    runs_.back().frame = frame;
    runs_.back().outer = outer;
  }
  return it->second;
}

int Importer::ContextOf(int run, int iteration) {
  std::vector<int>& contexts = runs_[static_cast<size_t>(run)].contexts;
  while (contexts.size() <= static_cast<size_t>(iteration)) {
    const int frame = runs_[static_cast<size_t>(run)].frame;
    if (!ChargeUnrolled(frames_.frame(frame).loop_cond, 1)) return -1;
    Context context;
    context.run = run;
    context.iteration = static_cast<int>(contexts.size());
    contexts.push_back(static_cast<int>(contexts_.size()));
    contexts_.push_back(std::move(context));
  }
  return contexts[static_cast<size_t>(iteration)];
}

Importer::Step Importer::CountTrips(const Task& exit, std::vector<Task>* stack) {
  const int frame = frames_.FindExit(exit.node)->frame;
  const int index = RunOf(frame, exit.context);
  LoopRun& run = runs_[static_cast<size_t>(index)];
  const int loop_cond = frames_.frame(frame).loop_cond;
  while (run.trip_count < 0 && !run.has_failed) {
    const int turn = ContextOf(index, run.next);
    const Task condition{loop_cond, turn < 0 ? -1 : Lift(turn, frames_.level(loop_cond))};
    if (condition.context < 0) {
      run.has_failed = true;
      break;
    }
    const Result& result = ResultOf(condition);
    if (!result.is_settled && !result.is_active) {
      run.holder = exit.node;
      run.held = std::make_unique<Diagnostics>();
      run.saved = state_.diagnostics;
      state_.diagnostics = run.held.get();
      stack->push_back(condition);
      return Step::kWaiting;
    }
    std::unique_ptr<Diagnostics> held;
    if (run.held != nullptr && run.holder == exit.node) {
      state_.diagnostics = run.saved;
      held = std::move(run.held);
    }
    if (!result.is_settled) {
      AddError(DiagnosticKind::kGraphCycle, loop_cond,
               absl::StrCat("the condition of the while loop needs the loop's own result '",
                            Printable(file_.node(exit.node).name()), "'"),
               "export the model again");
      run.has_failed = true;
    } else if (!TakeCondition(run, condition)) {
      run.has_failed = true;
      if (ReportCondition(run, condition)) held = nullptr;
    }
    if (held != nullptr) state_.diagnostics->Append(*held);
  }
  if (run.held != nullptr && run.holder == exit.node) {
    state_.diagnostics = run.saved;
    state_.diagnostics->Append(*run.held);
    run.held = nullptr;
  }
  return run.has_failed ? Step::kFailed : Step::kReady;
}

// Moves the run on by its condition's value; false where there is none that is known.
bool Importer::TakeCondition(LoopRun& run, const Task& condition) {
  const Result& result = ResultOf(condition);
  if (!result.is_done) return false;
  if (result.is_dead) {  // the whole loop lies on a branch that is not taken
    run.trip_count = run.next;
    return true;
  }
  const std::optional<Tensor>& value = result.values[0]->constant;
  if (!value.has_value()) return false;
  if (value->dtype() != DType::kBool || value->element_count() != 1) {
    AddError(DiagnosticKind::kOperandMismatch, condition.node,
             absl::StrCat("the condition of the while loop is ", TypeToString(value->type()),
                          "; it must be a bool"),
             "export the model again");
    run.has_failed = true;
    run.trip_count = 0;
  } else if (value->bytes()[0] == 0) {
    run.trip_count = run.next;
  } else if (run.next == kMaxLoopIterations) {
    AddError(DiagnosticKind::kModelLimitExceeded, condition.node,
             absl::StrCat("the while loop '", Printable(frames_.frame(run.frame).name),
                          "' still runs after ", kMaxLoopIterations, " turns; allowed are ",
                          kMaxLoopIterations),
             "run the loop on fewer turns, or its body once an inference with its state as input "
             "and output");
    run.has_failed = true;
    run.trip_count = 0;
  } else {
    ++run.next;
  }
  return true;
}

void Importer::AddGraphInputs(ValueId value, std::vector<std::string>* names) const {
  std::vector<bool> seen(static_cast<size_t>(graph_->value_count()), false);
  std::vector<ValueId> open = {value};
  while (!open.empty()) {
    const ValueId id = open.back();
    open.pop_back();
    if (seen[static_cast<size_t>(id.value())]) continue;
    seen[static_cast<size_t>(id.value())] = true;
    const Node& node = graph_->def(id);
    if (node.op == Op::kPlaceholder) names->push_back(node.source.name);
    open.insert(open.end(), node.inputs.begin(), node.inputs.end());
  }
}

std::vector<std::string> Importer::InputsBehind(const Task& condition, std::string* by_way_of) {
  std::vector<std::string> names;
  absl::flat_hash_set<std::pair<int, int>> seen;
  std::vector<Task> open = {condition};
  const auto take = [&](const ValueRef& value) {
    if (FactsOf(*value).is_dead || value->constant.has_value()) return;
    *by_way_of = absl::StrCat("'", Printable(value->source.name), "'");
    if (value->id.valid()) {
      AddGraphInputs(value->id, &names);
    } else if (FactsOf(*value).array < 0) {
      names.push_back(value->source.name);
    }
  };
  while (!open.empty() && names.size() < kMaxNamedInputs) {
    const Task task = open.back();
    open.pop_back();
    if (!seen.insert({task.node, task.context}).second) continue;
    const Result& result = ResultOf(task);
    if (result.is_done) {
      for (const ValueRef& value : result.values) take(value);
      continue;
    }
    for (size_t i = 0; i < OperandCount(task.node); ++i) {
      Operand operand;
      if (!OperandAt(task, i, &operand)) continue;
      const auto cut = cuts_.find({operand.edge.producer, operand.edge.output});
      if (cut == cuts_.end()) {
        open.push_back({operand.edge.producer, operand.context});
      } else if (cut->second.value != nullptr) {
        take(cut->second.value);
      }
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

// Reports a condition that depends on run-time data; false where it failed for another reason.
bool Importer::ReportCondition(const LoopRun& run, const Task& condition) {
  std::string by_way_of;
  std::vector<std::string> names = InputsBehind(condition, &by_way_of);
  if (names.empty()) return false;
  for (std::string& name : names) name = absl::StrCat("'", Printable(name), "'");
  AddError(
      DiagnosticKind::kOperandNotConstant, condition.node,
      absl::StrCat("the condition of the while loop '", Printable(frames_.frame(run.frame).name),
                   "' depends on model input ", absl::StrJoin(names, ", "), " by way of ",
                   by_way_of, "; the number of turns must be known at compile time"),
      "let the loop count up to a constant, or name what leaves it in INPUT_OPS");
  return true;
}

}  // namespace npuc::tf
