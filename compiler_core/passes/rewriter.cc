#include "compiler_core/passes/rewriter.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"

namespace npuc {

Rewriter::Rewriter(Graph old) : old_(std::move(old)), map_(old_.value_count()) {
  graph_.set_name(old_.name());
  graph_.Reserve(old_.node_count(), old_.value_count());
}

ValueId Rewriter::Map(ValueId old_value) const {
  const ValueId value = map_[old_value.value()];
  NPUC_CHECK(value.valid());
  return value;
}

Node Rewriter::Take(int index) {
  Node node = old_.TakeNode(NodeId(index));
  for (ValueId& input : node.inputs) input = Map(input);
  return node;
}

void Rewriter::Append(Node node) {
  std::vector<TensorType> types;
  types.reserve(node.outputs.size());
  for (const ValueId output : node.outputs) types.push_back(old_.TakeType(output));
  const NodeId id = graph_.AddNode(node.op, std::move(node.inputs), std::move(node.attrs),
                                   std::move(types), std::move(node.source));
  const std::vector<ValueId>& outputs = graph_.node(id).outputs;
  for (size_t i = 0; i < outputs.size(); ++i) Set(node.outputs[i], outputs[i]);
}

void Rewriter::Replace(const Node& node, ValueId value) {
  NPUC_CHECK(node.outputs.size() == 1);
  Set(node.outputs[0], value);
  if (graph_.def(value).source.name.empty() && !node.source.name.empty()) {
    graph_.set_source(graph_.value(value).def, node.source);
  }
}

void Rewriter::Set(ValueId old_value, ValueId value) { map_[old_value.value()] = value; }

Graph Rewriter::Finish() {
  for (const GraphOutput& output : old_.outputs()) {
    graph_.AddOutput({output.name, Map(output.value), output.fp16});
  }
  return std::move(graph_);
}

bool HasOp(const Graph& graph, std::initializer_list<Op> ops) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const Node& node) {
    return std::find(ops.begin(), ops.end(), node.op) != ops.end();
  });
}

bool SameGraph(const Graph& a, const Graph& b) {
  if (a.node_count() != b.node_count() || a.value_count() != b.value_count() ||
      a.outputs().size() != b.outputs().size()) {
    return false;
  }
  for (int i = 0; i < a.node_count(); ++i) {
    const Node& x = a.nodes()[i];
    const Node& y = b.nodes()[i];
    if (x.op != y.op || x.inputs != y.inputs || x.outputs != y.outputs || x.attrs != y.attrs ||
        x.source.name != y.source.name) {
      return false;
    }
  }
  for (int i = 0; i < a.value_count(); ++i) {
    if (a.type(ValueId(i)) != b.type(ValueId(i))) return false;
  }
  for (size_t i = 0; i < a.outputs().size(); ++i) {
    if (a.outputs()[i].value != b.outputs()[i].value) return false;
  }
  return true;
}

namespace {

struct RewriteHasher {
  size_t operator()(const Tensor& tensor) const {
    return absl::HashOf(tensor.dtype(), tensor.shape(), tensor.bytes().data());
  }
  template <typename T>
  size_t operator()(const T& value) const {
    return absl::HashOf(value);
  }
};

}  // namespace

uint64_t Fingerprint(const Graph& graph) {
  uint64_t state = absl::HashOf(graph.node_count(), graph.value_count());
  for (const Node& node : graph.nodes()) {
    state = absl::HashOf(state, node.op, node.inputs, node.outputs, node.source.name);
    for (const auto& [name, value] : node.attrs) {
      state = absl::HashOf(state, name, value.index(), std::visit(RewriteHasher(), value));
    }
    for (const ValueId output : node.outputs) {
      state = absl::HashOf(state, graph.type(output).dtype, graph.type(output).shape);
    }
  }
  for (const GraphOutput& output : graph.outputs()) state = absl::HashOf(state, output.value);
  return state;
}

NodeSource DerivedSource(const NodeSource& source, absl::string_view suffix) {
  if (source.name.empty()) return {};
  return {absl::StrCat(source.name, "/", suffix), ""};
}

}  // namespace npuc
