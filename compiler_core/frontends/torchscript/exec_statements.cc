// The executor's statements.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/frontends/torchscript/executor.h"

namespace npuc::pt {

Executor::Flow Executor::RunBlock(const std::vector<Stmt>& body, Frame& frame) {
  for (const Stmt& stmt : body) {
    const Flow flow = RunStatement(stmt, frame);
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Executor::Flow Executor::RunStatement(const Stmt& stmt, Frame& frame) {
  if (!Step(1, stmt.value.get())) return Flow::kAbort;
  switch (stmt.kind) {
    case StmtKind::kExpr: {
      ScriptValue ignored;
      return Eval(*stmt.value, frame, ignored) ? Flow::kNext : Flow::kAbort;
    }
    case StmtKind::kAssign:
      return RunAssign(stmt, frame);
    case StmtKind::kIf:
      return RunIf(stmt, frame);
    case StmtKind::kWhile:
      return RunWhile(stmt, frame);
    case StmtKind::kFor:
      return RunFor(stmt, frame);
    case StmtKind::kWith:
      return RunWith(stmt, frame);
    case StmtKind::kReturn:
      if (stmt.value != nullptr && !Eval(*stmt.value, frame, frame.result)) return Flow::kAbort;
      return Flow::kReturn;
    case StmtKind::kRaise:
      return RunRaise(stmt, frame);
    case StmtKind::kPass:
      return Flow::kNext;
    case StmtKind::kBreak:
      return Flow::kBreak;
    case StmtKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

Executor::Flow Executor::RunAssign(const Stmt& stmt, Frame& frame) {
  ScriptValue value;
  if (!Eval(*stmt.value, frame, value)) return Flow::kAbort;
  if (stmt.is_unpacking) return Unpack(stmt, value, frame);
  return AssignTo(*stmt.targets[0], value, frame);
}

Executor::Flow Executor::Unpack(const Stmt& stmt, const ScriptValue& value, Frame& frame) {
  std::vector<ScriptValue> items;
  if (value.Is(ScriptKind::kPoison)) {
    items.assign(stmt.targets.size(), value);
  } else if (!ItemsOf(value, *stmt.value, items)) {
    return Flow::kAbort;
  }
  if (items.size() != stmt.targets.size()) {
    Report(DiagnosticKind::kOperandMismatch, *stmt.value,
           absl::StrCat("a sequence of ", items.size(), " is unpacked into ", stmt.targets.size(),
                        " names"),
           "check the shapes in INPUT_OPS");
    return Flow::kAbort;
  }
  for (size_t i = 0; i < items.size(); ++i) {
    const Flow flow = AssignTo(*stmt.targets[i], items[i], frame);
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Executor::Flow Executor::AssignTo(const Expr& target, const ScriptValue& value, Frame& frame) {
  switch (target.kind) {
    case ExprKind::kName:
      frame.locals[target.text] = value;
      return Flow::kNext;
    case ExprKind::kAttribute:
      return AssignAttribute(target, value, frame);
    case ExprKind::kSubscript:
      return AssignItem(target, value, frame);
    default:
      Report(DiagnosticKind::kTorchCodeSyntax, target, "the left side cannot be assigned to",
             "save the model again with torch.jit.save");
      return Flow::kAbort;
  }
}

Executor::Flow Executor::AssignAttribute(const Expr& target, const ScriptValue& value,
                                         Frame& frame) {
  ScriptValue base;
  if (!Eval(*target.children[0], frame, base)) return Flow::kAbort;
  if (base.Is(ScriptKind::kPoison)) {
    state_->Flush(base.integer);
    return Flow::kNext;
  }
  if (!base.Is(ScriptKind::kObject)) {
    Report(DiagnosticKind::kOperandMismatch, target,
           absl::StrCat("an attribute of ", NameOf(base.kind), " is assigned"),
           "simplify the model");
    return Flow::kNext;
  }
  ScriptObject& object = *base.object;
  std::string name(target.text);
  if (object.is_kept) {
    OpCall call(state_, PlaceOf(&target), {PathOf(object, name), ""});
    state_->attributes.NoteAssignment(call, object, name);
    object.written.insert(name);
  }
  object.attributes[std::move(name)] = value;
  return Flow::kNext;
}

Executor::Flow Executor::AssignItem(const Expr& target, const ScriptValue& value, Frame& frame) {
  ScriptValue base;
  ScriptValue index;
  if (!Eval(*target.children[0], frame, base)) return Flow::kAbort;
  if (target.children[1]->kind == ExprKind::kSlice || !Eval(*target.children[1], frame, index)) {
    return Flow::kAbort;
  }
  ScriptValue ignored;
  return CallOperator(target, "_set_item", {base, index, value}, {}, frame, ignored) ? Flow::kNext
                                                                                     : Flow::kAbort;
}

Executor::Flow Executor::Decide(const ScriptValue& value, const Expr& where) {
  switch (value.kind) {
    case ScriptKind::kBool:
    case ScriptKind::kInt:
      return value.integer != 0 ? Flow::kNext : Flow::kBreak;
    case ScriptKind::kFloat:
      return value.real != 0 ? Flow::kNext : Flow::kBreak;
    case ScriptKind::kNone:
      return Flow::kBreak;
    case ScriptKind::kString:
      return !value.string->empty() ? Flow::kNext : Flow::kBreak;
    case ScriptKind::kList:
    case ScriptKind::kTuple:
      return !value.list->items.empty() ? Flow::kNext : Flow::kBreak;
    case ScriptKind::kPoison:
      state_->Flush(value.integer);
      return Flow::kAbort;
    default:
      break;
  }
  ScriptValue flag;
  Frame none;
  if (!ToNumber(where, "bool", value, none, flag) || !flag.Is(ScriptKind::kBool)) {
    return Flow::kAbort;
  }
  return flag.integer != 0 ? Flow::kNext : Flow::kBreak;
}

Executor::Flow Executor::RunIf(const Stmt& stmt, Frame& frame) {
  ScriptValue condition;
  if (!Eval(*stmt.value, frame, condition)) return Flow::kAbort;
  const Flow decision = Decide(condition, *stmt.value);
  if (decision == Flow::kAbort) return Flow::kAbort;
  if (++depth_ > limits_.depth) {
    Step(limits_.steps, stmt.value.get());
    return Flow::kAbort;
  }
  const Flow flow = RunBlock(decision == Flow::kNext ? stmt.body : stmt.orelse, frame);
  --depth_;
  return flow;
}

Executor::Flow Executor::RunWhile(const Stmt& stmt, Frame& frame) {
  while (true) {
    ScriptValue condition;
    if (!Eval(*stmt.value, frame, condition)) return Flow::kAbort;
    const Flow decision = Decide(condition, *stmt.value);
    if (decision == Flow::kAbort) return Flow::kAbort;
    if (decision == Flow::kBreak) return Flow::kNext;
    const Flow flow = RunBlock(stmt.body, frame);
    if (flow == Flow::kBreak) return Flow::kNext;
    if (flow == Flow::kReturn || flow == Flow::kAbort) return flow;
  }
}

bool Executor::ItemsOf(const ScriptValue& value, const Expr& where,
                       std::vector<ScriptValue>& items) {
  if (value.IsSequence()) {
    items = value.list->items;
    return Step(static_cast<int64_t>(items.size()), &where);
  }
  if (value.Is(ScriptKind::kDict)) {
    for (const auto& [key, item] : value.dict->entries) items.push_back(key);
    return Step(static_cast<int64_t>(items.size()), &where);
  }
  if (value.Is(ScriptKind::kString)) {
    if (!Step(static_cast<int64_t>(value.string->size()), &where)) return false;
    for (const char c : *value.string) items.push_back(state_->heap.String(std::string(1, c)));
    return true;
  }
  if (value.Is(ScriptKind::kPoison)) {
    state_->Flush(value.integer);
    return false;
  }
  if (value.Is(ScriptKind::kTensor)) {
    Frame none;
    ScriptValue parts;
    if (!CallOperator(where, "unbind", {value}, {}, none, parts) || !parts.IsSequence()) {
      if (parts.Is(ScriptKind::kPoison)) state_->Flush(parts.integer);
      return false;
    }
    items = parts.list->items;
    return true;
  }
  Report(DiagnosticKind::kOperandMismatch, where,
         absl::StrCat(NameOf(value.kind), " is not a sequence"), "simplify the model");
  return false;
}

Executor::Flow Executor::RunFor(const Stmt& stmt, Frame& frame) {
  // range(n) is run by counting: a list of its items could be long.
  const Expr& over = *stmt.value;
  const bool is_range = over.kind == ExprKind::kCall && over.children.size() == 2 &&
                        over.children[0]->kind == ExprKind::kName &&
                        over.children[0]->text == "range" && !stmt.is_unpacking;
  std::vector<ScriptValue> items;
  int64_t count = 0;
  ScriptValue value;
  if (!Eval(is_range ? *over.children[1] : over, frame, value)) return Flow::kAbort;
  if (is_range) {
    if (value.Is(ScriptKind::kTensor) && !ToNumber(over, "int", value, frame, value)) {
      return Flow::kAbort;
    }
    if (!value.Is(ScriptKind::kInt)) {
      if (value.Is(ScriptKind::kPoison)) {
        state_->Flush(value.integer);
      } else {
        Report(DiagnosticKind::kOperandMismatch, over,
               absl::StrCat("range() over ", NameOf(value.kind)), "simplify the model");
      }
      return Flow::kAbort;
    }
    count = std::max<int64_t>(value.integer, 0);
  } else {
    if (!ItemsOf(value, over, items)) return Flow::kAbort;
    count = static_cast<int64_t>(items.size());
  }
  for (int64_t i = 0; i < count; ++i) {
    if (!Step(1, stmt.value.get())) return Flow::kAbort;
    const ScriptValue item = is_range ? ScriptValue::Int(i) : items[static_cast<size_t>(i)];
    Flow flow =
        stmt.is_unpacking ? Unpack(stmt, item, frame) : AssignTo(*stmt.targets[0], item, frame);
    if (flow == Flow::kNext) flow = RunBlock(stmt.body, frame);
    if (flow == Flow::kBreak) break;
    if (flow == Flow::kReturn || flow == Flow::kAbort) return flow;
  }
  return Flow::kNext;
}

// torch writes it for no_grad() and its like, which change nothing here.
Executor::Flow Executor::RunWith(const Stmt& stmt, Frame& frame) {
  ScriptValue manager;
  if (!Eval(*stmt.value, frame, manager)) return Flow::kAbort;
  const bool is_known = manager.Is(ScriptKind::kObject) &&
                        (absl::StrContains(manager.object->class_name, "grad_mode") ||
                         absl::StrContains(manager.object->class_name, "autocast"));
  if (!is_known && !manager.Is(ScriptKind::kPoison)) {
    Report(DiagnosticKind::kUnsupportedOperatorMode, *stmt.value,
           "a with statement over something else than no_grad", "take the statement out");
  }
  for (const ExprPtr& target : stmt.targets) AssignTo(*target, manager, frame);
  return RunBlock(stmt.body, frame);
}

Executor::Flow Executor::RunRaise(const Stmt& stmt, Frame& frame) {
  std::string text;
  if (stmt.value != nullptr && stmt.value->kind == ExprKind::kCall &&
      stmt.value->children.size() > 1) {
    ScriptValue value;
    if (!Eval(*stmt.value->children[1], frame, value)) return Flow::kAbort;
    text = ScriptText(value);
  }
  Expr nothing;
  nothing.line = stmt.line;
  nothing.column = stmt.column;
  Raise(stmt.value != nullptr ? *stmt.value : nothing, "an exception", text);
  return Flow::kAbort;
}

}  // namespace npuc::pt
