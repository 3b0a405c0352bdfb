// The executor's expressions.
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "compiler_core/frontends/torchscript/executor.h"

namespace npuc::pt {

bool Executor::Eval(const Expr& expr, Frame& frame, ScriptValue& value) {
  if (!Step(1, &expr)) return false;
  if (++depth_ > limits_.depth) {
    if (!is_over_) {
      Report(DiagnosticKind::kModelLimitExceeded, expr,
             absl::StrCat("calls and expressions are nested deeper than ", limits_.depth),
             "take recursion out of the model");
    }
    is_over_ = true;
  }
  const bool ok = !is_over_ && EvalInner(expr, frame, value);
  --depth_;
  return ok;
}

bool Executor::EvalInner(const Expr& expr, Frame& frame, ScriptValue& value) {
  switch (expr.kind) {
    case ExprKind::kName:
      return EvalName(expr, frame, value);
    case ExprKind::kInt:
      value = ScriptValue::Int(expr.integer);
      return true;
    case ExprKind::kFloat:
      value = ScriptValue::Float(expr.real);
      return true;
    case ExprKind::kString:
      value = state_->heap.String(expr.string);
      return Step(static_cast<int64_t>(expr.string.size() / 16), &expr);
    case ExprKind::kList:
    case ExprKind::kTuple:
    case ExprKind::kDict:
      return EvalItems(expr, frame, value);
    case ExprKind::kAttribute:
      return EvalAttribute(expr, frame, value);
    case ExprKind::kCall:
      return EvalCall(expr, frame, value);
    case ExprKind::kSubscript:
      return EvalSubscript(expr, frame, value);
    case ExprKind::kUnary:
      return EvalUnary(expr, frame, value);
    case ExprKind::kBinary:
      return EvalBinary(expr, frame, value);
    case ExprKind::kTernary: {
      ScriptValue condition;
      if (!Eval(*expr.children[0], frame, condition)) return false;
      const Flow decision = Decide(condition, *expr.children[0]);
      if (decision == Flow::kAbort) return false;
      return Eval(*expr.children[decision == Flow::kNext ? 1 : 2], frame, value);
    }
    case ExprKind::kSlice:
    case ExprKind::kEllipsis:
      break;
  }
  Report(DiagnosticKind::kTorchCodeSyntax, expr, "a slice stands where a value must be",
         "save the model again with torch.jit.save");
  return false;
}

bool Executor::EvalName(const Expr& expr, Frame& frame, ScriptValue& value) {
  const auto local = frame.locals.find(expr.text);
  if (local != frame.locals.end()) {
    value = local->second;
    return true;
  }
  if (expr.text == "True" || expr.text == "False") {
    value = ScriptValue::Bool(expr.text == "True");
  } else if (expr.text == "None") {
    value = ScriptValue::None();
  } else if (expr.text == "inf") {
    value = ScriptValue::Float(std::numeric_limits<double>::infinity());
  } else if (expr.text == "nan") {
    value = ScriptValue::Float(std::numeric_limits<double>::quiet_NaN());
  } else if (expr.text == "^") {
    Report(DiagnosticKind::kUnsupportedOperator, expr,
           absl::StrCat("the model calls the Python function '", Printable(expr.string),
                        "', which the archive does not hold"),
           "write it with operators of torch, or script it");
    value = ScriptValue::Poison();
  } else {
    value = state_->heap.String(std::string(expr.text), ScriptKind::kPath);
  }
  return true;
}

// a.b.c where a is no variable is a dotted name.
bool Executor::EvalAttribute(const Expr& expr, Frame& frame, ScriptValue& value) {
  const auto cached = resolved_.find(&expr);
  if (cached != resolved_.end()) {
    value = cached->second;
    return true;
  }
  ScriptValue base;
  if (!Eval(*expr.children[0], frame, base)) return false;
  if (!base.Is(ScriptKind::kPath)) return AttributeOf(base, expr.text, expr, frame, value);
  if (!ResolvePath(absl::StrCat(*base.string, ".", expr.text), expr, value)) return false;
  resolved_.emplace(&expr, value);
  return true;
}

bool Executor::EvalItems(const Expr& expr, Frame& frame, ScriptValue& value) {
  std::vector<ScriptValue> items(expr.children.size());
  for (size_t i = 0; i < items.size(); ++i) {
    if (!Eval(*expr.children[i], frame, items[i])) return false;
  }
  if (expr.kind != ExprKind::kDict) {
    value = state_->heap.List(
        std::move(items), expr.kind == ExprKind::kTuple ? ScriptKind::kTuple : ScriptKind::kList);
    return true;
  }
  value = state_->heap.Dict();
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    value.dict->entries.emplace_back(items[i], items[i + 1]);
  }
  return true;
}

