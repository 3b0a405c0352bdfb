#ifndef NPUC_COMPILER_CORE_FRONTENDS_CAFFE_IMPORTER_H_
#define NPUC_COMPILER_CORE_FRONTENDS_CAFFE_IMPORTER_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/boxes/box_settings.h"
#include "compiler_core/frontends/caffe/net.h"
#include "compiler_core/frontends/caffe/node_import.h"
#include "compiler_core/frontends/common/cut_advice.h"
#include "compiler_core/frontends/common/endpoints.h"
#include "compiler_core/frontends/common/plugins.h"
#include "compiler_core/frontends/common/subgraphs.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc::caffe {

// One import of a net. Used once.
class Importer {
 public:
  // Both files' names are for diagnostics; net and options outlive it.
  Importer(const Net& net, const CompileOptions& options, const frontend::Plugins& plugins,
           Graph* graph, Diagnostics* diagnostics);

  // Everything of note, and every error, is in the diagnostics afterwards. `boxes`: null, or it
  // gets the settings of the one layer that decodes boxes.
  void Run(std::optional<BoxSettings>* boxes);

 private:
  using Endpoints = frontend::Endpoints;

  // The state of a tensor of the net.
  struct Value {
    bool is_given = false;   // a config makes it an input or a constant
    bool is_needed = false;  // an output depends on it
    ValueRef value;          // null before its layer ran, and where that failed
  };

  void AddError(DiagnosticKind kind, NodeSource source, std::string message, std::string fix) {
    state_.AddError(kind, std::move(source), std::move(message), std::move(fix));
  }
  const NetTensor& tensor(int i) const { return net_.tensors()[static_cast<size_t>(i)]; }
  Value& value(int i) { return values_[static_cast<size_t>(i)]; }

  // The input of the name, or else any tensor of it; -1: none.
  int FindInput(absl::string_view name) const;
  std::string Suggestion(absl::string_view name, absl::string_view otherwise) const;
  void ResolveInputs();
  void ResolveOutputs();
  // The settings of a layer that decodes boxes; nullopt: the decoder has no such form.
  std::optional<BoxSettings> BoxesOf(const Decoding& decoding);
  // The PriorBox layers whose results a tensor is, in their order; empty: it is something else.
  std::vector<const Layer*> PriorLayers(int tensor) const;
  void NoteDecodings(std::optional<BoxSettings>* boxes);
  // Makes a graph input of a tensor. Null: reported.
  ValueRef NewInput(int tensor, const std::string& name, const Shape* declared);
  void MarkNeeded();
  void AddNeededInputs();
  bool IsNeeded(const Layer& layer);
  // Finds the layers that declared operators stand in the place of.
  void MatchSubgraphs();
  void RunLayer(const Layer& layer);
  void RunPlugin(const Layer& layer, const frontend::PluginOp& op);
  void RunSubgraph(const frontend::SubgraphMatch& match);
  // The layer's results from its rule, which returned `status`.
  void TakeResults(const Layer& layer, LayerImporter& node, const absl::Status& status);
  // The operands of a layer; nullopt where one failed or is nowhere.
  std::optional<std::vector<ValueRef>> Operands(const Layer& layer);
  void ReportNoRule(const Layer& layer);
  // False, and reported: a parameter that may change what the layer computes and that nobody read.
  bool CheckParameters(const LayerView& view);
  void ReportForeignParameters(const Layer& layer);
  // Places to cut the net at, found at the first call.
  const frontend::CutAdvice& Advice();
  void AddOutputs();

  const Net& net_;
  const CompileOptions options_;  // with what a decoding layer reads in the place of its results
  ImportState state_;
  Endpoints endpoints_;
  const frontend::Plugins& plugins_;
  frontend::Subgraphs subgraphs_;
  const frontend::RuleTable<ImportRule> rules_ = AllRules();
  std::vector<Value> values_;  // by tensor
  NextStates next_states_;
  std::vector<Endpoints::Output> outputs_;
  std::optional<frontend::CutAdvice> advice_;
};

}  // namespace npuc::caffe

#endif  // NPUC_COMPILER_CORE_FRONTENDS_CAFFE_IMPORTER_H_
