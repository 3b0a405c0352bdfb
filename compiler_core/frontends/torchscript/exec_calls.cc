// The executor's calls.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "compiler_core/frontends/torchscript/executor.h"
#include "compiler_core/frontends/torchscript/quantized.h"

namespace npuc::pt {
// Layers whose weights an archive keeps beside their settings: the operator, and which items of the
// object's state are its arguments behind the operand.
struct PackedLayer {
  absl::string_view name;
  absl::string_view op;
  std::vector<size_t> order;
};

namespace {

// A call that fails costs a message and, where its name is not known, a search for one like it: so
// much more than other steps that a loop of them must not run for as many.
constexpr int64_t kStepsOfFailure = 1024;

bool HasPoison(const std::vector<ScriptValue>& values) {
  return std::any_of(values.begin(), values.end(),
                     [](const ScriptValue& value) { return value.Is(ScriptKind::kPoison); });
}

// The taints of poisoned arguments, also of those in lists.
std::vector<int64_t> TaintsOf(const std::vector<ScriptValue>& values) {
  std::vector<int64_t> taints;
  for (const ScriptValue& value : values) {
    if (value.Is(ScriptKind::kPoison)) taints.push_back(value.integer);
    if (!value.IsSequence()) continue;
    for (const ScriptValue& item : value.list->items) {
      if (item.Is(ScriptKind::kPoison)) taints.push_back(item.integer);
    }
  }
  return taints;
}

// Whether a call changes more than its result.
bool HasEffects(absl::string_view name) {
  return (absl::EndsWith(name, "_") && !absl::EndsWith(name, "__")) || name == "append" ||
         name == "extend" || name == "insert" || name == "pop" || name == "reverse" ||
         name == "sort" || name == "_set_item";
}

// Operators whose in-place form changes how the tensor sees its memory, and not what that holds.
bool ChangesForm(absl::string_view op) {
  constexpr absl::string_view kOps[] = {"resize",   "resize_as", "squeeze",   "swapaxes",
                                        "swapdims", "t",         "transpose", "unsqueeze"};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

const PackedLayer* FindPackedLayer(absl::string_view name) {
  static const auto* const kLayers = new std::vector<PackedLayer>{
      {"conv2d_clamp_run", "conv2d", {0, 1, 2, 3, 4, 5}},
      // The state has dilations before groups, the operator behind them.
      {"conv2d_transpose_clamp_run", "conv_transpose2d", {0, 1, 2, 3, 4, 6, 5}},
      {"linear_clamp_run", "linear", {0, 1}}};
  for (const PackedLayer& layer : *kLayers) {
    if (layer.name == name) return &layer;
  }
  return nullptr;
}

// As torch's schemas call an operator, for messages.
std::string SchemaName(absl::string_view op) {
  const bool is_whole = absl::StartsWith(op, kQuantizedPrefix);
  return absl::StrCat(is_whole ? "" : "aten::", Printable(op));
}

bool IsTensorList(const ScriptValue& value) {
  return value.IsSequence() && !value.list->items.empty() &&
         value.list->items[0].Is(ScriptKind::kTensor);
}

}  // namespace

bool Executor::CallValue(const Expr& expr, const ScriptValue& callee,
                         std::vector<ScriptValue> positional, const Named& named, Frame& frame,
                         ScriptValue& value) {
  switch (callee.kind) {
    case ScriptKind::kPath:
      return CallPath(expr, *callee.string, std::move(positional), named, frame, value);
    case ScriptKind::kFunction: {
      const ScriptFunction& function = *callee.function;
      const bool is_method = function.self != nullptr && function.self->is_module;
      return CallFunction(&expr, function, positional, named,
                          is_method ? function.self->path : frame.module_path, value);
    }
    case ScriptKind::kClass:
      return CallClass(expr, callee, std::move(positional), named, frame, value);
    case ScriptKind::kPoison:
      value = callee;
      return true;
    default:
      Report(DiagnosticKind::kTorchNameUnknown, expr,
             absl::StrCat(NameOf(callee.kind), " is called"), "save the model again");
      return false;
  }
}

bool Executor::CallPath(const Expr& expr, absl::string_view path,
                        std::vector<ScriptValue> positional, const Named& named, Frame& frame,
                        ScriptValue& value) {
  absl::string_view name = path;
  for (const absl::string_view prefix : {"torch.", "ops.prim.", "ops.aten."}) {
    if (absl::ConsumePrefix(&name, prefix)) {
      return CallOperator(expr, name, std::move(positional), named, frame, value);
    }
  }
  bool is_known = true;
  const bool ok = CallBuiltin(expr, path, positional, frame, value, is_known);
  if (is_known) return ok;
  if (absl::ConsumePrefix(&name, "ops.prepacked.")) {
    const PackedLayer* layer = FindPackedLayer(name);
    if (layer != nullptr) return CallPacked(expr, *layer, positional, frame, value);
  }
  if (absl::ConsumePrefix(&name, "ops.quantized.")) {
    return CallOperator(expr, absl::StrCat(kQuantizedPrefix, name), std::move(positional), named,
                        frame, value);
  }
  if (absl::StartsWith(path, "ops.")) {
    const std::string own = absl::StrReplaceAll(absl::StripPrefix(path, "ops."), {{".", "::"}});
    if (const frontend::PluginOp* const plugin = plugins_->Find(own)) {
      return CallPlugin(expr, *plugin, positional, named, frame, value);
    }
    ReportUnknownOperator(expr, path, frame);
    if (!Step(kStepsOfFailure, &expr)) return false;
  } else {
    Report(DiagnosticKind::kTorchNameUnknown, expr,
           absl::StrCat("'", Printable(path), "' is neither in the archive's code nor known"),
           "save the model again with torch.jit.save");
  }
  value = ScriptValue::Poison();
  return true;
}

// A layer of a model prepared for mobile CPUs: an operand, and an object that holds the weight, the
// bias, the operator's settings, and the bounds of its result, each of which may be None.
bool Executor::CallPacked(const Expr& expr, const PackedLayer& layer,
                          const std::vector<ScriptValue>& positional, Frame& frame,
                          ScriptValue& value) {
  if (HasPoison(positional)) {
    value = state_->NewPoison({}, TaintsOf(positional));
    return true;
  }
  const ScriptValue* packed = nullptr;
  if (positional.size() == 2 && positional[1].Is(ScriptKind::kObject)) {
    const auto& attributes = positional[1].object->attributes;
    const auto state = attributes.find(kPackedState);
    if (state != attributes.end()) packed = &state->second;
  }
  if (packed == nullptr || packed->list->items.size() != layer.order.size() + 2) {
    Report(DiagnosticKind::kTorchTensorInvalid, expr,
           absl::StrCat("what ", std::string(layer.name),
                        " is given holds no weights of such a layer"),
           "save the model again");
    return false;
  }
  const std::vector<ScriptValue>& items = packed->list->items;
  std::vector<ScriptValue> arguments = {positional[0]};
  for (const size_t item : layer.order) arguments.push_back(items[item]);
  if (!CallOperator(expr, layer.op, std::move(arguments), {}, frame, value)) return false;
  const ScriptValue& lowest = items[items.size() - 2];
  const ScriptValue& highest = items.back();
  if (lowest.IsNone() && highest.IsNone()) return true;
  return CallOperator(expr, "clamp", {value, lowest, highest}, {}, frame, value);
}

bool Executor::CallBuiltin(const Expr& expr, absl::string_view name,
                           std::vector<ScriptValue>& positional, Frame& frame, ScriptValue& value,
                           bool& is_known) {
  if (HasPoison(positional)) {
    value = state_->NewPoison({}, TaintsOf(positional));
    return true;
  }
  if (positional.size() == 1 &&
      (name == "int" || name == "float" || name == "bool" || name == "complex")) {
    return ToNumber(expr, name, positional[0], frame, value);
  }
  if (name == "str" && positional.size() == 1) {
    value = state_->heap.String(ScriptText(positional[0]));
    return true;
  }
  if (name == "print") {
    value = ScriptValue::None();
    return true;
  }
  if (name == "getattr" && positional.size() >= 2 && positional[1].Is(ScriptKind::kString)) {
    return AttributeOf(positional[0], *positional[1].string, expr, frame, value);
  }
  if (name == "hasattr" && positional.size() == 2 && positional[0].Is(ScriptKind::kObject) &&
      positional[1].Is(ScriptKind::kString)) {
    value = ScriptValue::Bool(positional[0].object->attributes.count(*positional[1].string) > 0);
    return true;
  }
  if (name == "object.__new__" && positional.size() == 1 && positional[0].Is(ScriptKind::kClass)) {
    value = state_->heap.Object();
    value.object->class_def = positional[0].class_def;
    value.object->file = positional[0].file;
    value.object->class_name =
        absl::StrCat(positional[0].file->path, ":", positional[0].class_def->name);
    return true;
  }
  for (const absl::string_view same :
       {"len", "list", "range", "max", "min", "abs", "round", "sorted", "tuple", "dict", "ord",
        "chr", "sum", "any", "all"}) {
    if (same == name) return CallOperator(expr, same, positional, {}, frame, value);
  }
  is_known = false;
  return true;
}

bool Executor::ToNumber(const Expr& expr, absl::string_view type, const ScriptValue& from,
                        Frame& frame, ScriptValue& value) {
  ScriptValue number = from;
  if (from.Is(ScriptKind::kTensor)) {
    OpCall call(state_, PlaceOf(&expr), {frame.module_path, absl::StrCat("aten::", type)});
    const absl::StatusOr<ValueRef> read = call.Read(from.tensor);
    if (!read.ok()) return false;
    if (!(*read)->constant.has_value()) {
      Report(DiagnosticKind::kTorchDataDependent, expr,
             absl::StrCat(type == "bool" ? "a condition by " : "", type, "() of run-time data (",
                          TypeToString((*read)->type),
                          "): the NPU runs one fixed sequence of commands"),
             "compute both sides and mix them, or decide outside of the model");
      return false;
    }
    const Tensor& tensor = *(*read)->constant;
    if (tensor.element_count() != 1) {
      Report(DiagnosticKind::kOperandMismatch, expr,
             absl::StrCat(type, "() of ", TypeToString(tensor.type())), "use a single element");
      return false;
    }
    if (IsFloat(tensor.dtype())) {
      number = ScriptValue::Float(tensor.at(0));
    } else if (tensor.dtype() == DType::kBool) {
      number = ScriptValue::Bool(tensor.int_at(0) != 0);
    } else {
      number = ScriptValue::Int(tensor.int_at(0));
    }
  } else if (from.Is(ScriptKind::kString) && type == "float") {
    double real = 0;
    if (absl::SimpleAtod(*from.string, &real)) number = ScriptValue::Float(real);
  } else if (from.Is(ScriptKind::kString) && type == "int") {
    int64_t integer = 0;
    if (absl::SimpleAtoi(*from.string, &integer)) number = ScriptValue::Int(integer);
  } else if (type == "bool" && !from.IsNumber()) {
    if (from.IsSequence() || from.IsNone() || from.Is(ScriptKind::kString)) {
      value = ScriptValue::Bool(Decide(from, expr) == Flow::kNext);
      return true;
    }
  }
  if (!number.IsNumber()) {
    Report(DiagnosticKind::kOperandMismatch, expr, absl::StrCat(type, "() of ", NameOf(from.kind)),
           "simplify the model");
    return false;
  }
  if (type == "bool") {
    value = ScriptValue::Bool(number.AsDouble() != 0);
  } else if (type == "float") {
    value = ScriptValue::Float(number.AsDouble());
  } else if (number.Is(ScriptKind::kFloat)) {
    const double whole = std::trunc(number.real);
    if (!(std::fabs(whole) < 0x1p62)) {
      Report(DiagnosticKind::kOperandMismatch, expr,
             absl::StrCat("int() of ", number.real, " is out of range"), "check the model");
      return false;
    }
    value = ScriptValue::Int(static_cast<int64_t>(whole));
  } else {
    value = ScriptValue::Int(number.integer);
  }
  return true;
}

bool Executor::Raise(const Expr& where, absl::string_view type, const std::string& text) {
  Report(DiagnosticKind::kTorchRaises, where,
         absl::StrCat("with the shapes of INPUT_OPS the model raises ", Printable(type),
                      text.empty() ? "" : ": ", Printable(text)),
         absl::StrContains(text, "when training")
             ? "call model.eval() before torch.jit.trace or torch.jit.script"
             : "check the shapes in INPUT_OPS");
  return false;
}

bool Executor::CallClass(const Expr& expr, const ScriptValue& callee,
                         std::vector<ScriptValue> positional, const Named& named, Frame& frame,
                         ScriptValue& value) {
  const ClassDef& def = *callee.class_def;
  if (def.base == "NamedTuple") {
    if (positional.size() > def.attributes.size()) {
      Report(DiagnosticKind::kOperandMismatch, expr, "too many fields for the named tuple",
             "save the model again");
      return false;
    }
    for (size_t i = positional.size(); i < def.attributes.size(); ++i) {
      positional.push_back(ScriptValue::None());
      for (const auto& [name, item] : named) {
        if (name == def.attributes[i].name) positional.back() = item;
      }
    }
    value = state_->heap.Tuple(std::move(positional));
    value.list->named = &def;
    return true;
  }
  value = state_->heap.Object();
  ScriptObject& object = *value.object;
  object.class_def = &def;
  object.file = callee.file;
  object.class_name = std::string(def.name);
  const ScriptFunction* init = FindMethod(&object, "__init__");
  if (init == nullptr || named.size() + positional.size() == 0) return true;
  ScriptValue ignored;
  return CallFunction(&expr, *init, positional, named, frame.module_path, ignored);
}

bool Executor::CallOperator(const Expr& expr, absl::string_view name,
                            std::vector<ScriptValue> positional, const Named& named, Frame& frame,
                            ScriptValue& value) {
  if (name == "RaiseException") {
    std::string type = "an exception";
    if (positional.size() > 1 && positional[1].Is(ScriptKind::kString)) {
      type = std::string(absl::StripPrefix(*positional[1].string, "builtins."));
    }
    return Raise(expr, type, positional.empty() ? "" : ScriptText(positional[0]));
  }
  if (HasPoison(positional) && name != "append" && name != "__is__" && name != "__isnot__") {
    value = state_->NewPoison({}, TaintsOf(positional));
    if (HasEffects(name)) state_->Flush(value.integer);
    return true;
  }
  const bool has_tensor = std::any_of(positional.begin(), positional.end(),
                                      [](const auto& v) { return v.Is(ScriptKind::kTensor); });
  // The in-place form of an operator is its rule and a write.
  absl::string_view base = name;
  if (absl::EndsWith(name, "_") && !absl::EndsWith(name, "__")) base.remove_suffix(1);
  const bool prefers_tensor = has_tensor &&
                              !(positional[0].IsSequence() && !IsTensorList(positional[0])) &&
                              !positional[0].Is(ScriptKind::kDict);
  if (const frontend::PluginOp* const plugin = plugins_->Find(name)) {
    return CallPlugin(expr, *plugin, positional, named, frame, value);
  }
  const OpRule* rule = nullptr;
  if (prefers_tensor) {
    rule = tensor_rules_.Find(name);
    if (rule == nullptr) rule = tensor_rules_.Find(base);
    if (rule == nullptr) rule = python_rules_.Find(name);
  } else {
    rule = python_rules_.Find(name);
    if (rule == nullptr) rule = tensor_rules_.Find(name);
    if (rule == nullptr) rule = tensor_rules_.Find(base);
  }
  if (rule != nullptr) {
    return RunRule(expr, *rule, name, std::move(positional), named, frame, value);
  }
  Diagnostics problem;
  Diagnostics* const all = std::exchange(state_->diagnostics, &problem);
  ReportUnknownOperator(expr, name, frame);
  state_->diagnostics = all;
  value = state_->NewPoison(problem.list(), TaintsOf(positional));
  if (HasEffects(name)) state_->Flush(value.integer);
  return Step(kStepsOfFailure, &expr);
}

const std::string& Executor::NearestOperator(absl::string_view name) {
  // Remembered, since a loop may come by again and again.
  const auto [it, inserted] = nearest_operators_.try_emplace(std::string(name));
  if (inserted) it->second = tensor_rules_.Nearest(name);
  return it->second;
}

void Executor::ReportUnknownOperator(const Expr& expr, absl::string_view name, const Frame& frame) {
  const bool is_quantized = absl::StrContains(name, "quantize");
  const std::string& nearest = NearestOperator(name);
  NodeSource source{frame.module_path, SchemaName(name)};
  if (is_quantized) {
    state_->Report(DiagnosticKind::kTorchQuantized, PlaceOf(&expr), source,
                   absl::StrCat("npuc cannot import this operator of quantized models",
                                nearest.empty() ? "" : absl::StrCat("; near to it is ", nearest)),
                   "keep this layer in float (its qconfig None), or export the float model");
    return;
  }
  state_->Report(DiagnosticKind::kUnsupportedOperator, PlaceOf(&expr), source,
                 absl::StrCat("npuc cannot import torch.", Printable(name),
                              nearest.empty() ? "" : absl::StrCat("; near to it is ", nearest)),
                 "write it with supported operators, or move it out of the model; npuc --list -c "
                 "GRUS -f PT shows what is accepted");
}

bool Executor::RunRule(const Expr& expr, const OpRule& rule, absl::string_view name,
                       std::vector<ScriptValue> positional, const Named& named, Frame& frame,
                       ScriptValue& value) {
  // Operators walk lists, texts and, to compute constants, tensors.
  int64_t items = 0;
  for (const ScriptValue& argument : positional) {
    if (argument.Is(ScriptKind::kString)) {
      items += static_cast<int64_t>(argument.string->size() / 2);
    }
    if (argument.IsSequence()) items += static_cast<int64_t>(argument.list->items.size());
    if (argument.Is(ScriptKind::kDict)) {
      items += static_cast<int64_t>(argument.dict->entries.size());
    }
    if (argument.Is(ScriptKind::kTensor)) items += argument.tensor->value->type.element_count() / 8;
  }
  const bool in_place = name.size() == rule.op.size() + 1 && name.back() == '_';
  // All tensors are asked whose views they are.
  if (in_place && ChangesForm(rule.op)) items += static_cast<int64_t>(state_->heap.tensor_count());
  if (name != "append" && !Step(items / 32, &expr)) return false;
  OpCall call(state_, PlaceOf(&expr),
              {NodeNameOf(absl::StripPrefix(rule.op, kQuantizedPrefix), frame), SchemaName(name)});
  call.set_name(rule.op);
  TensorCell* target = in_place && !positional.empty() && positional[0].Is(ScriptKind::kTensor)
                           ? positional[0].tensor
                           : nullptr;
  // torch counts batches here, for nobody who only runs the model.
  if (target != nullptr && absl::EndsWith(target->attribute, "num_batches_tracked")) {
    value = positional[0];
    return true;
  }
  const std::vector<int64_t> parents = TaintsOf(positional);
  return RunApart(
      expr, name, parents,
      [&] { return ApplyRule(call, rule, std::move(positional), named, target, value); }, value);
}

std::string Executor::NodeNameOf(absl::string_view op, const Frame& frame) {
  std::string node = frame.module_path;
  absl::StrAppend(&node, node.empty() ? "" : "/", op);
  const int count = state_->name_counts[node]++;
  if (count > 0) absl::StrAppend(&node, "_", count);
  return node;
}

bool Executor::RunApart(const Expr& expr, absl::string_view name,
                        const std::vector<int64_t>& parents, const std::function<bool()>& apply,
                        ScriptValue& value) {
  Diagnostics found;
  Diagnostics* const all = std::exchange(state_->diagnostics, &found);
  const bool ok = apply();
  state_->diagnostics = all;
  std::vector<Diagnostic> problems;
  for (const Diagnostic& diagnostic : found.list()) {
    if (ok || diagnostic.severity() != Severity::kError) {
      all->Add(diagnostic);
    } else {
      problems.push_back(diagnostic);
    }
  }
  if (!ok) {
    value = state_->NewPoison(std::move(problems), parents);
    if (HasEffects(name)) state_->Flush(value.integer);
    if (!Step(kStepsOfFailure, &expr)) return false;
  }
  if (value.IsSequence()) return Step(static_cast<int64_t>(value.list->items.size()), &expr);
  if (value.Is(ScriptKind::kString)) {
    return Step(static_cast<int64_t>(value.string->size() / 16), &expr);
  }
  return true;
}

// False where the call fails, which is reported, or where an argument was poison.
bool Executor::ApplyRule(OpCall& call, const OpRule& rule, std::vector<ScriptValue> positional,
                         const Named& named, TensorCell* target, ScriptValue& value) {
  if (!call.Bind(rule.parameters, std::move(positional), named)) return false;
  const absl::StatusOr<ScriptValue> result = rule.import(call);
  absl::Status status = result.status();
  if (status.ok()) status = QuantizeResult(call, rule.op, *result);
  if (status.ok()) value = *result;
  if (status.ok() && target != nullptr && result->Is(ScriptKind::kTensor)) {
    if (ChangesForm(rule.op)) {
      status = call.Become(target, *result->tensor);
    } else {
      const absl::StatusOr<ValueRef> updated = call.Read(result->tensor);
      status = updated.ok() ? call.Write(target, *updated) : updated.status();
    }
    value = ScriptValue::Of(ScriptKind::kTensor);
    value.tensor = target;
  }
  if (status.ok()) return true;
  call.ReportMismatch(
      status, "check the shapes in INPUT_OPS against those that the model was trained with");
  return false;
}

bool Executor::BindParameters(const ScriptFunction& function,
                              const std::vector<ScriptValue>& positional, const Named& named,
                              Frame& frame) {
  const std::vector<Parameter>& parameters = function.def->parameters;
  size_t at = 0;
  if (function.self != nullptr && !parameters.empty()) {
    ScriptValue self = ScriptValue::Of(ScriptKind::kObject);
    self.object = function.self;
    frame.locals[parameters[at++].name] = self;
  }
  for (const ScriptValue& value : positional) {
    if (at >= parameters.size()) return false;
    frame.locals[parameters[at++].name] = value;
  }
  for (; at < parameters.size(); ++at) {
    const Parameter& parameter = parameters[at];
    const auto it = std::find_if(named.begin(), named.end(),
                                 [&](const auto& entry) { return entry.first == parameter.name; });
    if (it != named.end()) {
      frame.locals[parameter.name] = it->second;
    } else if (parameter.fallback != nullptr) {
      ScriptValue value;
      Frame outside;
      outside.file = function.file;
      if (!Eval(*parameter.fallback, outside, value)) return false;
      frame.locals[parameter.name] = value;
    } else {
      return false;
    }
  }
  return true;
}

bool Executor::CallFunction(const Expr* where, const ScriptFunction& function,
                            const std::vector<ScriptValue>& positional, const Named& named,
                            const std::string& module_path, ScriptValue& value) {
  Frame frame;
  frame.file = function.file;
  frame.module_path = module_path;
  const LoadedFile* caller_file = current_file_;
  current_file_ = function.file;
  if (!BindParameters(function, positional, named, frame)) {
    current_file_ = caller_file;
    if (is_over_ || where == nullptr) return false;
    Report(DiagnosticKind::kOperandMismatch, *where,
           absl::StrCat("the arguments do not fit ", Printable(function.def->name), "()"),
           "save the model again with torch.jit.save");
    return false;
  }
  const Flow flow = RunBlock(function.def->body, frame);
  current_file_ = caller_file;
  if (flow == Flow::kAbort) return false;
  value = frame.result;
  return true;
}

ScriptValue Executor::Call(const ScriptFunction& function,
                           const std::vector<ScriptValue>& arguments) {
  ScriptValue value;
  if (!CallFunction(nullptr, function, arguments, {},
                    function.self != nullptr ? function.self->path : "", value)) {
    return ScriptValue::Poison();
  }
  return value;
}

}  // namespace npuc::pt
