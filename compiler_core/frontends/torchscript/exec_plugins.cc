#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/frontends/common/plugin_import.h"
#include "compiler_core/frontends/torchscript/executor.h"

namespace npuc::pt {
namespace {

using frontend::FormulaNumbers;
using frontend::PluginOp;

absl::StatusOr<FormulaNumbers> NumbersOf(const ScriptValue& value, absl::string_view name) {
  FormulaNumbers numbers;
  numbers.is_list = value.IsSequence();
  const std::vector<ScriptValue> one = {value};
  for (const ScriptValue& item : numbers.is_list ? value.list->items : one) {
    const bool is_number =
        item.Is(ScriptKind::kInt) || item.Is(ScriptKind::kFloat) || item.Is(ScriptKind::kBool);
    if (!is_number) {
      return absl::InvalidArgumentError(
          absl::StrCat("argument '", name, "' is no number and no list of them"));
    }
    numbers.numbers.push_back(item.AsDouble());
  }
  return numbers;
}

// A call as a formula sees it. A schema's tensors are the declaration's operands, in order, and its
// numbers the attributes; an argument may be given by its name.
class PluginCall : public OpCall {
 public:
  using OpCall::OpCall;

  absl::Status Take(const PluginOp& op, const std::vector<ScriptValue>& positional,
                    const std::vector<std::pair<absl::string_view, ScriptValue>>& named) {
    inputs_.assign(op.operands.size(), nullptr);
    attributes_.assign(op.attributes.size(), absl::NotFoundError("the call does not give it"));
    size_t operand = 0;
    size_t attribute = 0;
    for (const ScriptValue& value : positional) {
      if (value.IsNone()) {
        ++attribute;  // its default
      } else {
        size_t& at = value.Is(ScriptKind::kTensor) ? operand : attribute;
        RETURN_IF_ERROR(Set(op, at++, value));
      }
    }
    for (const auto& [name, value] : named) {
      if (value.IsNone()) continue;
      const bool is_tensor = value.Is(ScriptKind::kTensor);
      const auto has_name = [n = name](const auto& a) { return a.source == n; };
      const auto at =
          is_tensor ? std::find(op.operands.begin(), op.operands.end(), name) - op.operands.begin()
                    : std::find_if(op.attributes.begin(), op.attributes.end(), has_name) -
                          op.attributes.begin();
      RETURN_IF_ERROR(Set(op, static_cast<size_t>(at), value));
    }
    return absl::OkStatus();
  }

  // The part of an OperandNode that RunPlugin reads.
  absl::Status ExpectInputs(int, int) { return absl::OkStatus(); }
  bool has(int i) const { return inputs_[static_cast<size_t>(i)] != nullptr; }
  const ValueRef& input(int i) const { return inputs_[static_cast<size_t>(i)]; }
  absl::Status SetOutputs(std::vector<ValueRef> values) {
    results_ = std::move(values);
    return absl::OkStatus();
  }

  const absl::StatusOr<FormulaNumbers>& attribute(size_t i) const { return attributes_[i]; }
  const std::vector<ValueRef>& results() const { return results_; }

 private:
  absl::Status Set(const PluginOp& op, size_t at, const ScriptValue& value) {
    const bool is_tensor = value.Is(ScriptKind::kTensor);
    const size_t count = is_tensor ? inputs_.size() : attributes_.size();
    if (at >= count) {
      return Fail(
          DiagnosticKind::kOperandCount,
          absl::StrCat("the call gives a ", is_tensor ? "tensor" : "number", " beside the ", count,
                       " of the declaration at line ", op.line, " of ", Printable(op.file)),
          "declare them all, by the schema's names and in its order");
    }
    if (!is_tensor) {
      attributes_[at] = NumbersOf(value, op.attributes[at].source);
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(inputs_[at], Read(value.tensor));
    return absl::OkStatus();
  }

  std::vector<ValueRef> inputs_;
  std::vector<absl::StatusOr<FormulaNumbers>> attributes_;
  std::vector<ValueRef> results_;
};

}  // namespace

bool Executor::CallPlugin(const Expr& expr, const PluginOp& op,
                          const std::vector<ScriptValue>& positional, const Named& named,
                          Frame& frame, ScriptValue& value) {
  std::vector<int64_t> parents;
  const auto note = [&](const ScriptValue& argument) {
    if (argument.Is(ScriptKind::kPoison)) parents.push_back(argument.integer);
  };
  std::for_each(positional.begin(), positional.end(), note);
  for (const auto& [name, argument] : named) note(argument);
  if (!parents.empty()) {
    value = state_->NewPoison({}, std::move(parents));
    return true;
  }
  PluginCall call(state_, PlaceOf(&expr), {NodeNameOf(op.op, frame), op.op});
  const auto apply = [&] {
    absl::Status status = call.Take(op, positional, named);
    if (status.ok()) {
      status = frontend::RunPlugin(call, op, [&](size_t i) { return call.attribute(i); });
    }
    if (!status.ok()) {
      call.ReportMismatch(status, "correct the declaration, or the shapes in INPUT_OPS");
      return false;
    }
    std::vector<ScriptValue> results;
    for (const ValueRef& result : call.results()) results.push_back(call.Result(result));
    value = results.size() == 1 ? results[0] : state_->heap.Tuple(std::move(results));
    return true;
  };
  return RunApart(expr, op.op, {}, apply, value);
}

}  // namespace npuc::pt
