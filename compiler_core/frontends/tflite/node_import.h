#ifndef NPUC_COMPILER_CORE_FRONTENDS_TFLITE_NODE_IMPORT_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TFLITE_NODE_IMPORT_H_

#include <map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/frontends/common/operand_node.h"
#include "compiler_core/frontends/common/term.h"
#include "compiler_core/frontends/tflite/model_file.h"

namespace npuc::tflite {

using frontend::ImportState;
using frontend::Term;
using frontend::ValueRef;

class Variables;  // variables.h

// Weights that products take transposed, by the value that they were made of, which stays alive.
using TransposedWeights = std::map<ValueRef, ValueRef>;

// Where in the file a node stands; all of it outlives the node.
struct NodePlace {
  const SubgraphView* graph;
  const OperatorView* op;
  TransposedWeights* transposed;
  Variables* variables;  // null inside of loops and branches
};

// True where operators read a tensor as the shape of their result alone, and the file states those
// shapes: then its value does not matter.
bool IsStatedShape(const SubgraphView& graph, int tensor);

// What the rule of a TFLite operator sees of its node beside what all front ends share. A quantized
// tensor is a float operand here; results are quantized where the file says so, behind the rule.
class NodeImporter : public frontend::OperandNode {
 public:
  NodeImporter(ImportState* state, const NodePlace& place, NodeSource source,
               std::vector<ValueRef> inputs)
      : OperandNode(state, std::move(source), std::move(inputs)), place_(place) {}

  absl::string_view op() const { return place_.op->op; }
  const fe::tflite::Operator& raw() const { return *place_.op->raw; }
  int output_count() const { return static_cast<int>(place_.op->outputs.size()); }
  // What the file states of result i.
  const TensorView& output(int i) const {
    return place_.graph->tensor(place_.op->outputs[static_cast<size_t>(i)]);
  }
  // What the file states of operand i, which is there.
  const TensorView& operand(int i) const {
    return place_.graph->tensor(place_.op->inputs[static_cast<size_t>(i)]);
  }
  // The states that operators keep, or a report that none live inside of a loop.
  absl::StatusOr<Variables*> States();
  int operand_number(int i) const { return place_.op->inputs[static_cast<size_t>(i)]; }
  // Whether the operand's value is known now, as itself or as stored integers.
  bool IsKnown(int i) const { return frontend::IsKnown(input(i)); }

  // Operand i as the shape of the result; where it is not known, the one that the file states.
  absl::StatusOr<Shape> ResultShape(int i);

  // The options table of an operator that cannot do without, or a report that it is missing.
  template <typename T>
  absl::StatusOr<const T*> Required(const T* options) {
    if (options != nullptr) return options;
    return Fail(DiagnosticKind::kBadAttribute, "its options are missing or of another operator",
                "convert the model again");
  }
  // A known matrix [out, in] as [in, out]; steps of a loop share the result.
  absl::StatusOr<ValueRef> TransposedWeight(const ValueRef& weight);
  // Applies a fused activation, by the format's number. Refuses TANH, which TensorFlow Lite's
  // kernels ignore.
  absl::StatusOr<ValueRef> Activated(ValueRef value, int activation);
  absl::Status SetActivated(absl::StatusOr<ValueRef> value, int activation);
  // Applies the fused activation of a recurrent operator. Its kernels compute TANH.
  absl::StatusOr<ValueRef> ActivatedState(ValueRef value, int activation);

 private:
  NodePlace place_;
};

// The rule for one TFLite operator: sets the importer's outputs.
struct ImportRule {
  absl::string_view op;
  absl::Status (*import)(NodeImporter& node);
};

// The rules of each family, in import_<family>.cc.
absl::Span<const ImportRule> ElementwiseRules();
absl::Span<const ImportRule> WindowRules();
absl::Span<const ImportRule> LinearRules();
absl::Span<const ImportRule> ReduceRules();
absl::Span<const ImportRule> ShapeRules();
absl::Span<const ImportRule> SliceRules();
absl::Span<const ImportRule> RecurrentRules();
absl::Span<const ImportRule> SpectrumRules();
// True for what makes real numbers of complex ones.
bool TakesComplex(absl::string_view op);
// Gives complex numbers another shape: the one that the file states of the result.
bool ReshapesComplex(absl::string_view op);
absl::Status ReshapeComplex(NodeImporter& node);
absl::Span<const ImportRule> TensorListRules();
absl::Span<const ImportRule> CustomWindowRules();

}  // namespace npuc::tflite

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TFLITE_NODE_IMPORT_H_