bool Executor::EvalUnary(const Expr& expr, Frame& frame, ScriptValue& value) {
  ScriptValue operand;
  if (!Eval(*expr.children[0], frame, operand)) return false;
  if (expr.text == "not") {
    const Flow decision = Decide(operand, *expr.children[0]);
    if (decision == Flow::kAbort) return false;
    value = ScriptValue::Bool(decision != Flow::kNext);
    return true;
  }
  if (expr.text == "-" && operand.Is(ScriptKind::kFloat)) {
    // The lowest integer; see the parser.
    if (expr.children[0]->kind == ExprKind::kFloat && operand.real == 0x1p63 &&
        expr.children[0]->text.find('.') == absl::string_view::npos) {
      value = ScriptValue::Int(std::numeric_limits<int64_t>::min());
      return true;
    }
    value = ScriptValue::Float(-operand.real);
    return true;
  }
  if (expr.text == "+") {
    value = operand;
    return true;
  }
  return CallOperator(expr, expr.text == "-" ? "neg" : "bitwise_not", {operand}, {}, frame, value);
}

bool Executor::EvalBinary(const Expr& expr, Frame& frame, ScriptValue& value) {
  ScriptValue a;
  if (!Eval(*expr.children[0], frame, a)) return false;
  if (expr.text == "and" || expr.text == "or") {
    const Flow decision = Decide(a, *expr.children[0]);
    if (decision == Flow::kAbort) return false;
    value = a;
    if ((decision == Flow::kNext) == (expr.text == "or")) return true;
    return Eval(*expr.children[1], frame, value);
  }
  ScriptValue b;
  if (!Eval(*expr.children[1], frame, b)) return false;
  constexpr std::pair<absl::string_view, absl::string_view> kOperators[] = {
      {"+", "add"},     {"-", "sub"},         {"*", "mul"},
      {"/", "div"},     {"//", "floordiv"},   {"%", "remainder"},
      {"**", "pow"},    {"==", "eq"},         {"!=", "ne"},
      {"<", "lt"},      {"<=", "le"},         {">", "gt"},
      {">=", "ge"},     {"is", "__is__"},     {"is not", "__isnot__"},
      {"@", "matmul"},  {"&", "__and__"},     {"|", "__or__"},
      {"^", "__xor__"}, {"<<", "__lshift__"}, {">>", "__rshift__"},
  };
  for (const auto& [op, name] : kOperators) {
    if (op == expr.text) return CallOperator(expr, name, {a, b}, {}, frame, value);
  }
  // in, not in
  if (!CallOperator(expr, "__contains__", {b, a}, {}, frame, value)) return false;
  if (expr.text == "not in" && value.Is(ScriptKind::kBool)) {
    value = ScriptValue::Bool(value.integer == 0);
  }
  return true;
}

bool Executor::EvalSubscript(const Expr& expr, Frame& frame, ScriptValue& value) {
  ScriptValue base;
  if (!Eval(*expr.children[0], frame, base)) return false;
  if (base.Is(ScriptKind::kPath)) {  // a type such as List[int]: nothing asks what it is
    value = base;
    return true;
  }
  const Expr& index = *expr.children[1];
  if (index.kind == ExprKind::kSlice) {
    std::vector<ScriptValue> arguments = {base};
    const bool is_tensor = base.Is(ScriptKind::kTensor);
    if (is_tensor) arguments.push_back(ScriptValue::Int(0));
    for (const ExprPtr& part : index.children) {
      arguments.push_back(ScriptValue::None());
      if (part != nullptr && !Eval(*part, frame, arguments.back())) return false;
    }
    return CallOperator(expr, "slice", std::move(arguments), {}, frame, value);
  }
  ScriptValue item;
  if (!Eval(index, frame, item)) return false;
  return ItemOf(base, item, expr, value);
}

bool Executor::ItemOf(const ScriptValue& base, const ScriptValue& index, const Expr& where,
                      ScriptValue& value) {
  if (base.Is(ScriptKind::kPoison) || index.Is(ScriptKind::kPoison)) {
    value = base.Is(ScriptKind::kPoison) ? base : index;
    return true;
  }
  if (base.IsSequence() && (index.Is(ScriptKind::kInt) || index.Is(ScriptKind::kBool))) {
    const auto size = static_cast<int64_t>(base.list->items.size());
    const int64_t at = index.integer < 0 ? index.integer + size : index.integer;
    if (at >= 0 && at < size) {
      value = base.list->items[static_cast<size_t>(at)];
      return true;
    }
    Report(DiagnosticKind::kOperandMismatch, where,
           absl::StrCat("index ", index.integer, " is outside a sequence of ", size),
           "check the shapes in INPUT_OPS");
    return false;
  }
  if (base.Is(ScriptKind::kDict)) {
    for (const auto& [key, item] : base.dict->entries) {
      if (!Step(1, &where)) return false;
      if (!ScriptEqual(key, index)) continue;
      value = item;
      return true;
    }
    Report(DiagnosticKind::kOperandMismatch, where,
           absl::StrCat("a dict has no key ", ScriptText(index)), "check the model");
    return false;
  }
  if (base.Is(ScriptKind::kTensor)) {
    Frame none;
    return CallOperator(where, "select", {base, ScriptValue::Int(0), index}, {}, none, value);
  }
  Report(DiagnosticKind::kOperandMismatch, where,
         absl::StrCat(NameOf(base.kind), " is indexed by ", NameOf(index.kind)),
         "simplify the model");
  return false;
}

