#ifndef NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_SCRIPT_VALUE_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_SCRIPT_VALUE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/frontends/common/import_state.h"
#include "compiler_core/frontends/torchscript/ast.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc::pt {

class OpCall;
struct LoadedFile;

// A tensor's value at one moment; of a parameter `source` has its name in the module's state_dict.
using frontend::ImportValue;
using frontend::ValueRef;

// A Python tensor object: what in-place operators change. A view recomputes itself where its base
// has changed since, and writes through to it.
struct TensorCell {
  ValueRef value;
  int64_t version = 0;
  TensorCell* base = nullptr;  // null: memory of its own
  int64_t base_version = 0;
  // The view of the base's value; the base's value with the view of it replaced.
  std::function<absl::StatusOr<ValueRef>(OpCall&, const ValueRef& base)> view;
  std::function<absl::StatusOr<ValueRef>(OpCall&, const ValueRef& base, const ValueRef& updated)>
      write;
  // Whether it shares its memory with another tensor depends on strides that are not followed here,
  // so that it must not be written to.
  bool may_share = false;
  bool is_contiguous = true;
  int depth = 0;          // views below this one
  std::string attribute;  // "bn.running_mean": a parameter or buffer of the module
};

enum class ScriptKind : uint8_t {
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kList,
  kTuple,
  kDict,
  kTensor,
  kObject,
  kFunction,  // of the archive's code, bound to an object or not
  kClass,     // of the archive's code
  kPath,      // a dotted name that is none of the above: torch.add, ops.prim.data, torch
  kDevice,
  kUninitialized,  // what torch writes for a variable of a branch that never gets here
  kPoison,         // the result of something that was refused; whatever uses it is poison
};
absl::string_view NameOf(ScriptKind kind);  // "an int", "a list": for messages

struct ScriptList;
struct ScriptDict;
struct ScriptObject;
struct ScriptFunction;

// A Python value. Containers, tensors and strings are references into a ScriptHeap.
struct ScriptValue {
  ScriptKind kind = ScriptKind::kNone;
  union {
    int64_t integer = 0;        // kInt, kBool
    double real;                // kFloat
    const std::string* string;  // kString, kPath
    ScriptList* list;           // kList, kTuple
    ScriptDict* dict;
    TensorCell* tensor;
    ScriptObject* object;
    const ScriptFunction* function;
    const ClassDef* class_def;
  };
  const LoadedFile* file = nullptr;  // of kClass

  bool Is(ScriptKind other) const { return kind == other; }
  bool IsNone() const { return kind == ScriptKind::kNone; }
  bool IsSequence() const { return kind == ScriptKind::kList || kind == ScriptKind::kTuple; }
  bool IsNumber() const {
    return kind == ScriptKind::kInt || kind == ScriptKind::kFloat || kind == ScriptKind::kBool;
  }
  double AsDouble() const {
    return kind == ScriptKind::kFloat ? real : static_cast<double>(integer);
  }

  static ScriptValue None() { return {}; }
  static ScriptValue Of(ScriptKind kind) {
    ScriptValue value;
    value.kind = kind;
    return value;
  }
  // `taint`: what it comes from, an index into ImportState::taints; -1: that is reported already.
  static ScriptValue Poison(int64_t taint = -1) {
    ScriptValue value = Of(ScriptKind::kPoison);
    value.integer = taint;
    return value;
  }
  static ScriptValue Bool(bool flag) {
    ScriptValue value = Of(ScriptKind::kBool);
    value.integer = flag ? 1 : 0;
    return value;
  }
  static ScriptValue Int(int64_t integer) {
    ScriptValue value = Of(ScriptKind::kInt);
    value.integer = integer;
    return value;
  }
  static ScriptValue Float(double real) {
    ScriptValue value = Of(ScriptKind::kFloat);
    value.real = real;
    return value;
  }
};

struct ScriptList {
  std::vector<ScriptValue> items;
  std::string attribute;  // "conv.padding": a list of the archive, which must not be written to
  const ClassDef* named = nullptr;  // of a NamedTuple: its class
};

struct ScriptDict {
  std::vector<std::pair<ScriptValue, ScriptValue>> entries;
  std::string attribute;
};

