#ifndef NPUC_COMPILER_CORE_FRONTENDS_ONNX_GRAPH_IMPORT_H_
#define NPUC_COMPILER_CORE_FRONTENDS_ONNX_GRAPH_IMPORT_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/common/endpoints.h"
#include "compiler_core/frontends/common/plugins.h"
#include "compiler_core/frontends/common/rule_table.h"
#include "compiler_core/frontends/common/subgraphs.h"
#include "compiler_core/frontends/common/unroller.h"
#include "compiler_core/frontends/onnx/model_file.h"
#include "compiler_core/frontends/onnx/node_import.h"

namespace npuc::onnx {

frontend::RuleTable<ImportRule> AllRules();

// One import of a file: the parts that the imports of its graphs share.
struct FileImport {
  const ModelFile& file;
  ImportState& state;
  // The advice to cut the main graph around a result of it, for an operator that is not supported.
  std::function<std::string(absl::string_view)> cut_advice;
  // Makes inputs of those that the main graph turned out to need.
  std::function<void()> add_needed_inputs;
  const frontend::Plugins& plugins;
  const frontend::RuleTable<ImportRule> rules = AllRules();
  frontend::Unroller unroller = {&state, "export the model"};
  // Each turn of a loop uses the same ones.
  absl::flat_hash_map<const fe::onnx::TensorProto*, ValueRef> constants = {};
};

// Runs the rules of one graph of a file, once each, producers first. A node that fails is reported
// once; what depends on it is skipped. A loop runs its body's graph once a turn, each time by
// another of these. Used once.
class GraphImport {
 public:
  // `shared`, `graph` and `around` outlive it. `around`: the import of the graph whose tensors this
  // one may use; null for the main graph and functions. `outer`: the result of the main graph's
  // node that runs the graph; empty for the main graph itself.
  GraphImport(FileImport* shared, const GraphView& graph, GraphImport* around, std::string outer);

  // A tensor's value from outside, which no node replaces; null where it failed.
  void Give(absl::string_view tensor, ValueRef value);
  // An operand of a function that the call leaves out.
  void LeaveOut(absl::string_view tensor) { left_out_.emplace(tensor); }
  // Nodes that run are those that these leave, and what stands in the place of the others.
  void Replace(const frontend::Subgraphs* subgraphs) { subgraphs_ = subgraphs; }
  bool IsGiven(absl::string_view tensor) const { return given_.contains(tensor); }
  // True: an ordered node, or an output, reads it.
  bool IsUsed(absl::string_view given) const;
  // Whether an ordered node, a graph inside of one, or an output reads the tensor.
  bool IsRead(absl::string_view tensor) const { return read_.contains(tensor); }
  // Inputs of the graph that nobody gave and that ordered nodes, or outputs, need.
  bool NeedsInput(int input) const { return is_needed_[static_cast<size_t>(input)]; }

  // The nodes that still wait and that the tensors need, producers first.
  std::vector<int> Ordered(absl::Span<const absl::string_view> tensors);
  void Run(absl::Span<const int> order);
  // The value of a tensor after Run; null where it failed or nothing computes it.
  ValueRef Result(absl::string_view tensor);
  // The value of a tensor of this graph or of one around it. Null where its producer failed (then
  // it has been reported), or where there is none, which is reported for the consumer.
  ValueRef ValueOf(absl::string_view name, const NodeSource& consumer);

  // True: a node can be imported, as far as its name says.
  static bool IsSupported(const FileImport& shared, const NodeView& node);
  // The tensors that the graphs inside of the node take from around them.
  static std::vector<std::string> Captured(const ModelFile& file, const NodeView& node);
  // The names of all operators that can be, sorted.
  static std::vector<std::string> Ops();

 private:
  enum class Progress : uint8_t { kWaiting, kRunning, kDone };

  static const ImportRule* RuleOf(const FileImport& shared, const NodeView& node);
  void AddError(DiagnosticKind kind, const NodeView& node, std::string message, std::string fix);
  // ValueOf() for a graph inside of a node: nodes that the tensor needs run now.
  ValueRef Capture(absl::string_view name, const NodeSource& consumer);
  void ImportNode(const NodeView& node);
  void ImportPlugin(const NodeView& node, const frontend::PluginOp& op);
  void ImportSubgraph(const frontend::SubgraphMatch& match);
  void TakeResults(const NodeView& node, NodeImporter& importer, const absl::Status& status);
  void ReportNoRule(const NodeView& node);
  void ReportCycle(absl::Span<const frontend::OrderingStep> waiting, int node);
  ValueRef InitializerValue(absl::string_view name, const fe::onnx::TensorProto& tensor,
                            const NodeSource& consumer);
  bool TakesSequences(const NodeView& node) const;
  // The values of a node's operands, null where one is left out; nullopt where one failed.
  std::optional<std::vector<ValueRef>> Operands(const NodeView& node);
  void SetResults(const NodeView& node, absl::Span<const ValueRef> values);
  std::string CutAdvice(const NodeView& node) const;

  // Loops, branches and calls, in control.cc. The results of one, or nullopt: it was reported.
  using Results = std::optional<std::vector<ValueRef>>;
  static bool IsControl(const NodeView& node);
  Results ImportControl(const NodeView& node, const std::vector<ValueRef>& operands);
  Results ImportIf(const NodeView& node, const ValueRef& condition);
  Results ImportLoop(const NodeView& node, const std::vector<ValueRef>& operands);
  Results ImportScan(const NodeView& node, const std::vector<ValueRef>& operands);
  Results ImportCall(const NodeView& node, const GraphView& function,
                     const std::vector<ValueRef>& operands);
  int Decided(const NodeView& node, absl::string_view what, const ValueRef& value);
  bool AreTensors(const NodeView& node, absl::Span<const ValueRef> values);
  // One run of a graph of a node on the values of its inputs.
  Results RunGraph(const NodeView& node, const GraphView& graph, absl::Span<const ValueRef> inputs);
  const GraphView* GraphOf(const NodeView& node, absl::string_view attribute);
  // True: the graph takes and gives so many tensors; else it is reported.
  bool HasCounts(const NodeView& node, const GraphView& graph, size_t inputs, size_t outputs);

  FileImport& shared_;
  ImportState& state_;
  const GraphView& graph_;
  GraphImport* const around_;
  const std::string outer_;
  const frontend::Subgraphs* subgraphs_ = nullptr;
  absl::flat_hash_map<std::string, ValueRef> values_;  // null: it failed
  absl::flat_hash_map<std::string, bool> given_;       // whether it is used
  absl::flat_hash_set<std::string> left_out_;
  absl::flat_hash_set<std::string> read_;
  std::vector<Progress> progress_;  // by node
  std::vector<bool> is_needed_;     // by input of the graph
};

}  // namespace npuc::onnx

#endif  // NPUC_COMPILER_CORE_FRONTENDS_ONNX_GRAPH_IMPORT_H_
