#ifndef NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_OP_CALL_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_OP_CALL_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/common/emitter.h"
#include "compiler_core/frontends/common/term.h"
#include "compiler_core/frontends/torchscript/attribute_states.h"
#include "compiler_core/frontends/torchscript/script_value.h"
#include "compiler_core/target/core_spec.h"

namespace npuc::pt {

using frontend::Term;

// Where in the archive's code something happens.
struct CodePlace {
  absl::string_view path;    // "code/__torch__/net.py"
  absl::string_view source;  // the file's text
  int line = 0;
  int column = 0;
};

// What all calls of one import share.
struct ImportState : frontend::ImportState {
  ImportState(Graph* graph, Diagnostics* diagnostics, const CompileOptions& options)
      : frontend::ImportState(graph, diagnostics, options,
                              "compute it from shapes and constants, or move it out of the model") {
  }

  // The input of a state: its path, but no word of C and no other input's name.
  std::string NameOfState(const std::string& path);

  ScriptHeap heap;
  AttributeStates attributes;
  std::set<std::string> input_names;
  const CoreSpec* core = nullptr;  // may be null
  std::map<std::string, int> name_counts;
  std::set<std::string> reported;  // what is reported once for the whole model

  // What went wrong in a call that has no effect but its result: of no matter where nothing that
  // the model returns or decides by depends on it. Those that it depended on are its parents.
  struct Taint {
    std::vector<Diagnostic> problems;
    std::vector<int64_t> parents;
  };
  std::vector<Taint> taints;
  ScriptValue NewPoison(std::vector<Diagnostic> problems, std::vector<int64_t> parents);
  // Reports a taint and all that it comes from, each once; kinds that say what npuc lacks once for
  // each operator. FlushAll: every one.
  void Flush(int64_t taint);
  void FlushAll();
  void AddOnce(const Diagnostic& problem);

  // Adds an error at a place in the archive's code, with the line of code.
  void Report(DiagnosticKind kind, const CodePlace& place, const NodeSource& source,
              std::string message, std::string fix);
};

// One call of an operator of torch: its arguments, bound to the parameters of its schema, beside
// what all front ends share. A rule gives its result, or a status; where an argument was poison,
// that counts as reported.
class OpCall : public frontend::Emitter {
 public:
  OpCall(ImportState* state, CodePlace place, NodeSource source)
      : Emitter(state, std::move(source)), torch_state_(state), place_(place) {}

  // Binds arguments to `parameters`, names separated by spaces. False where they do not fit; that
  // is reported.
  bool Bind(absl::string_view parameters, std::vector<ScriptValue> positional,
            const std::vector<std::pair<absl::string_view, ScriptValue>>& named);

  ImportState& state() { return *torch_state_; }
  absl::string_view name() const { return name_; }  // "add_" of torch.add_
  void set_name(absl::string_view name) { name_ = name; }
  const CodePlace& place() const { return place_; }

  // Notes that a rule of this kind of the core's row is broken and met by a rewrite, for operators
  // of which no node is left that could be held against it.
  void NoteRewritten(absl::string_view row, RuleKind kind, absl::string_view found,
                     std::string how);
  // What a poisoned argument gives: already reported where it came from.
  absl::Status Poisoned();

  int arg_count() const { return static_cast<int>(args_.size()); }
  bool Has(int i) const { return i < arg_count() && args_[i].has_value() && !args_[i]->IsNone(); }
  bool IsTensor(int i) const { return Has(i) && args_[i]->Is(ScriptKind::kTensor); }
  const ScriptValue& arg(int i) const;  // None where it is not given

  absl::StatusOr<ValueRef> TensorArg(int i);
  // A tensor, or a number as a tensor without dimensions of `like`'s type; an int or a float beside
  // booleans, and a float beside integers, keeps its own.
  absl::StatusOr<ValueRef> TensorOrNumber(int i, const ValueRef& like);
  absl::StatusOr<ValueRef> OptionalTensor(int i);  // null where it is None or not given
  absl::StatusOr<std::vector<ValueRef>> Tensors(int i);
  absl::StatusOr<Tensor> ConstantArg(int i);
  // Numbers: given as such, or as constants of one element.
  absl::StatusOr<int64_t> Int(int i);
  absl::StatusOr<int64_t> IntOr(int i, int64_t fallback);
  absl::StatusOr<double> FloatOr(int i, double fallback);
  absl::StatusOr<bool> BoolOr(int i, bool fallback);
  absl::StatusOr<std::string> StringOr(int i, absl::string_view fallback);
  absl::StatusOr<std::vector<int64_t>> Ints(int i);  // a single int counts as a list of one
  absl::StatusOr<std::vector<int64_t>> IntsOr(int i, std::vector<int64_t> fallback);
  // `count` of them; a single one counts for all.
  absl::StatusOr<std::vector<int64_t>> IntsOf(int i, size_t count, std::vector<int64_t> fallback);

  // axis in -rank..rank-1 -> 0..rank-1; a tensor without dimensions counts as rank 1.
  absl::StatusOr<int64_t> Axis(int64_t axis, int64_t rank);
  // Sorted, unique; all axes for an empty list.
  absl::StatusOr<std::vector<int64_t>> Axes(std::vector<int64_t> axes, int64_t rank);

