// Attributes, names and the archive's values.
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/torchscript/executor.h"
#include "compiler_core/frontends/torchscript/quantized.h"

namespace npuc::pt {

frontend::RuleTable<OpRule> TensorRules() {
  return {ElementwiseRules(), ActivationRules(), ConvRules(),      PoolRules(),
          LinearRules(),      ReduceRules(),     ShapeRules(),     SliceRules(),
          PadRules(),         CreateRules(),     NormRules(),      RecurrentRules(),
          AttentionRules(),   SelectRules(),     QuantizedRules(), LogicRules()};
}

Executor::Executor(const TorchArchive* archive, ImportState* state,
                   const frontend::Plugins* plugins, ExecutorLimits limits)
    : archive_(archive),
      state_(state),
      plugins_(plugins),
      limits_(limits),
      library_(archive, state->diagnostics),
      tensor_rules_(TensorRules()),
      python_rules_({PythonRules()}) {}

bool Executor::Step(int64_t count, const Expr* where) {
  if (is_over_ || state_->is_exhausted()) return false;
  if (where != nullptr) last_place_ = where;
  steps_ += count + 1;
  if (steps_ <= limits_.steps) return true;
  is_over_ = true;
  state_->Report(DiagnosticKind::kModelLimitExceeded, PlaceOf(last_place_), {},
                 absl::StrCat("running forward takes more than ", limits_.steps, " steps"),
                 "shorten the loops of the model, or take endless ones out");
  return false;
}

CodePlace Executor::PlaceOf(const Expr* where) const {
  CodePlace place;
  if (current_file_ != nullptr) {
    place.path = current_file_->path;
    place.source = current_file_->source;
  }
  if (where != nullptr) {
    place.line = where->line;
    place.column = where->column;
  }
  return place;
}

void Executor::Report(DiagnosticKind kind, const Expr& where, std::string message,
                      std::string fix) {
  state_->Report(kind, PlaceOf(&where), {}, std::move(message), std::move(fix));
}

ScriptValue Executor::Root() { return FromArchive(archive_->root, ""); }

const ScriptFunction* Executor::FindMethod(ScriptObject* object, absl::string_view name) {
  if (object->class_def == nullptr) return nullptr;
  const auto known = object->methods.find(name);
  if (known != object->methods.end()) return &known->second;
  for (const FunctionDef& method : object->class_def->methods) {
    if (method.name != name) continue;
    ScriptFunction function{&method, object->file, object->class_def, object};
    return &object->methods.emplace(std::string(name), function).first->second;
  }
  return nullptr;
}

ScriptValue Executor::DefaultOf(const ScriptFunction& function, const Parameter& parameter) {
  ScriptValue value;
  Frame frame;
  frame.file = function.file;
  current_file_ = function.file;
  if (parameter.fallback == nullptr || !Eval(*parameter.fallback, frame, value)) {
    return ScriptValue::None();
  }
  return value;
}

bool Executor::AttributeOf(const ScriptValue& base, absl::string_view name, const Expr& where,
                           Frame& frame, ScriptValue& value) {
  if (base.Is(ScriptKind::kPoison)) {
    value = base;
    return true;
  }
  if (base.Is(ScriptKind::kObject)) {
    ScriptObject& object = *base.object;
    const auto it = object.attributes.find(name);
    if (it != object.attributes.end()) {
      if (object.is_kept) NoteRead(object, it->first, it->second);
      value = it->second;
      return true;
    }
    if (const ScriptFunction* method = FindMethod(&object, name)) {
      value = ScriptValue::Of(ScriptKind::kFunction);
      value.function = method;
      return true;
    }
    if (object.class_def != nullptr) {
      for (const ClassAttribute& attribute : object.class_def->attributes) {
        if (attribute.name != name || attribute.value == nullptr) continue;
        return Eval(*attribute.value, frame, value);
      }
    }
    Report(DiagnosticKind::kTorchNameUnknown, where,
           absl::StrCat("an object of class ", Printable(object.class_name), " has no attribute '",
                        Printable(name), "'"),
           "save the model again with torch.jit.save");
    return false;
  }
  if (base.Is(ScriptKind::kTuple) && base.list->named != nullptr) {
    const std::vector<ClassAttribute>& fields = base.list->named->attributes;
    for (size_t i = 0; i < fields.size() && i < base.list->items.size(); ++i) {
      if (fields[i].name != name) continue;
      value = base.list->items[i];
      return true;
    }
  }
  if (base.Is(ScriptKind::kClass)) {
    // CLASS.__new__(CLASS) makes an object; the code itself calls __init__ on it.
    if (name == "__new__") {
      value = state_->heap.String("object.__new__", ScriptKind::kPath);
      return true;
    }
  }
  // A method of a plain value: torch prints those as torch.NAME(value), newer ones may not.
  Report(DiagnosticKind::kTorchNameUnknown, where,
         absl::StrCat(NameOf(base.kind), " has no attribute '", Printable(name), "'"),
         "simplify the model");
  return false;
}

void Executor::NoteRead(ScriptObject& object, const std::string& name, ScriptValue& value) {
  if (object.written.count(name) > 0 || !object.read_first.insert(name).second) return;
  const std::string path = PathOf(object, name);
  const KeptAttribute* const kept = state_->attributes.PlanOf(path, /*is_assigned=*/true);
  if (kept == nullptr) return;
  value = FromKept(kept->value, path);
  state_->attributes.NoteLoaded(path, value);
}

ScriptValue Executor::FromKept(const KeptValue& kept, const std::string& path) {
  ScriptValue value = ScriptValue::Of(kept.kind);
  switch (kept.kind) {
    case ScriptKind::kBool:
    case ScriptKind::kInt:
      value.integer = kept.integer;
      break;
    case ScriptKind::kFloat:
      value.real = kept.real;
      break;
    case ScriptKind::kString:
      return state_->heap.String(kept.text);
    case ScriptKind::kList:
    case ScriptKind::kTuple: {
      std::vector<ScriptValue> items;
      for (const KeptValue& item : kept.items) {
        items.push_back(FromKept(item, absl::StrCat(path, ".", items.size())));
      }
      value = state_->heap.List(std::move(items), kept.kind);
      value.list->attribute = path;
      break;
    }
    case ScriptKind::kDict:
      value = state_->heap.Dict();
      for (size_t i = 0; i + 1 < kept.items.size(); i += 2) {
        const ScriptValue key = FromKept(kept.items[i], path);
        value.dict->entries.emplace_back(
            key, FromKept(kept.items[i + 1], absl::StrCat(path, ".", ScriptText(key))));
      }
      value.dict->attribute = path;
      break;
    case ScriptKind::kTensor:
      value = state_->heap.Tensor(TensorOf(kept, path));
      value.tensor->attribute = path;
      break;
    default:
      break;
  }
  return value;
}

ValueRef Executor::TensorOf(const KeptValue& kept, const std::string& path) {
  if (kept.constant.has_value()) return frontend::ConstantValue(*kept.constant, {path, "Const"});
  const TensorType type = {DType::kFloat32, kept.shape};
  if (state_->attributes.IsUnused(path)) {
    return frontend::ConstantValue(Tensor::Zeros(type), {path, "Const"});
  }
  ValueRef input = state_->AddInput(state_->NameOfState(path), type, "Placeholder");
  state_->attributes.AddState(path, input->id);
  return input;
}

bool Executor::ResolvePath(absl::string_view path, const Expr& where, ScriptValue& value) {
  if (path.size() > 4096) {
    Report(DiagnosticKind::kModelLimitExceeded, where, "a dotted name is longer than 4096",
           "save the model again");
    return false;
  }
  absl::string_view rest = path;
  if (absl::ConsumePrefix(&rest, "CONSTANTS.c")) {
    size_t index = 0;
    if (!absl::SimpleAtoi(rest, &index) || index >= archive_->constants.size()) {
      Report(DiagnosticKind::kTorchNameUnknown, where,
             absl::StrCat("the archive has no constant ", Printable(path)),
             "save the model again with torch.jit.save");
      return false;
    }
    value = FromArchive(archive_->constants[index], std::string(path));
    return true;
  }
  if (absl::StartsWith(path, "__torch__.")) {
    const CodeLibrary::Found found = library_.Find(path);
    if (found.has_failed) return false;
    if (found.function != nullptr) {
      value = state_->heap.Function({found.function, found.file, nullptr, nullptr});
      return true;
    }
    if (found.class_def != nullptr) {
      value = ScriptValue::Of(ScriptKind::kClass);
      value.class_def = found.class_def;
      value.file = found.file;
      return true;
    }
  }
  value = state_->heap.String(std::string(path), ScriptKind::kPath);
  return true;
}

ScriptValue Executor::FromArchive(PyId id, const std::string& path) {
  const auto known = loaded_.find(id);
  if (known != loaded_.end()) return known->second;
  if (const KeptAttribute* kept = state_->attributes.PlanOf(path, /*is_assigned=*/false)) {
    loaded_[id] = FromKept(kept->value, path);
    state_->attributes.NoteLoaded(path, loaded_[id]);
    return loaded_[id];
  }
  const PyValues& values = archive_->values;
  ScriptValue value;
  switch (values.kind(id)) {
    case PyKind::kNone:
      break;
    case PyKind::kBool:
      value = ScriptValue::Bool(values.boolean(id));
      break;
    case PyKind::kInt:
      value = ScriptValue::Int(values.integer(id));
      break;
    case PyKind::kDouble:
      value = ScriptValue::Float(values.real(id));
      break;
    case PyKind::kString:
      value = state_->heap.String(std::string(values.string(id)));
      break;
    case PyKind::kDevice:
      value = ScriptValue::Of(ScriptKind::kDevice);
      break;
    case PyKind::kTuple:
    case PyKind::kList: {
      std::vector<ScriptValue> items;
      for (const PyId item : values.items(id)) {
        items.push_back(FromArchive(item, absl::StrCat(path, ".", items.size())));
      }
      value = state_->heap.List(std::move(items), values.kind(id) == PyKind::kList
                                                      ? ScriptKind::kList
                                                      : ScriptKind::kTuple);
      value.list->attribute = path;
      break;
    }
    case PyKind::kDict: {
      value = state_->heap.Dict();
      for (const auto& [key, item] : values.entries(id)) {
        const ScriptValue name = FromArchive(key, path);
        value.dict->entries.emplace_back(
            name, FromArchive(item, absl::StrCat(path, ".", ScriptText(name))));
      }
      value.dict->attribute = path;
      break;
    }
    case PyKind::kObject:
      value = MakeObject(id, path);
      break;
    case PyKind::kTensor:
      value = MakeTensor(id, path);
      break;
    case PyKind::kComplex:
    case PyKind::kEnum:
      value = ScriptValue::Of(ScriptKind::kUninitialized);
      break;
  }
  loaded_[id] = value;
  return value;
}

ScriptValue Executor::MakeObject(PyId id, const std::string& path) {
  const PyObject& stored = archive_->values.object(id);
  ScriptValue value = state_->heap.Object();
  loaded_[id] = value;
  ScriptObject& object = *value.object;
  object.class_name = stored.class_name;
  object.path = path;
  const CodeLibrary::Found found = library_.Find(stored.class_name);
  object.class_def = found.class_def;
  object.file = found.file;
  object.is_module = found.class_def == nullptr || found.class_def->base == "Module";
  const auto path_of = [&](const std::string& name) {
    return path.empty() ? name : absl::StrCat(path, ".", name);
  };
  // Tensors first: a list of weights would give them its own name otherwise.
  for (const bool tensors : {true, false}) {
    for (const auto& [name, attribute] : stored.attributes) {
      if ((archive_->values.kind(attribute) == PyKind::kTensor) != tensors) continue;
      object.attributes[name] = FromArchive(attribute, path_of(name));
    }
  }
  if (stored.state.valid() && archive_->values.kind(stored.state) == PyKind::kTuple) {
    const ScriptValue state = FromArchive(stored.state, path);
    const ScriptFunction* const restore = FindMethod(&object, "__setstate__");
    ScriptValue ignored;
    if (restore == nullptr) {
      object.attributes.emplace(kPackedState, state);
    } else {  // The class says itself what its attributes are.
      CallFunction(nullptr, *restore, {state}, {}, path, ignored);
    }
  }
  object.is_kept = true;
  return value;
}

ScriptValue Executor::MakeQuantized(const PyQuantizer& quantizer, Tensor integers,
                                    const std::string& path) {
  const auto read = [&]() -> absl::StatusOr<QuantParams> {
    if (quantizer.scheme == "per_tensor_affine") {
      return PerTensorParams(integers.dtype(), quantizer.scale, quantizer.zero_point);
    }
    if (quantizer.scheme != "per_channel_affine") {
      return absl::UnimplementedError(absl::StrCat("a tensor quantized ", quantizer.scheme));
    }
    int64_t& left = state_->constant_bytes_left;
    ASSIGN_OR_RETURN(const Tensor scales, MaterializeTensor(*archive_, quantizer.scales, left));
    ASSIGN_OR_RETURN(const Tensor zeros, MaterializeTensor(*archive_, quantizer.zero_points, left));
    return ByChannelParams(integers.dtype(), scales, zeros, quantizer.axis, integers.shape());
  };
  const absl::StatusOr<QuantParams> params = read();
  if (!params.ok()) {
    state_->diagnostics->Add(
        {.kind = DiagnosticKind::kTorchQuantized,
         .message = absl::StrCat("tensor '", Printable(path), "': ", params.status().message()),
         .file = state_->file,
         .fix = "quantize to 8 bits, by tensor or by channel, or export the float model"});
    return ScriptValue::Poison();
  }
  OpCall call(state_, {}, {path, "Const"});
  const ValueRef stored = call.MakeStored({std::move(integers), *params}, {path, "Const"});
  ScriptValue result = state_->heap.Tensor(WithQuantization(stored, *params));
  result.tensor->attribute = path;
  return result;
}

ScriptValue Executor::MakeTensor(PyId id, const std::string& path) {
  absl::StatusOr<Tensor> tensor = MaterializeTensor(*archive_, id, state_->constant_bytes_left);
  if (!tensor.ok()) {
    const PyTensor& stored = archive_->values.tensor(id);
    const bool quantized = IsQuantized(stored.type);
    state_->diagnostics->Add(
        {.kind = quantized ? DiagnosticKind::kTorchQuantized : DiagnosticKind::kBadTensor,
         .message = absl::StrCat("tensor '", Printable(path), "': ", tensor.status().message()),
         .file = state_->file,
         .fix = quantized ? "quantize to 8 bits, by tensor or by channel, or export the float model"
                          : "save the model again in float32"});
    return ScriptValue::Poison();
  }
  state_->constant_bytes_left -= tensor->type().size_bytes();
  Tensor constant = *std::move(tensor);
  if (IsQuantized(archive_->values.tensor(id).type)) {
    return MakeQuantized(archive_->values.tensor(id).quantizer, std::move(constant), path);
  }
  // Floats are computed as f32; a lone f64 takes part in shape arithmetic as it is.
  const bool is_wide = constant.dtype() == DType::kFloat64 && constant.element_count() > 1;
  if (is_wide || constant.dtype() == DType::kFloat16) {
    constant = CastTensor(constant, DType::kFloat32);
  }
  ScriptValue result =
      state_->heap.Tensor(frontend::ConstantValue(std::move(constant), {path, "Const"}));
  result.tensor->attribute = path;
  return result;
}

}  // namespace npuc::pt
