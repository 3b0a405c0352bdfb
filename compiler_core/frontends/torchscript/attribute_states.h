#ifndef NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_ATTRIBUTE_STATES_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_ATTRIBUTE_STATES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler_core/frontends/torchscript/script_value.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc::pt {

class OpCall;

// A Python value that stays from one call of forward to the next, apart from any import.
struct KeptValue {
  ScriptKind kind = ScriptKind::kNone;
  int64_t integer = 0;
  double real = 0;
  std::string text;
  std::optional<Tensor> constant;  // of a tensor: its value, where each call finds the same one
  Shape shape;                     // of a tensor that is a state
  std::vector<KeptValue> items;    // of a list or tuple; of a dict keys and values in turn

  bool IsState() const { return kind == ScriptKind::kTensor && !constant.has_value(); }
  bool operator==(const KeptValue&) const = default;
};

// The value that a call of forward finds in an attribute that calls write.
struct KeptAttribute {
  KeptValue value;
  std::optional<KeptValue> first;  // what the archive holds; null: nothing that is comparable
  // Written as self.NAME = value; else its value itself was changed, as by self.NAME.copy_(x).
  bool is_assigned = false;
};
// By the attribute's path: "decoder.hidden".
using AttributePlan = std::map<std::string, KeptAttribute>;

// True where calls find the same in all attributes.
bool IsSamePlan(const AttributePlan& a, const AttributePlan& b);

// The reads and writes of the module's attributes in one run of forward. A written tensor that
// depends on inputs is a state: an input NAME and an output NAME_out of the compiled model, as far
// as anything depends on it. All else is what it is at each call but the first ones: which these
// are is found by running forward again and again, each run with what the last one left
// (import.cc), until the attributes stay the same.
class AttributeStates {
 public:
  struct State {
    std::string path;  // of the tensor: "cache.0"
    ValueId input;
  };
  // Tensors of one attribute, items of containers and their depth; more is an error.
  static constexpr int kMaxItems = 4096;
  static constexpr int kMaxDepth = 16;

  // Both outlive it. `unused`: paths of states that nothing depends on; they are zeros.
  void Begin(const AttributePlan* plan, const std::set<std::string>* unused) {
    plan_ = plan;
    unused_ = unused;
  }

  // The plan's entry for an attribute that is read first, or for a tensor, list or dict of the
  // archive; null: nothing.
  const KeptAttribute* PlanOf(const std::string& path, bool is_assigned) const;
  bool IsUnused(const std::string& path) const { return unused_->count(path) > 0; }
  // The value that the run made of a plan's entry.
  void NoteLoaded(const std::string& path, const ScriptValue& value) { loaded_[path] = value; }
  void AddState(const std::string& path, ValueId input) { states_.push_back({path, input}); }

  // object.name = ... is about to be run.
  void NoteAssignment(OpCall& call, ScriptObject& object, const std::string& name);
  // A tensor, list or dict of an attribute is about to be changed.
  void NoteChange(OpCall& call, const std::string& path, const ScriptValue& value);
  bool has_writes() const { return !assigned_.empty() || !changed_.empty(); }

  // The plan of the next call. Errors: an attribute that no next call can find, or that is poison
  // and was read; these are reported by `call`.
  absl::StatusOr<AttributePlan> Next(OpCall& call);
  // The states in the order in which they were first read.
  const std::vector<State>& states() const { return states_; }
  // The value that Next() found in the tensor of a path; null: nothing was written.
  ValueRef After(const std::string& path) const;

 private:
  struct Assigned {
    ScriptObject* object;
    std::string name;
    std::optional<KeptValue> first;
  };
  struct Changed {
    ScriptValue value;
    std::optional<KeptValue> first;
  };
  absl::StatusOr<KeptValue> Keep(OpCall& call, const ScriptValue& value, const std::string& path,
                                 int depth);
  absl::StatusOr<KeptValue> KeepTensor(OpCall& call, TensorCell* cell, const std::string& path);
  std::optional<KeptValue> KeepFirst(OpCall& call, const ScriptValue& value);
  // True where the change is one of a value that Next() keeps anyway.
  bool IsKeptAbove(const std::string& path) const;

  const AttributePlan* plan_ = nullptr;
  const std::set<std::string>* unused_ = nullptr;
  std::map<std::string, Assigned> assigned_;
  std::map<std::string, Changed> changed_;
  std::map<std::string, ScriptValue> loaded_;
  std::vector<State> states_;
  std::map<std::string, ValueRef> after_;
  int items_ = 0;
};

}  // namespace npuc::pt

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_ATTRIBUTE_STATES_H_
