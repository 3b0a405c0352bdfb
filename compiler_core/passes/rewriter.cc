#include "compiler_core/passes/rewriter.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"

namespace npuc {

Rewriter::Rewriter(const Graph& old) : old_(old), map_(old.value_count()) {
  graph_.set_name(old.name());
}

ValueId Rewriter::Map(ValueId old_value) const {
  const ValueId value = map_[old_value.value()];
  NPUC_CHECK(value.valid());
  return value;
}

Node Rewriter::Mapped(const Node& old_node) const {
  Node node{old_node.op, {}, {}, old_node.attrs, old_node.source};
  node.inputs.reserve(old_node.inputs.size());
  for (const ValueId input : old_node.inputs) node.inputs.push_back(Map(input));
  return node;
}

void Rewriter::Append(const Node& old_node, Node node) {
  std::vector<TensorType> types;
  types.reserve(old_node.outputs.size());
  for (const ValueId output : old_node.outputs) types.push_back(old_.type(output));
  const NodeId id = graph_.AddNode(std::move(node.op), std::move(node.inputs),
                                   std::move(node.attrs), std::move(types), std::move(node.source));
  const std::vector<ValueId>& outputs = graph_.node(id).outputs;
  for (size_t i = 0; i < outputs.size(); ++i) map_[old_node.outputs[i].value()] = outputs[i];
}

void Rewriter::Replace(ValueId old_value, ValueId value) {
  map_[old_value.value()] = value;
  const NodeSource& source = old_.def(old_value).source;
  if (graph_.def(value).source.name.empty() && !source.name.empty()) {
    graph_.set_source(graph_.value(value).def, source);
  }
}

Graph Rewriter::Finish() {
  for (const GraphOutput& output : old_.outputs()) {
    graph_.AddOutput({output.name, Map(output.value), output.fp16});
  }
  return std::move(graph_);
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

NodeSource DerivedSource(const NodeSource& source, absl::string_view suffix) {
  if (source.name.empty()) return {};
  return {absl::StrCat(source.name, "/", suffix), ""};
}

}  // namespace npuc
