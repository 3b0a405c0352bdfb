#ifndef NPUC_COMPILER_CORE_FRONTENDS_DARKNET_IMPORTER_H_
#define NPUC_COMPILER_CORE_FRONTENDS_DARKNET_IMPORTER_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "compiler_core/base/byte_source.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/boxes/box_settings.h"
#include "compiler_core/frontends/common/endpoints.h"
#include "compiler_core/frontends/darknet/cfg_file.h"
#include "compiler_core/frontends/darknet/layer_import.h"
#include "compiler_core/frontends/darknet/net_plan.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc::darknet {

// One import of a net: its plan first, then the layers that the outputs need, in the file's order,
// in which what a layer reads comes before it. Used once.
class Importer {
 public:
  // `weights`: null where there is no such file.
  Importer(const CfgFile& cfg, const ByteSource* weights, const CompileOptions& options,
           Graph* graph, Diagnostics* diagnostics);

  // Everything of note, and every error, is in the diagnostics afterwards. `boxes`: null, or it
  // gets the settings of the layers that decode boxes, if those are all of one kind.
  void Run(std::optional<BoxSettings>* boxes);

 private:
  // The state of one layer's result, or of the net's input.
  struct Tensor {
    ValueRef value;          // null: not made yet, or it failed
    bool is_cut = false;     // INPUT_OPS names it
    bool is_wanted = false;  // an output needs it
  };

  // -1: the net's input; nullopt: there is none of that name, or a layer that gives nothing.
  std::optional<int> Find(absl::string_view name) const;
  Tensor& At(int layer) { return tensors_[static_cast<size_t>(layer) + 1]; }
  const Layer& LayerAt(int layer) const { return plan_.layers[static_cast<size_t>(layer)]; }
  const Size& SizeOf(int layer) const { return layer < 0 ? plan_.input : LayerAt(layer).out; }
  std::string NameOf(int layer) const { return layer < 0 ? kInputName : LayerAt(layer).name; }
  std::string Suggestion(absl::string_view name) const;

  // The number of layers up to the last one that OUTPUT_OPS names; all where it does not say.
  size_t LayersToPlan() const;
  // The size of 'input' that INPUT_OPS declares, or that the .cfg states.
  Size ReadInputSize();
  void ResolveInputs();
  void ResolveOutputs();
  void MarkNeeded();
  // Reads the head of the .weights. False, and reported: they do not hold all that is needed.
  bool OpenWeights();
  void AddInput(int layer);
  void ImportLayer(int layer);
  std::optional<BoxSettings> BoxesOfHeads();
  void NoteHeads(bool are_decoded);
  void AddOutputs();

  const CfgFile& cfg_;
  const ByteSource* const weights_;
  const CompileOptions& options_;
  ImportState state_;
  frontend::Endpoints endpoints_;
  NetPlan plan_;
  int64_t batch_ = 1;
  std::vector<Tensor> tensors_;  // the input's, then those of the layers
  std::vector<frontend::Endpoints::Output> outputs_;
};

}  // namespace npuc::darknet

#endif  // NPUC_COMPILER_CORE_FRONTENDS_DARKNET_IMPORTER_H_
