#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMPASS_IMPORTER_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMPASS_IMPORTER_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler_core/base/byte_source.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/frontends/common/cut_advice.h"
#include "compiler_core/frontends/common/endpoints.h"
#include "compiler_core/frontends/compass/layer_import.h"
#include "compiler_core/ir/compass/document.h"

namespace npuc::compass {

// One import of a document that the checker found sound: finds the layers that the outputs need and
// runs the rule of each once, in the file's order, in which what makes a tensor comes before what
// reads it. A layer that fails is reported once; what depends on it is skipped. Used once.
class Importer {
 public:
  Importer(const Document& document, const ByteSource& bin, const CompileOptions& options,
           Graph* graph, Diagnostics* diagnostics);

  // Everything of note, and every error, is in the diagnostics afterwards.
  void Run();

 private:
  struct LayerState {
    LayerView view;
    std::vector<std::string> bottoms;
    std::vector<Top> tops;
    bool is_needed = false;
  };
  struct TensorState {
    int layer = 0;
    const Top* top = nullptr;
    ValueRef value = nullptr;  // null: not made yet, or it failed
    bool is_cut = false;       // INPUT_OPS names it
    bool is_wanted = false;
  };

  std::string Suggestion(absl::string_view name) const;
  std::vector<std::string> HeadList(absl::string_view key) const;
  void ReadLayers();
  void ResolveInputs();
  void ResolveOutputs();
  bool Exists(absl::string_view name) const { return tensors_.count(std::string(name)) > 0; }
  void AddInput(TensorState& tensor);
  void MarkNeeded();
  void ImportLayer(LayerState& layer);
  // Whether a layer can be imported; reports it where not. `result`: its first top.
  bool HasRule(const LayerView& layer, const std::string& result);
  // How the model can be cut, found where it is first asked for.
  const frontend::CutAdvice& Advice();
  absl::StatusOr<std::vector<ValueRef>> RunRule(LayerImporter& node, const LayerState& layer);
  void AddOutputs();

  const Document& document_;
  const ByteSource& bin_;
  const CompileOptions& options_;
  ImportState state_;
  frontend::Endpoints endpoints_;
  const frontend::RuleTable<ImportRule> rules_ = AllRules();
  std::vector<LayerState> layers_;
  std::map<std::string, TensorState> tensors_;
  std::vector<frontend::Endpoints::Output> outputs_;
  std::optional<frontend::CutAdvice> advice_;
};

}  // namespace npuc::compass

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMPASS_IMPORTER_H_
