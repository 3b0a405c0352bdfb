#ifndef NPUC_COMPILER_CORE_IR_GRAPH_GRAPH_H_
#define NPUC_COMPILER_CORE_IR_GRAPH_GRAPH_H_

#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/ir/graph/op_kind.h"
#include "compiler_core/ir/graph/types.h"

namespace npuc {

// The value of a node's attribute. Axes, shapes and permutations are int lists; they are never
// inputs: front ends evaluate them while they import.
using Attr = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>,
                          std::vector<double>, Tensor>;
using AttrMap = std::map<std::string, Attr, std::less<>>;  // ordered: printing is deterministic

// Where a node came from, for diagnostics, headers and templates.
struct NodeSource {
  std::string name;  // the framework's node name; of a fused node the name that users know it by
  std::string op;    // the framework's operator type, e.g. "AddV2"; "" for nodes made here
};

struct Node {
  Op op = {};
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  AttrMap attrs;
  NodeSource source;
};

// The operator as users know it: the framework's, or of a node made here the IR's.
std::string OpNameOf(const Node& node);

struct Value {
  NodeId def;
  int index = 0;  // which output of def
  TensorType type;
};

// A named result of the graph. fp16: left as fp16 in the artifact (FP16_OUT_OPS).
struct GraphOutput {
  std::string name;  // as in OUTPUT_OPS
  ValueId value;
  bool fp16 = false;
};

// A data-flow graph in SSA form. Nodes are appended, and each uses only values that exist, so
// node order is always a topological order; passes build a new graph from an old one. Copyable
// (constants are shared). Not thread-safe for writing.
class Graph {
 public:
  // Appends a node; its output values get the given types. Operand ids must exist (CHECKed).
  NodeId AddNode(Op op, std::vector<ValueId> inputs, AttrMap attrs,
                 std::vector<TensorType> output_types, NodeSource source);
  // The single output of a new node.
  ValueId AddValue(Op op, std::vector<ValueId> inputs, AttrMap attrs, TensorType type,
                   NodeSource source);
  ValueId AddConst(Tensor value, NodeSource source);
  // A model input; Placeholder nodes in order of addition are the graph's inputs.
  ValueId AddInput(std::string name, TensorType type);
  void AddOutput(GraphOutput output);
  void set_source(NodeId id, NodeSource source);
  void Reserve(int node_count, int value_count);
  // For a pass that consumes its graph: the node or type, moved out. What stays behind is valid but
  // unspecified, but for a node's outputs and a value's node, which stay.
  Node TakeNode(NodeId id);
  TensorType TakeType(ValueId id);
  // For a pass that changes nodes where they are: operands must still come earlier, and results
  // stay.
  Node& mutable_node(NodeId id);

  int node_count() const { return static_cast<int>(nodes_.size()); }
  int value_count() const { return static_cast<int>(values_.size()); }
  const Node& node(NodeId id) const;
  const Value& value(ValueId id) const;
  const TensorType& type(ValueId id) const { return value(id).type; }
  const Node& def(ValueId id) const { return node(value(id).def); }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<ValueId>& inputs() const { return inputs_; }
  const std::vector<GraphOutput>& outputs() const { return outputs_; }
  // The constant that defines a value, or null.
  const Tensor* ConstantOf(ValueId id) const;
  // How many node operands and graph outputs use each value, by value id.
  std::vector<int> UseCounts() const;

  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }

 private:
  std::string name_;
  std::vector<Node> nodes_;
  std::vector<Value> values_;
  std::vector<ValueId> inputs_;
  std::vector<GraphOutput> outputs_;
};

// Attribute access for operators: INVALID_ARGUMENT naming the attribute where absent or of another
// kind. The With-default forms are for attributes that may be left out.
absl::StatusOr<int64_t> IntAttr(const Node& node, absl::string_view name);
absl::StatusOr<double> FloatAttr(const Node& node, absl::string_view name);
absl::StatusOr<std::vector<int64_t>> IntsAttr(const Node& node, absl::string_view name);
absl::StatusOr<std::string> StringAttr(const Node& node, absl::string_view name);
bool BoolAttrOr(const Node& node, absl::string_view name, bool fallback);
int64_t IntAttrOr(const Node& node, absl::string_view name, int64_t fallback);
double FloatAttrOr(const Node& node, absl::string_view name, double fallback);

// Structure alone: operand ids exist and come earlier, outputs exist, types well formed, Const
// carries a tensor of its own type. Operator rules are ops/verify.h's. INTERNAL names the node.
absl::Status VerifyStructure(const Graph& graph);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_IR_GRAPH_GRAPH_H_