bool Executor::EvalArguments(const Expr& expr, Frame& frame, std::vector<ScriptValue>& positional,
                             Named& named) {
  const size_t count = expr.children.size() - 1;
  const size_t first_named = count - expr.keywords.size();
  for (size_t i = 0; i < count; ++i) {
    ScriptValue value;
    if (!Eval(*expr.children[1 + i], frame, value)) return false;
    if (i < first_named) {
      positional.push_back(value);
    } else {
      named.emplace_back(expr.keywords[i - first_named], value);
    }
  }
  return true;
}

bool Executor::IsInstance(const ScriptValue& value, const Expr& type, Frame& frame,
                          bool& is_instance) {
  if (!Step(1, &type)) return false;
  if (type.kind == ExprKind::kTuple) {
    return IsInstanceOfAny(value, type.children, frame, is_instance);
  }
  if (type.kind == ExprKind::kSubscript) {
    const absl::string_view outer = type.children[0]->text;
    const Expr& inner = *type.children[1];
    const bool is_list = outer == "List" && value.Is(ScriptKind::kList);
    is_instance = false;
    if (outer == "Optional" && value.IsNone()) {
      is_instance = true;
    } else if (outer == "Optional") {
      return IsInstance(value, inner, frame, is_instance);
    } else if (outer == "Union" && inner.kind == ExprKind::kTuple) {
      return IsInstanceOfAny(value, inner.children, frame, is_instance);
    } else if (outer == "Dict") {
      is_instance = value.Is(ScriptKind::kDict);  // scripts do not tell them apart by their items
    } else if (outer == "Tuple") {
      const size_t size = inner.kind == ExprKind::kTuple ? inner.children.size() : 1;
      is_instance = value.Is(ScriptKind::kTuple) && value.list->items.size() == size;
      for (size_t i = 0; i < size && is_instance; ++i) {
        const Expr& item = inner.kind == ExprKind::kTuple ? *inner.children[i] : inner;
        if (!IsInstance(value.list->items[i], item, frame, is_instance)) return false;
      }
    } else if (is_list) {
      is_instance = true;
      for (size_t i = 0; i < value.list->items.size() && is_instance; ++i) {
        if (!IsInstance(value.list->items[i], inner, frame, is_instance)) return false;
      }
    }
    return true;
  }
  if (type.kind == ExprKind::kName) {
    constexpr std::pair<absl::string_view, ScriptKind> kKinds[] = {
        {"int", ScriptKind::kInt},       {"float", ScriptKind::kFloat},
        {"bool", ScriptKind::kBool},     {"str", ScriptKind::kString},
        {"Tensor", ScriptKind::kTensor}, {"NoneType", ScriptKind::kNone},
        {"Device", ScriptKind::kDevice}};
    for (const auto& [name, kind] : kKinds) {
      if (type.text != name) continue;
      is_instance = value.Is(kind);
      return true;
    }
    if (type.text == "number") {
      is_instance = value.IsNumber();
      return true;
    }
  }
  ScriptValue named;
  if (!Eval(type, frame, named)) return false;
  if (!named.Is(ScriptKind::kClass)) {
    return Raise(type, "a check for a type that is not known here", "");
  }
  is_instance = value.Is(ScriptKind::kObject) && value.object->class_def == named.class_def;
  return true;
}

bool Executor::IsInstanceOfAny(const ScriptValue& value, const ExprList& types, Frame& frame,
                               bool& is_instance) {
  is_instance = false;
  for (size_t i = 0; i < types.size() && !is_instance; ++i) {
    if (!IsInstance(value, *types[i], frame, is_instance)) return false;
  }
  return true;
}

bool Executor::EvalCall(const Expr& expr, Frame& frame, ScriptValue& value) {
  const Expr& callee = *expr.children[0];
  if (callee.kind == ExprKind::kName && frame.locals.find(callee.text) == frame.locals.end()) {
    // Types as arguments are not evaluated.
    if ((callee.text == "annotate" || callee.text == "unchecked_cast") &&
        expr.children.size() == 3) {
      return Eval(*expr.children[2], frame, value);
    }
    if (callee.text == "isinstance" && expr.children.size() == 3) {
      ScriptValue checked;
      if (!Eval(*expr.children[1], frame, checked)) return false;
      if (checked.Is(ScriptKind::kPoison)) {
        value = checked;
        return true;
      }
      bool is_instance = false;
      if (!IsInstance(checked, *expr.children[2], frame, is_instance)) return false;
      value = ScriptValue::Bool(is_instance);
      return true;
    }
    if (callee.text == "uninitialized") {
      value = ScriptValue::Of(ScriptKind::kUninitialized);
      return true;
    }
  }
  ScriptValue function;
  if (!Eval(callee, frame, function)) return false;
  std::vector<ScriptValue> positional;
  Named named;
  if (!EvalArguments(expr, frame, positional, named)) return false;
  return CallValue(expr, function, std::move(positional), named, frame, value);
}

}  // namespace npuc::pt
