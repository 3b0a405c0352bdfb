#ifndef NPUC_COMPILER_CORE_PASSES_REWRITER_H_
#define NPUC_COMPILER_CORE_PASSES_REWRITER_H_

#include <string>
#include <vector>

#include "compiler_core/ir/graph/graph.h"

namespace npuc {

// Builds a pass's new graph from its old one, node by node in order, keeping for every old value
// the new one that stands for it. The old graph must outlive it. Not thread-safe.
class Rewriter {
 public:
  explicit Rewriter(const Graph& old);

  const Graph& old() const { return old_; }
  Graph& graph() { return graph_; }

  // The new value of an old one. CHECKs that it has one.
  ValueId Map(ValueId old_value) const;
  // The node with operands of the new graph, not yet added to it.
  Node Mapped(const Node& old_node) const;
  // Adds the node to the new graph in place of old_node, with old_node's result types.
  void Append(const Node& old_node, Node node);
  void Copy(const Node& old_node) { Append(old_node, Mapped(old_node)); }
  // From here on `value` stands for the old value. A node without a name takes the old one's.
  void Replace(ValueId old_value, ValueId value);

  // The new graph, with the old one's name and outputs. Every output must have been mapped.
  Graph Finish();

 private:
  const Graph& old_;
  Graph graph_;
  std::vector<ValueId> map_;  // by old value id
};

// Whether both graphs have the same nodes, types and outputs. Linear; constants that share their
// bytes are not read.
bool SameGraph(const Graph& a, const Graph& b);

// Name and type for a node that a rewrite adds beside the one that keeps the name.
NodeSource DerivedSource(const NodeSource& source, absl::string_view suffix);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PASSES_REWRITER_H_