struct ScriptFunction {
  const FunctionDef* def = nullptr;
  const LoadedFile* file = nullptr;
  const ClassDef* class_def = nullptr;  // of a method
  ScriptObject* self = nullptr;         // of a bound method
};

// The attribute of an object whose state the archive keeps as a tuple: a layer with packed weights.
// No name of Python is like it.
inline constexpr absl::string_view kPackedState = "(state)";

// An instance of a class of the archive's code: a module, or what a constructor made.
struct ScriptObject {
  std::string class_name;  // qualified
  const ClassDef* class_def = nullptr;
  const LoadedFile* file = nullptr;
  bool is_module = false;
  bool is_kept = false;  // of the archive, and restored: what is written to it stays
  std::string path;      // "layer1.0.conv"; of the root ""
  std::map<std::string, ScriptValue, std::less<>> attributes;
  std::set<std::string, std::less<>> read_first;  // attributes of a kept one, read before written
  std::set<std::string, std::less<>> written;
  std::map<std::string, ScriptFunction, std::less<>> methods;  // those looked up
};

// The path of an object's attribute, as state_dict has it.
std::string PathOf(const ScriptObject& object, absl::string_view name);

// Owns what values refer to until the import ends, so that cycles and deep nesting do no harm.
// How much it may hold is bounded by the executor's steps.
class ScriptHeap {
 public:
  ScriptValue String(std::string text, ScriptKind kind = ScriptKind::kString) {
    strings_.push_back(std::move(text));
    ScriptValue value = ScriptValue::Of(kind);
    value.string = &strings_.back();
    return value;
  }
  ScriptValue List(std::vector<ScriptValue> items, ScriptKind kind = ScriptKind::kList) {
    lists_.emplace_back();
    lists_.back().items = std::move(items);
    ScriptValue value = ScriptValue::Of(kind);
    value.list = &lists_.back();
    return value;
  }
  ScriptValue Tuple(std::vector<ScriptValue> items) {
    return List(std::move(items), ScriptKind::kTuple);
  }
  ScriptValue Ints(const std::vector<int64_t>& integers) {
    std::vector<ScriptValue> items;
    for (const int64_t integer : integers) items.push_back(ScriptValue::Int(integer));
    return List(std::move(items));
  }
  ScriptValue Dict() {
    dicts_.emplace_back();
    ScriptValue value = ScriptValue::Of(ScriptKind::kDict);
    value.dict = &dicts_.back();
    return value;
  }
  ScriptValue Tensor(ValueRef tensor) {
    tensors_.emplace_back();
    tensors_.back().value = std::move(tensor);
    ScriptValue value = ScriptValue::Of(ScriptKind::kTensor);
    value.tensor = &tensors_.back();
    return value;
  }
  // Moves what `cell` holds into a new cell, which the views of `cell` are views of from now on.
  TensorCell* MoveOut(TensorCell* cell) {
    tensors_.push_back(*cell);
    TensorCell* const moved = &tensors_.back();
    for (TensorCell& other : tensors_) {
      if (other.base == cell) other.base = moved;
    }
    return moved;
  }
  size_t tensor_count() const { return tensors_.size(); }
  ScriptValue Object() {
    objects_.emplace_back();
    ScriptValue value = ScriptValue::Of(ScriptKind::kObject);
    value.object = &objects_.back();
    return value;
  }
  ScriptValue Function(ScriptFunction function) {
    functions_.push_back(function);
    ScriptValue value = ScriptValue::Of(ScriptKind::kFunction);
    value.function = &functions_.back();
    return value;
  }

 private:
  std::deque<std::string> strings_;
  std::deque<ScriptList> lists_;
  std::deque<ScriptDict> dicts_;
  std::deque<TensorCell> tensors_;
  std::deque<ScriptObject> objects_;
  std::deque<ScriptFunction> functions_;
};

// Whether two values are equal as Python's == says, for plain values and lists of them, within
// bounds on size and depth.
bool ScriptEqual(const ScriptValue& a, const ScriptValue& b);
// As str() prints it, cut after some hundred characters.
std::string ScriptText(const ScriptValue& value);

}  // namespace npuc::pt

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_SCRIPT_VALUE_H_
