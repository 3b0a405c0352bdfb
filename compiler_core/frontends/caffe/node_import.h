#ifndef NPUC_COMPILER_CORE_FRONTENDS_CAFFE_NODE_IMPORT_H_
#define NPUC_COMPILER_CORE_FRONTENDS_CAFFE_NODE_IMPORT_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/boxes/box_settings.h"
#include "compiler_core/frontends/caffe/layer_view.h"
#include "compiler_core/frontends/common/attribute_node.h"
#include "compiler_core/frontends/common/rule_table.h"
#include "compiler_core/frontends/common/term.h"

namespace npuc::caffe {

using frontend::ImportState;
using frontend::Term;
using frontend::ValueRef;

// States for the next frame: outputs of the model by name, in the order of their inputs.
using NextStates = std::vector<std::pair<std::string, ValueRef>>;

// The view of a layer that its rule works with: its parameters are the attributes, its bottoms the
// operands.
class LayerImporter : public frontend::AttributeNode<LayerView> {
 public:
  LayerImporter(ImportState* state, const LayerView* view, std::vector<ValueRef> inputs,
                NextStates* next_states)
      : AttributeNode(state, view, std::move(inputs)), next_states_(next_states) {}

  absl::string_view op() const { return node().layer().type; }
  size_t output_count() const { return node().layer().tops.size(); }
  int blob_count() const { return static_cast<int>(node().layer().blobs.size()); }

  absl::StatusOr<int64_t> ChoiceOr(absl::string_view name,
                                   absl::Span<const absl::string_view> words, int64_t fallback,
                                   int64_t first = 0);
  // A number of at least lo, at most 2^20.
  absl::StatusOr<int64_t> BoundedOr(absl::string_view name, int64_t fallback, int64_t lo);
  // A report where the layer has another number of blobs.
  absl::Status ExpectBlobs(int count);
  // The dimensions that blob i states.
  absl::StatusOr<Shape> BlobShape(int i);
  // Blob i as a constant of that shape. It may state dimensions of 1 elsewhere, as the four of
  // Caffe's old form are. `what` names it: "weight".
  absl::StatusOr<ValueRef> Blob(int i, absl::string_view what, Shape shape);

  // A state of the layer as the frame begins: the input LAYER_WHAT of the model.
  ValueRef StateBefore(absl::string_view what, Shape shape);
  // The state as the frame ends: the output LAYER_WHAT_out.
  void SetStateAfter(absl::string_view what, ValueRef value);

 private:
  absl::Status BadBlob(int i, absl::string_view message);

  NextStates* next_states_;
};

// The settings of a DetectionOutput layer, without outputs and priors; variances are empty where
// the priors have them. nullopt: the decoder of ../../boxes does not have its form. Source:
// detection_output_layer.cpp of SSD.
std::optional<BoxSettings> BoxesOfDetectionOutput(const LayerView& layer);
// Adds a PriorBox layer's priors. False: they do not fit beside those that are there.
bool AddPriors(LayerImporter& node, bool has_variances, BoxSettings& settings);

// The rule for one type of layer: sets the importer's outputs.
struct ImportRule {
  absl::string_view op;
  absl::Status (*import)(LayerImporter& node);
};

// The rules of each family, in import_<family>.cc.
absl::Span<const ImportRule> ActivationRules();
absl::Span<const ImportRule> ArithmeticRules();
absl::Span<const ImportRule> DetectionRules();
absl::Span<const ImportRule> NormRules();
absl::Span<const ImportRule> RecurrentRules();
absl::Span<const ImportRule> ShapeRules();
absl::Span<const ImportRule> WindowRules();

frontend::RuleTable<ImportRule> AllRules();

}  // namespace npuc::caffe

#endif  // NPUC_COMPILER_CORE_FRONTENDS_CAFFE_NODE_IMPORT_H_
