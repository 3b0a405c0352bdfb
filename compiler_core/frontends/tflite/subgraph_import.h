#ifndef NPUC_COMPILER_CORE_FRONTENDS_TFLITE_SUBGRAPH_IMPORT_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TFLITE_SUBGRAPH_IMPORT_H_

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/common/plugins.h"
#include "compiler_core/frontends/common/rule_table.h"
#include "compiler_core/frontends/common/subgraphs.h"
#include "compiler_core/frontends/common/unroller.h"
#include "compiler_core/frontends/tflite/model_file.h"
#include "compiler_core/frontends/tflite/node_import.h"
#include "compiler_core/frontends/tflite/variables.h"

namespace npuc::tflite {

frontend::RuleTable<ImportRule> AllRules();
// The rules of custom operators, which have names in place of codes.
frontend::RuleTable<ImportRule> CustomRules();

// What the imports of all graphs of one file share.
struct FileImport {
  const ModelFile& file;
  ImportState& state;
  // How to cut the main graph around a result of it, for an operator that is not supported there.
  std::function<std::string(absl::string_view)> cut_advice;
  const frontend::Plugins& plugins;
  const frontend::RuleTable<ImportRule> rules = AllRules();
  const frontend::RuleTable<ImportRule> custom_rules = CustomRules();
  // Constants by graph and tensor: each turn of a loop uses the same ones.
  std::map<std::pair<const SubgraphView*, int>, ValueRef> constants = {};
  // Weights as products take them, made once.
  TransposedWeights transposed = {};
  frontend::Unroller unroller = {&state, "convert the model"};
};

// Runs the rules of one graph of a file, once each, in the file's order, which is that of
// execution. An operator that fails is reported once; what depends on it is skipped. A loop runs
// its body's graph once a turn, each time by another of these. Used once.
class SubgraphImport {
 public:
  // `shared` and `graph` outlive it. `outer`: the result of the main graph's operator that runs the
  // graph; empty for the main graph itself.
  SubgraphImport(FileImport* shared, const SubgraphView& graph, std::string outer, int nesting);

  // A tensor's value from outside, which no operator replaces; null where it failed.
  void Give(int tensor, ValueRef value);
  // Operators that run are those that these leave, and what stands in the place of the others.
  void Replace(const frontend::Subgraphs* subgraphs) { subgraphs_ = subgraphs; }
  bool IsGiven(int tensor) const { return given_.contains(tensor); }
  // Marks what the tensors need. `variables`: null inside of loops.
  void MarkNeeded(const std::vector<int>& tensors, const Variables* variables);
  bool IsNeeded(const OperatorView& op) const { return is_needed_[static_cast<size_t>(op.index)]; }
  bool IsWanted(int tensor) const { return is_wanted_[static_cast<size_t>(tensor)]; }
  // The results' shapes are those that the file states.
  void CheckShapes(bool on) { checks_shapes_ = on; }

  void Run(Variables* variables);
  // The value of a tensor after Run; null where it failed or nothing computes it.
  ValueRef Result(int tensor);

  // Whether an operator can be imported, as far as its name says.
  static bool IsSupported(const FileImport& shared, const OperatorView& op);
  // The names of all of them, sorted.
  static std::vector<std::string> Ops();

 private:
  NodeSource SourceOf(const OperatorView& op) const;
  void AddError(DiagnosticKind kind, const OperatorView& op, std::string message, std::string fix);
  void ImportOperator(const OperatorView& op, Variables* variables);
  // The operator by `import`, which sets the node's outputs, on those operands; null: one failed.
  using RunNode = absl::FunctionRef<absl::Status(NodeImporter& node)>;
  void RunRule(const OperatorView& op, Variables* variables,
               std::optional<std::vector<ValueRef>> operands, RunNode import);
  void ImportSubgraph(const frontend::SubgraphMatch& match);
  void ImportVariable(const OperatorView& op, Variables& variables);
  void ReportNoRule(const OperatorView& op);
  // Quantizes the results that the file stores as integers, and keeps them.
  absl::Status TakeResults(const OperatorView& op, NodeImporter& node);
  absl::Status CheckShapeOf(const OperatorView& op, NodeImporter& node, int result);
  // The value of an operand; null where its producer failed (then it has been reported).
  ValueRef ValueOf(int tensor, const OperatorView& consumer);
  ValueRef ConstantValue(int tensor);

  // Loops, branches and composites, in loops.cc. They set the operator's results.
  void ImportControl(const OperatorView& op);
  void ImportWhile(const OperatorView& op, std::vector<ValueRef> values);
  void ImportIf(const OperatorView& op, const std::vector<ValueRef>& values);
  // `results` may be empty: then they are reported to be missing.
  void SetResults(const OperatorView& op, const std::vector<ValueRef>& results);
  // Whether the graphs that the operator runs take and give what it does; else reports it.
  bool CheckCalled(const OperatorView& op);
  // The results of one run of a graph; empty where one of them failed (then it was reported).
  std::vector<ValueRef> RunCalled(const OperatorView& op, int number,
                                  const std::vector<ValueRef>& operands);
  // A condition's value, as Unroller::Decided gives it.
  int Decided(const OperatorView& op, const ValueRef& condition);

  FileImport& shared_;
  ImportState& state_;
  const SubgraphView& graph_;
  const std::string outer_;
  const int nesting_;
  const frontend::Subgraphs* subgraphs_ = nullptr;
  std::map<int, ValueRef> values_;  // by tensor; null: it failed
  std::set<int> given_;
  std::vector<bool> is_needed_;  // by operator
  std::vector<bool> is_wanted_;  // by tensor
  bool checks_shapes_ = true;
};

}  // namespace npuc::tflite

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TFLITE_SUBGRAPH_IMPORT_H_
