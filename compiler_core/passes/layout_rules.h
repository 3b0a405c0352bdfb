#ifndef NPUC_COMPILER_CORE_PASSES_LAYOUT_RULES_H_
#define NPUC_COMPILER_CORE_PASSES_LAYOUT_RULES_H_

#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/passes/layout.h"

namespace npuc {

// What each operator says about layouts: which layouts of its results go with which of its
// operands, and how it is written for values stored so. An operator without a rule computes values
// in their natural layout alone. A new element-wise operator is a word in layout_rules.cc.

// The layouts of a node's operands and results, in this order; null where not known.
using NodeLayouts = std::vector<std::optional<Layout>>;

// A node of a verified graph with the types of its operands and results.
struct LayoutNode {
  const Graph& graph;
  const Node& node;
  bool sole_weight = false;  // MatMul: nothing else uses the constant that is operand 1

  size_t value_count() const { return node.inputs.size() + node.outputs.size(); }
  ValueId value(size_t i) const {
    return i < node.inputs.size() ? node.inputs[i] : node.outputs[i - node.inputs.size()];
  }
  const Shape& shape(size_t i) const { return graph.type(value(i)).shape; }
};

// Finds the layouts of all values, constants too, from those that are known; false where the
// operator cannot compute what is stored so, or too little is known.
bool CompleteLayouts(const LayoutNode& node, NodeLayouts& layouts);

// Where the rewritten nodes go. Operands are handed out in the shape that is asked for; it has as
// many elements as the operand.
class LayoutEmitter {
 public:
  virtual ~LayoutEmitter() = default;
  virtual Graph& graph() = 0;
  // Operand i stored by its layout, seen as `shape`.
  virtual ValueId Operand(size_t i, const Shape& shape) = 0;
  // The constant operand i with its own dimensions permuted as its layout says.
  virtual ValueId PermutedWeight(size_t i) = 0;
};

// Writes the node for values stored by the completed layouts; its results, each dense and in
// storage order, in whatever shape. The last node written has the old one's name.
std::vector<ValueId> EmitRelaid(const LayoutNode& node, const NodeLayouts& layouts,
                                LayoutEmitter& emitter);

// Elements that the node itself transposes where its operands are natural: a product that reads
// its first operand transposed moves it first.
int64_t HiddenTransposeElements(const Graph& graph, const Node& node);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PASSES_LAYOUT_RULES_H_