  // A node counts as the row of the core's list for PyTorch that the IR's operator has; as no row
  // where it only moves data between layouts (Reshaped, Transposed). These functions name the row,
  // or kNoRow; where it is "", they are Emit and its kin.
  static constexpr absl::string_view kNoRow = "-";
  absl::StatusOr<ValueRef> EmitUnder(absl::string_view row, absl::string_view op,
                                     absl::Span<const ValueRef> operands, AttrMap attrs = {});
  absl::StatusOr<ValueRef> ReshapedUnder(absl::string_view row, const ValueRef& value, Shape shape);
  absl::StatusOr<ValueRef> TransposedUnder(absl::string_view row, const ValueRef& value,
                                           std::vector<int64_t> perm);
  absl::StatusOr<ValueRef> SlicedUnder(absl::string_view row, const ValueRef& value, int64_t axis,
                                       int64_t begin, int64_t size, int64_t step = 1);
  // From here on every node of this call counts as that row.
  void set_row(absl::string_view row) { row_ = row; }

  ValueRef ScalarLike(const ValueRef& other, double value) override { return Scalar(value); }
  bool EmitsLeftFirst() const override { return true; }
  // Repeats dimensions of 1 until the value has this shape.
  absl::StatusOr<ValueRef> Expanded(const ValueRef& value, const Shape& shape);

  // The current value of a tensor object, views brought up to date.
  absl::StatusOr<ValueRef> Read(TensorCell* cell);
  // What an in-place operator does: `updated` becomes the tensor's value, of its base's, too.
  absl::Status Write(TensorCell* cell, ValueRef updated);
  // Makes the tensor itself the view of it that `view` is, as transpose_ does: others that look at
  // its memory see it as before.
  absl::Status Become(TensorCell* cell, const TensorCell& view);
  // A new tensor object; a view of argument `base` where functions are given.
  ScriptValue Result(ValueRef value) { return state().heap.Tensor(std::move(value)); }
  absl::StatusOr<ScriptValue> Result(absl::StatusOr<ValueRef> value) {
    if (!value.ok()) return value.status();
    return Result(*std::move(value));
  }

 protected:
  NodeSource SourceFor(absl::string_view op) const override;
  NodeSource LayoutSourceFor(absl::string_view op) const override;
  // With the line of the archive's code.
  void Report(DiagnosticKind kind, const NodeSource& source, std::string message,
              std::string fix) override;
  // Every value of the graph is f32: whatever else a constant is, it is converted.
  Tensor Placed(const Tensor& constant) const override;
  // By torch's rules for constants of several types.
  absl::StatusOr<std::vector<ValueRef>> Fold(Op op, absl::Span<const ValueRef> operands,
                                             AttrMap attrs) override;
  // The types that torch gives results that are computed at run time.
  void NoteFacts(Op op, absl::Span<const ValueRef> operands,
                 std::vector<ValueRef>& results) const override;

 private:
  NodeSource UnderRow(absl::string_view row) const;
  // Notes a write to what the module keeps.
  void NoteChange(TensorCell* cell);
  absl::Status ExpectKind(int i, absl::string_view wanted);

  ImportState* torch_state_;
  CodePlace place_;
  absl::string_view name_;
  absl::string_view row_;
  std::vector<absl::string_view> parameters_;
  std::vector<std::optional<ScriptValue>> args_;
};

// The rule of one operator: its name without "torch.", the parameters of its schema (those of the
// in-place form NAME_ are the same), and the function that imports a call.
using OpFunction = absl::StatusOr<ScriptValue> (*)(OpCall& call);
struct OpRule {
  absl::string_view op;
  absl::string_view parameters;
  OpFunction import;
};

// The rule of an operator that is a formula of its first argument.
template <Term (*formula)(const Term& x)>
absl::StatusOr<ScriptValue> ImportFormula(OpCall& call) {
  return call.Result(formula(Term(call, call.TensorArg(0))).value);
}

// Rules on tensors, by family, in ops_<family>.cc.
absl::Span<const OpRule> ElementwiseRules();
absl::Span<const OpRule> ActivationRules();
absl::Span<const OpRule> ConvRules();
absl::Span<const OpRule> PoolRules();
absl::Span<const OpRule> LinearRules();
absl::Span<const OpRule> ReduceRules();
absl::Span<const OpRule> ShapeRules();
absl::Span<const OpRule> SliceRules();
absl::Span<const OpRule> PadRules();
absl::Span<const OpRule> CreateRules();
absl::Span<const OpRule> NormRules();
absl::Span<const OpRule> RecurrentRules();
absl::Span<const OpRule> AttentionRules();
absl::Span<const OpRule> SelectRules();
absl::Span<const OpRule> QuantizedRules();
absl::Span<const OpRule> LogicRules();
// Rules on Python values alone, tried first where no argument is a tensor.
absl::Span<const OpRule> PythonRules();

// A computed constant of a few elements by torch's rules for integers and floats, or null where the
// operator is unknown or the operands are large. b may be null.
std::optional<Tensor> EvaluateSmall(absl::string_view op, const Tensor& a, const Tensor* b);

}  // namespace npuc::pt

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_OP_CALL_H_
