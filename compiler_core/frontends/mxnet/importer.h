#ifndef NPUC_COMPILER_CORE_FRONTENDS_MXNET_IMPORTER_H_
#define NPUC_COMPILER_CORE_FRONTENDS_MXNET_IMPORTER_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/common/cut_advice.h"
#include "compiler_core/frontends/common/endpoints.h"
#include "compiler_core/frontends/common/plugins.h"
#include "compiler_core/frontends/common/subgraphs.h"
#include "compiler_core/frontends/mxnet/node_import.h"
#include "compiler_core/frontends/mxnet/params_file.h"
#include "compiler_core/frontends/mxnet/symbol.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc::mxnet {

// The number of a node's operands that matter at inference: labels do not.
size_t OperandsAtInference(const ImportRule* rule, const NodeView& node);

// One import of a symbol with its parameters. Used once.
class Importer {
 public:
  // All outlive it. `params_file` names the file of the parameters in diagnostics.
  Importer(const Symbol& symbol, ParamsFile& params, absl::string_view params_file,
           const CompileOptions& options, const frontend::Plugins& plugins, Graph* graph,
           Diagnostics* diagnostics);

  // Everything of note, and every error, is in the diagnostics afterwards.
  void Run();

 private:
  struct Given {
    ValueRef value;  // null: it was reported
    bool is_used = false;
  };
  struct Output {
    std::string name;
    Entry entry;
    bool fp16 = false;
  };

  // Names of parameters that were saved without the prefix of the whole net get it.
  void RestorePrefix();
  std::string Suggestion(absl::string_view name) const;
  void ResolveInputs();
  void ResolveOutputs();
  // The heads, or what box decoders among them read, with a note.
  std::vector<Entry> StatedOutputs();
  std::vector<bool> RunTimeNodes() const;
  ValueRef NewInput(const Entry& entry, const Shape& shape);
  // Marks the nodes that an entry needs.
  void MarkNeeded(const Entry& entry);
  void AddNeededVariables();
  // An input that INPUT_OPS leaves out: its shape is in the symbol, or it is reported.
  void AddStatedInput(int node);
  bool IsParameterPlace(int variable) const;
  void ImportParameter(int node, const ParamsFile::Array& array);
  const frontend::PluginOp* FindPlugin(const NodeView& node) const;
  void MatchSubgraphs();
  void ImportNode(int node);
  void ImportSubgraph(const frontend::SubgraphMatch& match);
  // Operand i of a node; null where it failed, which is reported.
  ValueRef OperandOf(const NodeView& node, size_t i);
  void TakeResults(int node, NodeImporter& importer, const absl::Status& status);
  const frontend::CutAdvice& Advice();
  void AddOutputs();

  const Symbol& symbol_;
  ParamsFile& params_;
  const std::string params_file_;
  const CompileOptions& options_;
  frontend::ImportState state_;
  frontend::Endpoints endpoints_;
  const frontend::RuleTable<ImportRule> rules_ = AllRules();
  const frontend::Plugins& plugins_;
  frontend::Subgraphs subgraphs_;
  absl::flat_hash_map<Entry, Given> given_;  // of INPUT_OPS and CONST_INPUTS
  std::vector<std::string> cuts_;            // those of INPUT_OPS
  std::vector<Output> outputs_;
  std::vector<bool> is_needed_;                // by node
  std::vector<std::vector<ValueRef>> values_;  // by node; empty: it failed, or was not needed
  std::optional<frontend::CutAdvice> advice_;
};

}  // namespace npuc::mxnet

#endif  // NPUC_COMPILER_CORE_FRONTENDS_MXNET_IMPORTER_H_
