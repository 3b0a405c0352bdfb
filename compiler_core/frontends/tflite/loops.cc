// Operators that run further graphs: WHILE runs its body's graph as many turns as its condition
// says, which must be known while compiling; IF runs the branch that its condition chooses, or both
// where the condition is computed at run time, which then chooses between their results; a
// composite runs the graph that it is made of.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/frontends/common/branches.h"
#include "compiler_core/frontends/tflite/subgraph_import.h"
#include "npuc/fe/tflite/npuc_tflite_generated.h"

namespace npuc::tflite {

bool SubgraphImport::CheckCalled(const OperatorView& op) {
  const bool is_loop = op.op == "WHILE";
  const bool is_branch = op.op == "IF";
  if (op.subgraphs.size() != (is_loop || is_branch ? 2 : 1)) {
    AddError(DiagnosticKind::kBadAttribute, op, "its options are missing or of another operator",
             "convert the model again");
    return false;
  }
  if (!shared_.unroller.TakeNesting(SourceOf(op), nesting_ + 1)) return false;
  const size_t passed = op.inputs.size() - (is_branch && !op.inputs.empty() ? 1 : 0);
  for (size_t i = 0; i < op.subgraphs.size(); ++i) {
    const SubgraphView& graph = shared_.file.subgraph(op.subgraphs[i]);
    const size_t results = is_loop && i == 0 ? 1 : op.outputs.size();
    if (graph.inputs.size() == passed && graph.outputs.size() == results &&
        (!is_loop || op.outputs.size() == passed)) {
      continue;
    }
    AddError(DiagnosticKind::kMalformedNode, op,
             absl::StrCat("subgraph ", op.subgraphs[i], " takes ", graph.inputs.size(),
                          " tensors and gives ", graph.outputs.size(), "; the operator passes ",
                          passed, " and wants ", results),
             "convert the model again");
    return false;
  }
  return true;
}

std::vector<ValueRef> SubgraphImport::RunCalled(const OperatorView& op, int number,
                                                const std::vector<ValueRef>& operands) {
  const SubgraphView& graph = shared_.file.subgraph(number);
  const std::string outer = outer_.empty() ? SourceOf(op).name : outer_;
  // Values that it passes on, and operands, cost time as operators do.
  constexpr size_t kOperandsPerOperator = 16;
  size_t count = 1 + operands.size() + graph.outputs.size();
  for (const OperatorView& inner : graph.operators) {
    count += 1 + inner.inputs.size() / kOperandsPerOperator;
  }
  if (!shared_.unroller.TakeOperators(SourceOf(op), static_cast<int64_t>(count))) return {};
  SubgraphImport import(&shared_, graph, outer, nesting_ + 1);
  import.CheckShapes(false);
  for (size_t i = 0; i < operands.size(); ++i) import.Give(graph.inputs[i], operands[i]);
  import.MarkNeeded(graph.outputs, nullptr);
  const size_t errors_before = state_.diagnostics->error_count();
  import.Run(nullptr);
  std::vector<ValueRef> results;
  for (const int tensor : graph.outputs) {
    results.push_back(import.Result(tensor));
    if (results.back() != nullptr) continue;
    if (state_.diagnostics->error_count() == errors_before) {
      AddError(DiagnosticKind::kMissingProducer, op,
               absl::StrCat("nothing in subgraph ", number, " computes its result '",
                            Printable(graph.tensor(tensor).name), "'"),
               "convert the model again");
    }
    return {};
  }
  return results;
}

int SubgraphImport::Decided(const OperatorView& op, const ValueRef& condition) {
  return shared_.unroller.Decided(SourceOf(op), "condition", condition, [&] {
    return shared_.cut_advice(outer_.empty() ? SourceOf(op).name : outer_);
  });
}

// A variable of a loop of the main graph whose first value is a constant and that turns change is a
// state, which KEEP_STATES may keep.
void SubgraphImport::ImportWhile(const OperatorView& op, std::vector<ValueRef> values) {
  const std::string name = SourceOf(op).name;
  const SubgraphView& body = shared_.file.subgraph(op.subgraphs[1]);
  for (size_t i = 0; i < values.size() && nesting_ == 0; ++i) {
    if (body.inputs[i] == body.outputs[i] || values[i]->facts != nullptr ||
        values[i]->type.shape.empty()) {
      continue;
    }
    values[i] = state_.KeptState(name, absl::StrCat(i), values[i]);
  }
  const auto goes_on = [&](int) {
    const std::vector<ValueRef> condition = RunCalled(op, op.subgraphs[0], values);
    return condition.empty() ? -1 : Decided(op, condition[0]);
  };
  const auto run = [&](int) {
    values = RunCalled(op, op.subgraphs[1], values);
    return !values.empty();
  };
  if (!shared_.unroller.Repeat(SourceOf(op), goes_on, run)) return;
  for (size_t i = 0; i < values.size() && nesting_ == 0; ++i) {
    state_.SetStateAfter(name, absl::StrCat(i), values[i]);
  }
  SetResults(op, values);
}

void SubgraphImport::ImportIf(const OperatorView& op, const std::vector<ValueRef>& values) {
  if (values.empty()) return;
  const auto run = [&](size_t branch) {
    return RunCalled(op, op.subgraphs[branch], {values.begin() + 1, values.end()});
  };
  const auto choose = [&]() -> std::vector<ValueRef> {
    if (values[0]->constant.has_value()) {
      const int choice = Decided(op, values[0]);
      return choice < 0 ? std::vector<ValueRef>() : run(choice == 1 ? 0 : 1);
    }
    const std::vector<ValueRef> if_true = run(0);
    const std::vector<ValueRef> if_false = run(1);
    if (if_true.empty() || if_false.empty()) return {};
    frontend::Emitter node(&state_, SourceOf(op));
    auto chosen = frontend::ChosenResults(node, values[0], if_true, if_false);
    if (chosen.ok()) return *std::move(chosen);
    node.ReportMismatch(chosen.status(), "convert the model again");
    return {};
  };
  SetResults(op, choose());
}

void SubgraphImport::SetResults(const OperatorView& op, const std::vector<ValueRef>& results) {
  for (size_t i = 0; i < results.size(); ++i) {
    if (!given_.contains(op.outputs[i])) values_[op.outputs[i]] = results[i];
  }
}

void SubgraphImport::ImportControl(const OperatorView& op) {
  std::vector<ValueRef> values;
  for (const int operand : op.inputs) {
    if (operand >= 0 && graph_.tensor(operand).element_type == fe::tflite::ElementType_RESOURCE) {
      AddError(
          DiagnosticKind::kUnsupportedOperatorMode, op,
          absl::StrCat("it passes variable '", Printable(graph_.tensor(operand).name),
                       "' to a graph of its own; npuc reads variables in the main graph alone"),
          "convert the model with its weights as constants: "
          "converter.experimental_enable_resource_variables = False");
      for (const int result : op.outputs) values_.emplace(result, nullptr);
      return;
    }
    values.push_back(operand < 0 ? nullptr : ValueOf(operand, op));
  }
  const bool is_complete =
      std::all_of(values.begin(), values.end(), [](const ValueRef& v) { return v != nullptr; });
  if (is_complete && CheckCalled(op)) {
    if (op.op == "WHILE") {
      ImportWhile(op, std::move(values));
    } else if (op.op == "IF") {
      ImportIf(op, values);
    } else {
      SetResults(op, RunCalled(op, op.subgraphs[0], values));
    }
  }
  for (const int result : op.outputs) values_.emplace(result, nullptr);
}

}  // namespace npuc::tflite
