#ifndef NPUC_COMPILER_CORE_PASSES_REWRITER_H_
#define NPUC_COMPILER_CORE_PASSES_REWRITER_H_

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "absl/strings/string_view.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc {

// Builds a pass's new graph from its old one, node by node in order, keeping for every old value
// the new one that stands for it. It takes the old graph apart as it goes, so that what stays the
// same is moved, not copied. Not thread-safe.
class Rewriter {
 public:
  explicit Rewriter(Graph old);

  const Graph& old() const { return old_; }
  Graph& graph() { return graph_; }

  // The new value of an old one. CHECKs that it has one.
  ValueId Map(ValueId old_value) const;
  // The old node `index`, moved out, with operands of the new graph; its outputs are still the old
  // values. Once a node; Append or Replace must follow for every output.
  Node Take(int index);
  // The recorded type of an old value that was not appended yet.
  const TensorType& type(ValueId old_value) const { return old_.type(old_value); }
  // Adds a taken node, changed or not, to the new graph; its results have the old ones' types.
  void Append(Node node);
  // From here on `value` stands for the only result of a taken node. Where value's node has no
  // name, it takes this node's.
  void Replace(const Node& node, ValueId value);
  // From here on `value` stands for the old value.
  void Set(ValueId old_value, ValueId value);

  // The new graph, with the old one's name and outputs. Every output must have been mapped.
  Graph Finish();

 private:
  Graph old_;
  Graph graph_;
  std::vector<ValueId> map_;  // by old value id
};

// Whether a node of the graph is of one of the operators. A pass without it has nothing to do.
bool HasOp(const Graph& graph, std::initializer_list<Op> ops);

// Whether both graphs have the same nodes, types and outputs. Linear; constants that share their
// bytes are not read.
bool SameGraph(const Graph& a, const Graph& b);

// A number that differs, but for a chance of 2^-64, where SameGraph of graphs that share their
// constants would tell them apart. Good within one process only.
uint64_t Fingerprint(const Graph& graph);

// Name and type for a node that a rewrite adds beside the one that keeps the name.
NodeSource DerivedSource(const NodeSource& source, absl::string_view suffix);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PASSES_REWRITER_H_
