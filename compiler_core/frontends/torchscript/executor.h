#ifndef NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_EXECUTOR_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_EXECUTOR_H_

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "compiler_core/frontends/common/plugins.h"
#include "compiler_core/frontends/common/rule_table.h"
#include "compiler_core/frontends/torchscript/archive.h"
#include "compiler_core/frontends/torchscript/code_library.h"
#include "compiler_core/frontends/torchscript/op_call.h"
#include "compiler_core/frontends/torchscript/script_value.h"

namespace npuc::pt {

struct PackedLayer;

// Limits on one run of forward; more is a diagnostic.
struct ExecutorLimits {
  // Expressions, statements, items of containers made, and a share of the elements worked on.
  int64_t steps = int64_t{1} << 22;
  int depth = 300;  // nested calls, blocks and expressions together
};

// Every rule on tensors.
frontend::RuleTable<OpRule> TensorRules();

// Runs the archive's code by its own rules of Python, with tensors that become values of a graph.
// What is known at compile time is computed; a call that cannot be imported is reported and gives
// poison, and the run goes on. Recursion is bounded by ExecutorLimits::depth. Used once.
class Executor {
 public:
  // All outlive it.
  Executor(const TorchArchive* archive, ImportState* state, const frontend::Plugins* plugins,
           ExecutorLimits limits = {});

  // The root module.
  ScriptValue Root();
  // The method of an object's class, or null.
  const ScriptFunction* FindMethod(ScriptObject* object, absl::string_view name);
  // The default value of a parameter; None where it has none.
  ScriptValue DefaultOf(const ScriptFunction& function, const Parameter& parameter);
  // Runs a function; a bound method's `self` is not among the arguments. Poison where the run could
  // not be finished.
  ScriptValue Call(const ScriptFunction& function, const std::vector<ScriptValue>& arguments);
  int64_t steps() const { return steps_; }

 private:
  enum class Flow : uint8_t { kNext, kBreak, kContinue, kReturn, kAbort };
  using Named = std::vector<std::pair<absl::string_view, ScriptValue>>;
  struct Frame {
    const LoadedFile* file = nullptr;
    std::string module_path;  // of the module whose method runs, for names
    absl::flat_hash_map<absl::string_view, ScriptValue> locals;
    ScriptValue result;
  };

  // Statements: exec_statements.cc.
  Flow RunBlock(const std::vector<Stmt>& body, Frame& frame);
  Flow RunStatement(const Stmt& stmt, Frame& frame);
  Flow RunAssign(const Stmt& stmt, Frame& frame);
  Flow RunIf(const Stmt& stmt, Frame& frame);
  Flow RunWhile(const Stmt& stmt, Frame& frame);
  Flow RunFor(const Stmt& stmt, Frame& frame);
  Flow RunWith(const Stmt& stmt, Frame& frame);
  Flow RunRaise(const Stmt& stmt, Frame& frame);
  Flow AssignTo(const Expr& target, const ScriptValue& value, Frame& frame);
  Flow AssignAttribute(const Expr& target, const ScriptValue& value, Frame& frame);
  Flow AssignItem(const Expr& target, const ScriptValue& value, Frame& frame);
  Flow Unpack(const Stmt& stmt, const ScriptValue& value, Frame& frame);
  // The items that a for runs over; false where that is reported.
  bool ItemsOf(const ScriptValue& value, const Expr& where, std::vector<ScriptValue>& items);
  // Whether a condition holds: kNext where so, kBreak where not, else kAbort, which is reported.
  Flow Decide(const ScriptValue& value, const Expr& where);

  // Expressions: exec_expressions.cc. Null where the run cannot go on (that is reported).
  bool Eval(const Expr& expr, Frame& frame, ScriptValue& value);
  bool EvalInner(const Expr& expr, Frame& frame, ScriptValue& value);
  bool EvalName(const Expr& expr, Frame& frame, ScriptValue& value);
  bool EvalAttribute(const Expr& expr, Frame& frame, ScriptValue& value);
  bool EvalItems(const Expr& expr, Frame& frame, ScriptValue& value);
  bool EvalUnary(const Expr& expr, Frame& frame, ScriptValue& value);
  bool EvalBinary(const Expr& expr, Frame& frame, ScriptValue& value);
  bool EvalSubscript(const Expr& expr, Frame& frame, ScriptValue& value);
  // Whether a value is of a type as the code writes it. False: the run ends.
  bool IsInstance(const ScriptValue& value, const Expr& type, Frame& frame, bool& is_instance);
  bool IsInstanceOfAny(const ScriptValue& value, const ExprList& types, Frame& frame,
                       bool& is_instance);
  bool EvalCall(const Expr& expr, Frame& frame, ScriptValue& value);
  bool EvalArguments(const Expr& expr, Frame& frame, std::vector<ScriptValue>& positional,
                     Named& named);
  bool Subscript(const Expr& expr, const ScriptValue& base, const ScriptValue& index, Frame& frame,
                 ScriptValue& value);
  bool ItemOf(const ScriptValue& base, const ScriptValue& index, const Expr& where,
              ScriptValue& value);

