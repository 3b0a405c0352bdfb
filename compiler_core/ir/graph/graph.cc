#include "compiler_core/ir/graph/graph.h"

#include <algorithm>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"

namespace npuc {
namespace {

constexpr absl::string_view kAttrKinds[] = {"a bool",   "an integer",         "a float",
                                            "a string", "a list of integers", "a list of floats",
                                            "a tensor"};

template <typename T>
absl::StatusOr<T> GetAttr(const Node& node, absl::string_view name, size_t kind) {
  const auto it = node.attrs.find(name);
  if (it == node.attrs.end()) {
    return absl::InvalidArgumentError(absl::StrCat("attribute '", name, "' is missing"));
  }
  const T* value = std::get_if<T>(&it->second);
  if (value == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("attribute '", name, "' must be ",
                                                   kAttrKinds[kind], ", is ",
                                                   kAttrKinds[it->second.index()]));
  }
  return *value;
}

template <typename T>
T GetAttrOr(const Node& node, absl::string_view name, T fallback) {
  const auto it = node.attrs.find(name);
  if (it == node.attrs.end()) return fallback;
  const T* value = std::get_if<T>(&it->second);
  return value == nullptr ? fallback : *value;
}

bool IsIdentifier(absl::string_view text) {
  if (text.empty() || !(absl::ascii_isalpha(text[0]) || text[0] == '_')) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
  });
}

absl::Status NodeError(const Graph& graph, int index, absl::string_view what) {
  const Node& node = graph.nodes()[index];
  return absl::InternalError(absl::StrCat("node ", index, " '", Printable(node.source.name), "' (",
                                          NameOf(node.op), "): ", what));
}

absl::Status VerifyTensor(const Tensor& tensor, bool* bool_bytes_ok) {
  if (tensor.dtype() == DType::kInvalid) return absl::InternalError("tensor without a type");
  RETURN_IF_ERROR(CheckShape(tensor.shape()));
  *bool_bytes_ok = true;
  if (tensor.dtype() == DType::kBool) {
    for (const uint8_t byte : tensor.bytes()) *bool_bytes_ok &= byte <= 1;
  }
  return absl::OkStatus();
}

