#include "compiler_core/frontends/torchscript/attribute_states.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/torchscript/op_call.h"

namespace npuc::pt {

namespace {

// A constant of floats that calls find and leave changed, though no input decides it, is a state,
// too.
void MakeChangingStates(const KeptValue& before, KeptValue& after) {
  if (before.kind != after.kind) return;
  if (before.constant.has_value() && after.constant.has_value() &&
      IsFloat(after.constant->dtype()) && before.constant->type() == after.constant->type() &&
      !(*before.constant == *after.constant)) {
    after.shape = after.constant->shape();
    after.constant.reset();
  }
  if (before.items.size() != after.items.size()) return;
  for (size_t i = 0; i < after.items.size(); ++i) {
    MakeChangingStates(before.items[i], after.items[i]);
  }
}

}  // namespace

bool IsSamePlan(const AttributePlan& a, const AttributePlan& b) {
  if (a.size() != b.size()) return false;
  for (auto x = a.begin(), y = b.begin(); x != a.end(); ++x, ++y) {
    if (x->first != y->first || !(x->second.value == y->second.value)) return false;
  }
  return true;
}

const KeptAttribute* AttributeStates::PlanOf(const std::string& path, bool is_assigned) const {
  if (plan_ == nullptr) return nullptr;
  const auto it = plan_->find(path);
  if (it == plan_->end() || it->second.is_assigned != is_assigned) return nullptr;
  return &it->second;
}

std::optional<KeptValue> AttributeStates::KeepFirst(OpCall& call, const ScriptValue& value) {
  items_ = 0;
  absl::StatusOr<KeptValue> first = Keep(call, value, "", 0);
  if (!first.ok()) return std::nullopt;
  return *std::move(first);
}

void AttributeStates::NoteAssignment(OpCall& call, ScriptObject& object, const std::string& name) {
  const std::string path = PathOf(object, name);
  if (assigned_.count(path) > 0) return;
  const auto before = object.attributes.find(name);
  std::optional<KeptValue> first;
  if (before != object.attributes.end()) first = KeepFirst(call, before->second);
  assigned_[path] = {&object, name, std::move(first)};
}

void AttributeStates::NoteChange(OpCall& call, const std::string& path, const ScriptValue& value) {
  if (changed_.count(path) > 0) return;
  std::optional<KeptValue> first = KeepFirst(call, value);
  changed_[path] = {value, std::move(first)};
}

absl::StatusOr<KeptValue> AttributeStates::KeepTensor(OpCall& call, TensorCell* cell,
                                                      const std::string& path) {
  ASSIGN_OR_RETURN(const ValueRef value, call.Read(cell));
  KeptValue kept;
  kept.kind = ScriptKind::kTensor;
  if (value->constant.has_value() && !IsUnused(path)) {
    kept.constant = *value->constant;
  } else if (frontend::IsKnown(value) && !IsUnused(path)) {
    return absl::UnimplementedError("it holds quantized constants");
  } else if (!IsFloat(value->type.dtype)) {
    return absl::UnimplementedError(absl::StrCat("it holds ", TypeToString(value->type)));
  } else {
    kept.shape = value->type.shape;
  }
  if (!path.empty()) after_[path] = value;
  return kept;
}

absl::StatusOr<KeptValue> AttributeStates::Keep(OpCall& call, const ScriptValue& value,
                                                const std::string& path, int depth) {
  if (++items_ > kMaxItems || depth > kMaxDepth) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "it holds more than ", kMaxItems, " values, or nests them deeper than ", kMaxDepth));
  }
  KeptValue kept;
  kept.kind = value.kind;
  const auto add = [&](const ScriptValue& item, const std::string& name) -> absl::Status {
    const std::string below = path.empty() ? "" : absl::StrCat(path, ".", name);
    ASSIGN_OR_RETURN(KeptValue inner, Keep(call, item, below, depth + 1));
    kept.items.push_back(std::move(inner));
    return absl::OkStatus();
  };
  switch (value.kind) {
    case ScriptKind::kNone:
    case ScriptKind::kDevice:
    case ScriptKind::kUninitialized:
      return kept;
    case ScriptKind::kBool:
    case ScriptKind::kInt:
      kept.integer = value.integer;
      return kept;
    case ScriptKind::kFloat:
      kept.real = value.real;
      return kept;
    case ScriptKind::kString:
      kept.text = *value.string;
      return kept;
    case ScriptKind::kTensor:
      return KeepTensor(call, value.tensor, path);
    case ScriptKind::kList:
    case ScriptKind::kTuple:
      if (value.list->named != nullptr) break;
      for (size_t i = 0; i < value.list->items.size(); ++i) {
        RETURN_IF_ERROR(add(value.list->items[i], absl::StrCat(i)));
      }
      return kept;
    case ScriptKind::kDict:
      for (const auto& [key, item] : value.dict->entries) {
        const std::string name = ScriptText(key);
        RETURN_IF_ERROR(add(key, absl::StrCat(name, " (key)")));
        RETURN_IF_ERROR(add(item, name));
      }
      return kept;
    default:
      break;
  }
  return absl::UnimplementedError(absl::StrCat("it holds ", NameOf(value.kind)));
}

bool AttributeStates::IsKeptAbove(const std::string& path) const {
  for (size_t end = path.size(); end != std::string::npos && end > 0;
       end = path.rfind('.', end - 1)) {
    const std::string above = path.substr(0, end);
    if (assigned_.count(above) > 0 || loaded_.count(above) > 0) return true;
    if (end < path.size() && changed_.count(above) > 0) return true;
  }
  return false;
}

absl::StatusOr<AttributePlan> AttributeStates::Next(OpCall& call) {
  AttributePlan next = *plan_;
  absl::Status status;
  const auto keep = [&](const std::string& path, const ScriptValue& value, bool was_read,
                        std::optional<KeptValue> first, bool is_assigned) {
    const auto known = next.find(path);
    if (value.Is(ScriptKind::kPoison)) {
      if (!was_read && known == next.end()) return;  // nothing asks for it
      call.state().Flush(value.integer);
      status = absl::CancelledError();
      return;
    }
    items_ = 0;
    absl::StatusOr<KeptValue> kept = Keep(call, value, path, 0);
    if (!kept.ok()) {
      if (!was_read && known == next.end()) return;
      status = call.Fail(DiagnosticKind::kTorchStateWritten,
                         absl::StrCat("the model writes to its attribute '", Printable(path),
                                      "', which cannot be a state: ", kept.status().message()),
                         "keep tensors, numbers, and lists and dicts of them in attributes");
      return;
    }
    if (known != next.end()) {
      MakeChangingStates(known->second.value, *kept);
      known->second.value = *std::move(kept);
    } else {
      next[path] = {*std::move(kept), std::move(first), is_assigned};
    }
  };
  for (const auto& [path, written] : assigned_) {
    keep(path, written.object->attributes.at(written.name),
         written.object->read_first.count(written.name) > 0, written.first, true);
  }
  for (const auto& [path, value] : loaded_) {
    if (assigned_.count(path) == 0) keep(path, value, true, std::nullopt, false);
  }
  for (const auto& [path, changed] : changed_) {
    if (!IsKeptAbove(path)) keep(path, changed.value, true, changed.first, false);
  }
  RETURN_IF_ERROR(status);
  return next;
}

ValueRef AttributeStates::After(const std::string& path) const {
  const auto it = after_.find(path);
  return it == after_.end() ? nullptr : it->second;
}

}  // namespace npuc::pt
