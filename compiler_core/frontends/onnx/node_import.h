#ifndef NPUC_COMPILER_CORE_FRONTENDS_ONNX_NODE_IMPORT_H_
#define NPUC_COMPILER_CORE_FRONTENDS_ONNX_NODE_IMPORT_H_

#include <optional>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/frontends/common/attribute_node.h"
#include "compiler_core/frontends/common/term.h"
#include "compiler_core/frontends/onnx/graph_view.h"
#include "compiler_core/frontends/onnx/integer_products.h"
#include "compiler_core/frontends/onnx/node_view.h"
#include "compiler_core/frontends/onnx/tensor_proto.h"

namespace npuc::onnx {

using frontend::ImportValue;
using frontend::kMaxConstantBytes;
using frontend::kMaxFoldWork;
using frontend::Term;
using frontend::ValueRef;

// What all nodes of one import share.
struct ImportState : frontend::ImportState {
  using frontend::ImportState::ImportState;

  int64_t opset = 0;
  ExternalFile external = {};
  // Data outside of the model file is reported once: one line of the config mends all of it.
  bool has_reported_external = false;
  IntegerProducts products = {};
};
inline constexpr char kExternalFix[] =
    "name that file in the config, as in MODEL_BIN: model.onnx.data, or save the model in one file "
    "(save_as_external_data=False)";

// What the rule of an ONNX operator sees of its node beside what all front ends share.
class NodeImporter : public frontend::AttributeNode<NodeView> {
 public:
  // `graph`: which the node is in, where its rule may ask what the graph states of its tensors.
  NodeImporter(ImportState* state, const NodeView* node, std::vector<ValueRef> inputs,
               const GraphView* graph = nullptr)
      : AttributeNode(state, node, std::move(inputs)),
        onnx_state_(state),
        graph_(graph),
        op_(this->node().op()),
        opset_(state->opset) {}

  // The same node on other operands, read as one of ONNX's own operators. Its results are apart.
  // op: of a rule's table, which outlives the importer.
  NodeImporter As(absl::string_view op, std::vector<ValueRef> inputs, int64_t opset) {
    NodeImporter importer(onnx_state_, &node(), std::move(inputs), graph_);
    importer.op_ = op;
    importer.opset_ = opset;
    importer.skipped_ = skipped_;
    return importer;
  }

  absl::string_view op() const { return op_; }
  // The operator set whose text holds for this node.
  int64_t opset() const { return opset_; }
  IntegerProducts& products() { return onnx_state_->products; }
  // ONNX's number of operand i's type, as far as the graph states it, else 0. Values know one type
  // of floats alone.
  int StatedType(int i) const {
    return graph_ == nullptr ? 0 : graph_->DataTypeOf(node().input(i));
  }
  const ExternalFile& external() const { return onnx_state_->external; }
  // Whether someone may use result i.
  bool WantsOutput(int i) const {
    return i < node().output_count() && !node().output(i).empty() && skipped_.count(i) == 0;
  }
  // Nothing that is imported reads result i.
  void SkipOutput(int i) { skipped_.insert(i); }

  // An integer list that was an attribute before an operator set and is operand i since then;
  // nullopt where it is not given.
  absl::StatusOr<std::optional<std::vector<int64_t>>> IntsAt(int i, absl::string_view name);

 private:
  ImportState* onnx_state_;
  const GraphView* graph_;
  absl::string_view op_;
  int64_t opset_;
  std::set<int> skipped_;
};

// The rule for one ONNX operator: sets the importer's outputs.
struct ImportRule {
  absl::string_view op;
  absl::Status (*import)(NodeImporter& node);
  bool takes_sequences = false;
};

// True: a sequence of tensors, which has no type and no place in the graph.
bool IsSequence(const ValueRef& value);

// Runs the rule of one of ONNX's own operators of convolutions, products, pooling and activations
// on other operands, under this node's name and attributes, by the text of an operator set (the
// model's where none is given). Returns its first result.
absl::StatusOr<ValueRef> RunRule(NodeImporter& node, absl::string_view op,
                                 std::vector<ValueRef> operands,
                                 std::optional<int64_t> opset = std::nullopt);

// The rules of each family, in import_<family>.cc. Operators of another domain than ONNX's own are
// named DOMAIN.NAME.
absl::Span<const ImportRule> BasicRules();
absl::Span<const ImportRule> ElementwiseRules();
absl::Span<const ImportRule> ActivationRules();
absl::Span<const ImportRule> LinearRules();
absl::Span<const ImportRule> ConvRules();
absl::Span<const ImportRule> PoolRules();
absl::Span<const ImportRule> NormRules();
absl::Span<const ImportRule> ShapeRules();
absl::Span<const ImportRule> GatherRules();
absl::Span<const ImportRule> ReduceRules();
absl::Span<const ImportRule> ResizeRules();
absl::Span<const ImportRule> RecurrentRules();
absl::Span<const ImportRule> LossRules();
absl::Span<const ImportRule> QuantizedRules();
absl::Span<const ImportRule> MicrosoftRules();
absl::Span<const ImportRule> QonnxRules();
absl::Span<const ImportRule> SignalRules();
absl::Span<const ImportRule> SequenceRules();

}  // namespace npuc::onnx

#endif  // NPUC_COMPILER_CORE_FRONTENDS_ONNX_NODE_IMPORT_H_
