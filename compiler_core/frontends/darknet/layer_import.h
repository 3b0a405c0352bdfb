#ifndef NPUC_COMPILER_CORE_FRONTENDS_DARKNET_LAYER_IMPORT_H_
#define NPUC_COMPILER_CORE_FRONTENDS_DARKNET_LAYER_IMPORT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/base/byte_source.h"
#include "compiler_core/frontends/common/operand_node.h"
#include "compiler_core/frontends/common/rule_table.h"
#include "compiler_core/frontends/common/term.h"
#include "compiler_core/frontends/darknet/net_plan.h"

namespace npuc::darknet {

using frontend::Term;
using frontend::ValueRef;

// The .weights: floats behind a head of version and counters.
struct WeightsFile {
  const ByteSource* bytes = nullptr;
  int64_t begin = 0;             // of the floats, in bytes
  bool has_turned_rows = false;  // matrices of fully connected layers are [in,out]
};

struct ImportState : frontend::ImportState {
  using frontend::ImportState::ImportState;

  WeightsFile weights;
  Dialect dialect = Dialect::kOriginal;
  // States that go from frame to frame: their names and next values.
  std::vector<std::pair<std::string, ValueRef>> next_states;
};

// A layer as its type's `import` function sees it; PlanNet() found it sound.
class LayerImporter : public frontend::OperandNode {
 public:
  LayerImporter(ImportState* state, const Layer* layer, LayerOptions* options,
                std::vector<ValueRef> inputs)
      : OperandNode(state, {layer->name, layer->section->type}, std::move(inputs)),
        darknet_state_(*state),
        layer_(*layer),
        options_(*options) {}

  LayerOptions& options() { return options_; }
  const Size& in() const { return layer_.in; }
  const Size& out() const { return layer_.out; }
  int64_t batch() const { return shape(0)[0]; }
  Dialect dialect() const { return darknet_state_.dialect; }
  bool has_turned_rows() const { return darknet_state_.weights.has_turned_rows; }

  // The next floats of the layer in the .weights, as a constant LAYER/what of this shape.
  absl::StatusOr<ValueRef> Weights(absl::string_view what, Shape shape);
  // The operand as [batch, values], and a value as `out` has it.
  absl::StatusOr<ValueRef> Row(const ValueRef& value);
  absl::StatusOr<ValueRef> AsOut(const ValueRef& value) {
    return Reshaped(value, out().Dims(batch()));
  }

  // A state of the layer, which is an input of the net, LAYER_what [batch, size], and its value for
  // the next frame, the output LAYER_what_out.
  ValueRef State(absl::string_view what, int64_t size);
  void SetState(absl::string_view what, ValueRef next);

  // x through an activation of Darknet's; `channels` is the axis of x that has them.
  absl::StatusOr<ValueRef> Activated(const ValueRef& x, absl::string_view activation,
                                     int64_t channels);

 private:
  ImportState& darknet_state_;
  const Layer& layer_;
  LayerOptions& options_;
  int64_t taken_ = 0;  // floats of the layer's weights
};

// Reads the activation of a section; reports one that is none.
std::string ReadActivation(LayerOptions& options, absl::string_view fallback);

enum class LayerRole : uint8_t {
  kComputes,
  kDecodesBoxes,  // the net is cut in front of it
  kEndsTraining,  // a loss, which gives nothing
};

// A section of a .cfg: its size, and the graph that it becomes.
struct LayerType {
  absl::string_view op;  // the section's name
  void (*plan)(LayerPlanner& planner);
  absl::Status (*import)(LayerImporter& node);  // null where it does not compute
  LayerRole role = LayerRole::kComputes;
  bool has_two_orders = false;  // the two programs store its weights in different orders
};

// The layer types of each family, in import_<family>.cc.
absl::Span<const LayerType> WeightTypes();
absl::Span<const LayerType> WindowTypes();
absl::Span<const LayerType> JoinTypes();
absl::Span<const LayerType> ElementTypes();
absl::Span<const LayerType> RecurrentTypes();
absl::Span<const LayerType> EndTypes();
frontend::RuleTable<LayerType> AllLayerTypes();

// The parameters of a batch normalisation.
struct Norm {
  ValueRef scales;
  ValueRef biases;
  ValueRef mean;
  ValueRef variance;
};

// A fully connected layer, or one inside of a layer: x [batch,in] -> [batch,out].
struct Connected {
  absl::string_view name;
  int64_t in = 0;
  int64_t out = 0;
  bool batch_normalize = false;
  std::string activation = "linear";
};
struct ConnectedWeights {
  ValueRef weight;  // [in,out]
  Norm norm;        // its biases alone without batch_normalize
};
absl::StatusOr<ConnectedWeights> TakeConnected(LayerImporter& node, const Connected& connected);
absl::StatusOr<ValueRef> ApplyConnected(LayerImporter& node, const ValueRef& x,
                                        const Connected& connected,
                                        const ConnectedWeights& weights);

}  // namespace npuc::darknet

#endif  // NPUC_COMPILER_CORE_FRONTENDS_DARKNET_LAYER_IMPORT_H_