absl::Status VerifyAttrs(const Graph& graph, int index) {
  for (const auto& [name, value] : graph.nodes()[index].attrs) {
    if (!IsIdentifier(name)) {
      return NodeError(graph, index, absl::StrCat("bad attribute name '", Printable(name), "'"));
    }
    const Tensor* tensor = std::get_if<Tensor>(&value);
    if (tensor == nullptr) continue;
    bool bool_bytes_ok = true;
    const absl::Status status = VerifyTensor(*tensor, &bool_bytes_ok);
    if (!status.ok()) {
      return NodeError(graph, index, absl::StrCat("attribute '", name, "': ", status.message()));
    }
    if (!bool_bytes_ok) {
      return NodeError(graph, index, absl::StrCat("attribute '", name, "': bool not 0 or 1"));
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyNode(const Graph& graph, int index, int first_value) {
  const Node& node = graph.nodes()[index];
  for (const ValueId input : node.inputs) {
    if (!input.valid() || input.value() >= first_value) {
      return NodeError(graph, index,
                       absl::StrCat("operand %", input.value(), " does not come before the node"));
    }
  }
  if (node.outputs.empty()) return NodeError(graph, index, "a node needs an output");
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const ValueId id = node.outputs[i];
    if (id != ValueId(first_value + static_cast<int>(i)) || id.value() >= graph.value_count()) {
      return NodeError(graph, index, absl::StrCat("output ", i, " is not the next value"));
    }
    const Value& value = graph.value(id);
    if (value.def != NodeId(index) || value.index != static_cast<int>(i)) {
      return NodeError(graph, index, absl::StrCat("output ", i, " names another node"));
    }
    if (value.type.dtype == DType::kInvalid) {
      return NodeError(graph, index, absl::StrCat("output ", i, " has no element type"));
    }
    const absl::Status status = CheckShape(value.type.shape);
    if (!status.ok()) {
      return NodeError(graph, index, absl::StrCat("output ", i, ": ", status.message()));
    }
  }
  if (node.op == Op::kConst) {
    const Tensor* tensor = graph.ConstantOf(node.outputs[0]);
    if (tensor == nullptr || node.outputs.size() != 1 ||
        tensor->type() != graph.type(node.outputs[0])) {
      return NodeError(graph, index, "Const must carry one tensor 'value' of its own type");
    }
  }
  return VerifyAttrs(graph, index);
}

}  // namespace

std::string OpNameOf(const Node& node) {
  return node.source.op.empty() ? std::string(NameOf(node.op)) : node.source.op;
}

NodeId Graph::AddNode(Op op, std::vector<ValueId> inputs, AttrMap attrs,
                      std::vector<TensorType> output_types, NodeSource source) {
  for (const ValueId input : inputs) {
    NPUC_CHECK(input.valid() && input.value() < value_count());
  }
  const NodeId id(node_count());
  Node node{op, std::move(inputs), {}, std::move(attrs), std::move(source)};
  node.outputs.reserve(output_types.size());
  for (size_t i = 0; i < output_types.size(); ++i) {
    node.outputs.push_back(ValueId(value_count()));
    values_.push_back({id, static_cast<int>(i), std::move(output_types[i])});
  }
  if (node.op == Op::kPlaceholder) {
    inputs_.insert(inputs_.end(), node.outputs.begin(), node.outputs.end());
  }
  nodes_.push_back(std::move(node));
  return id;
}

ValueId Graph::AddValue(Op op, std::vector<ValueId> inputs, AttrMap attrs, TensorType type,
                        NodeSource source) {
  std::vector<TensorType> types;
  types.push_back(std::move(type));
  const NodeId id =
      AddNode(op, std::move(inputs), std::move(attrs), std::move(types), std::move(source));
  return node(id).outputs[0];
}

ValueId Graph::AddConst(Tensor value, NodeSource source) {
  TensorType type = value.type();
  AttrMap attrs;
  attrs.emplace("value", std::move(value));
  return AddValue(Op::kConst, {}, std::move(attrs), std::move(type), std::move(source));
}

ValueId Graph::AddInput(std::string name, TensorType type) {
  return AddValue(Op::kPlaceholder, {}, {}, std::move(type), {std::move(name), "Placeholder"});
}

void Graph::AddOutput(GraphOutput output) {
  NPUC_CHECK(output.value.valid() && output.value.value() < value_count());
  outputs_.push_back(std::move(output));
}

void Graph::set_source(NodeId id, NodeSource source) {
  NPUC_CHECK(id.valid() && id.value() < node_count());
  nodes_[id.value()].source = std::move(source);
}

void Graph::Reserve(int node_count, int value_count) {
  nodes_.reserve(node_count);
  values_.reserve(value_count);
}

Node Graph::TakeNode(NodeId id) {
  NPUC_CHECK(id.valid() && id.value() < node_count());
  Node& node = nodes_[id.value()];
  return {node.op, std::move(node.inputs), node.outputs, std::move(node.attrs),
          std::move(node.source)};
}

TensorType Graph::TakeType(ValueId id) {
  NPUC_CHECK(id.valid() && id.value() < value_count());
  return std::move(values_[id.value()].type);
}

Node& Graph::mutable_node(NodeId id) {
  NPUC_CHECK(id.valid() && id.value() < node_count());
  return nodes_[id.value()];
}

const Node& Graph::node(NodeId id) const {
  NPUC_CHECK(id.valid() && id.value() < node_count());
  return nodes_[id.value()];
}

const Value& Graph::value(ValueId id) const {
  NPUC_CHECK(id.valid() && id.value() < value_count());
  return values_[id.value()];
}

const Tensor* Graph::ConstantOf(ValueId id) const {
  const Node& producer = def(id);
  if (producer.op != Op::kConst) return nullptr;
  const auto it = producer.attrs.find("value");
  return it == producer.attrs.end() ? nullptr : std::get_if<Tensor>(&it->second);
}

std::vector<int> Graph::UseCounts() const {
  std::vector<int> counts(values_.size());
  for (const Node& node : nodes_) {
    for (const ValueId input : node.inputs) ++counts[input.value()];
  }
  for (const GraphOutput& output : outputs_) ++counts[output.value.value()];
  return counts;
}

absl::StatusOr<int64_t> IntAttr(const Node& node, absl::string_view name) {
  return GetAttr<int64_t>(node, name, 1);
}

absl::StatusOr<double> FloatAttr(const Node& node, absl::string_view name) {
  return GetAttr<double>(node, name, 2);
}

absl::StatusOr<std::vector<int64_t>> IntsAttr(const Node& node, absl::string_view name) {
  return GetAttr<std::vector<int64_t>>(node, name, 4);
}

absl::StatusOr<std::string> StringAttr(const Node& node, absl::string_view name) {
  return GetAttr<std::string>(node, name, 3);
}

bool BoolAttrOr(const Node& node, absl::string_view name, bool fallback) {
  return GetAttrOr(node, name, fallback);
}

int64_t IntAttrOr(const Node& node, absl::string_view name, int64_t fallback) {
  return GetAttrOr(node, name, fallback);
}

double FloatAttrOr(const Node& node, absl::string_view name, double fallback) {
  return GetAttrOr(node, name, fallback);
}

absl::Status VerifyStructure(const Graph& graph) {
  int next_value = 0;
  for (int i = 0; i < graph.node_count(); ++i) {
    RETURN_IF_ERROR(VerifyNode(graph, i, next_value));
    next_value += static_cast<int>(graph.nodes()[i].outputs.size());
  }
  if (next_value != graph.value_count()) {
    return absl::InternalError(absl::StrCat("the graph has ", graph.value_count(),
                                            " values, its nodes define ", next_value));
  }
  for (const GraphOutput& output : graph.outputs()) {
    if (!output.value.valid() || output.value.value() >= graph.value_count()) {
      return absl::InternalError(
          absl::StrCat("output '", Printable(output.name), "' names no value of the graph"));
    }
  }
  return absl::OkStatus();
}

}  // namespace npuc