  // Calls: exec_calls.cc.
  bool CallValue(const Expr& expr, const ScriptValue& callee, std::vector<ScriptValue> positional,
                 const Named& named, Frame& frame, ScriptValue& value);
  bool CallPath(const Expr& expr, absl::string_view path, std::vector<ScriptValue> positional,
                const Named& named, Frame& frame, ScriptValue& value);
  bool CallBuiltin(const Expr& expr, absl::string_view name, std::vector<ScriptValue>& positional,
                   Frame& frame, ScriptValue& value, bool& is_known);
  bool CallClass(const Expr& expr, const ScriptValue& callee, std::vector<ScriptValue> positional,
                 const Named& named, Frame& frame, ScriptValue& value);
  bool CallPacked(const Expr& expr, const PackedLayer& layer,
                  const std::vector<ScriptValue>& positional, Frame& frame, ScriptValue& value);
  bool CallOperator(const Expr& expr, absl::string_view name, std::vector<ScriptValue> positional,
                    const Named& named, Frame& frame, ScriptValue& value);
  // The call of an operator that PLUGINS declare.
  bool CallPlugin(const Expr& expr, const frontend::PluginOp& op,
                  const std::vector<ScriptValue>& positional, const Named& named, Frame& frame,
                  ScriptValue& value);
  // Runs `apply` with the diagnostics of one call apart: where it fails they become those of a
  // poison. False: the run ends.
  bool RunApart(const Expr& expr, absl::string_view name, const std::vector<int64_t>& parents,
                const std::function<bool()>& apply, ScriptValue& value);
  // The call's node in the graph, by the module that calls.
  std::string NodeNameOf(absl::string_view op, const Frame& frame);
  bool RunRule(const Expr& expr, const OpRule& rule, absl::string_view name,
               std::vector<ScriptValue> positional, const Named& named, Frame& frame,
               ScriptValue& value);
  bool ApplyRule(OpCall& call, const OpRule& rule, std::vector<ScriptValue> positional,
                 const Named& named, TensorCell* target, ScriptValue& value);
  bool CallFunction(const Expr* where, const ScriptFunction& function,
                    const std::vector<ScriptValue>& positional, const Named& named,
                    const std::string& module_path, ScriptValue& value);
  bool BindParameters(const ScriptFunction& function, const std::vector<ScriptValue>& positional,
                      const Named& named, Frame& frame);
  bool ToNumber(const Expr& expr, absl::string_view type, const ScriptValue& from, Frame& frame,
                ScriptValue& value);
  bool Raise(const Expr& where, absl::string_view type, const std::string& text);
  // The operator that is called most like `name`; "" where none is near.
  const std::string& NearestOperator(absl::string_view name);
  void ReportUnknownOperator(const Expr& expr, absl::string_view name, const Frame& frame);

  // Attributes and the archive's values: exec_objects.cc.
  bool AttributeOf(const ScriptValue& base, absl::string_view name, const Expr& where, Frame& frame,
                   ScriptValue& value);
  // Before a kept object's attribute is read: it is what earlier calls left in it.
  void NoteRead(ScriptObject& object, const std::string& name, ScriptValue& value);
  ScriptValue FromKept(const KeptValue& kept, const std::string& path);
  ValueRef TensorOf(const KeptValue& kept, const std::string& path);
  bool ResolvePath(absl::string_view path, const Expr& where, ScriptValue& value);
  ScriptValue FromArchive(PyId id, const std::string& path);
  ScriptValue MakeObject(PyId id, const std::string& path);
  ScriptValue MakeTensor(PyId id, const std::string& path);
  ScriptValue MakeQuantized(const PyQuantizer& quantizer, Tensor integers, const std::string& path);

  // Spends steps, and says where the limit is met. False: the run ends.
  bool Step(int64_t count, const Expr* where);
  CodePlace PlaceOf(const Expr* where) const;
  void Report(DiagnosticKind kind, const Expr& where, std::string message, std::string fix);

  const TorchArchive* archive_;
  ImportState* state_;
  const frontend::Plugins* plugins_;
  ExecutorLimits limits_;
  CodeLibrary library_;
  const frontend::RuleTable<OpRule> tensor_rules_;
  const frontend::RuleTable<OpRule> python_rules_;
  std::map<std::string, std::string, std::less<>> nearest_operators_;  // by unknown name
  absl::flat_hash_map<const Expr*, ScriptValue> resolved_;             // dotted names
  std::map<PyId, ScriptValue> loaded_;        // values of the archive by id
  std::map<PyId, std::string> tensor_names_;  // as in state_dict
  std::map<std::pair<const ClassDef*, absl::string_view>, const FunctionDef*> method_cache_;
  const LoadedFile* current_file_ = nullptr;
  const Expr* last_place_ = nullptr;
  int64_t steps_ = 0;
  int depth_ = 0;
  bool is_over_ = false;  // a limit was met: no further report
};

}  // namespace npuc::pt

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_EXECUTOR_H_
