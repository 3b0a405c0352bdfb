#include "compiler_core/ops/layers.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace npuc {
namespace {

using Names = std::pair<absl::string_view, absl::string_view>;

// Operators whose layer type has another name than they have.
constexpr std::array kTypeNames = {
    Names{"Placeholder", "Input"},  Names{"Conv2D", "Convolution"},
    Names{"AvgPool", "Pooling"},    Names{"DepthwiseConv2D", "DepthwiseConv"},
    Names{"MaxPool", "Pooling"},    Names{"Add", "Eltwise"},
    Names{"Sub", "Eltwise"},        Names{"Mul", "Eltwise"},
    Names{"Maximum", "Eltwise"},    Names{"Minimum", "Eltwise"},
    Names{"Relu", "Activation"},    Names{"Relu6", "Activation"},
    Names{"Sigmoid", "Activation"}, Names{"Tanh", "Activation"},
    Names{"Selu", "Activation"},    Names{"ReduceMean", "Reduce"},
    Names{"ReduceSum", "Reduce"},   Names{"ReduceMax", "Reduce"},
    Names{"Neg", "Negative"},
};

bool IsOneOf(absl::string_view op, std::initializer_list<absl::string_view> ops) {
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}

bool IsWeighted(absl::string_view op) {
  return IsOneOf(op, {"Conv2D", "DepthwiseConv2D", "MatMul"});
}

bool IsElementwise(absl::string_view op) {
  return IsOneOf(op, {"Add", "Sub", "Mul", "Div", "Maximum", "Minimum", "SquaredDifference"});
}

bool TakesActivation(absl::string_view op) {
  return IsWeighted(op) || IsOneOf(op, {"Add", "Sub", "Mul", "AvgPool", "MaxPool"});
}

class Grouper {
 public:
  Grouper(const Graph& graph, const std::set<ValueId>& borders)
      : graph_(graph), borders_(borders), uses_(graph.UseCounts()), layer_of_(graph.node_count()) {}

  std::vector<Layer> Run() {
    for (int i = 0; i < graph_.node_count(); ++i) {
      const NodeId id(i);
      const Node& node = graph_.node(id);
      if (node.op == "Const") continue;
      if (JoinAsBias(id, node) || JoinAsActivation(id, node)) continue;
      Start(id, node);
    }
    // A layer stands where its last node stood: what it reads is then computed before it.
    std::stable_sort(layers_.begin(), layers_.end(), [](const Layer& x, const Layer& y) {
      return x.nodes.back() < y.nodes.back();
    });
    NameLayers();
    return std::move(layers_);
  }

 private:
  bool IsConstant(ValueId value) const { return graph_.ConstantOf(value) != nullptr; }

  // The layer whose last node gives `value`, where a further node may join it; or null.
  Layer* LayerBefore(ValueId value) {
    if (IsConstant(value) || uses_[value.value()] != 1 || borders_.contains(value)) return nullptr;
    Layer& layer = layers_[layer_of_[graph_.value(value).def.value()]];
    const bool is_last = layer.outputs.size() == 1 && layer.outputs[0] == value;
    return is_last ? &layer : nullptr;
  }

  void Join(NodeId id, const Node& node, Layer& layer) {
    layer.nodes.push_back(id);
    layer.outputs = node.outputs;
    layer_of_[id.value()] = static_cast<size_t>(&layer - layers_.data());
  }

  // A constant that adds one number to each result channel, or one number to all.
  bool IsBias(ValueId constant, const TensorType& sums) const {
    const Tensor* tensor = graph_.ConstantOf(constant);
    if (tensor == nullptr || sums.shape.empty()) return false;
    const Shape& shape = tensor->shape();
    if (shape.size() > sums.shape.size()) return false;
    return tensor->element_count() == sums.shape.back() &&
           (shape.empty() || shape.back() == sums.shape.back());
  }

  bool JoinAsBias(NodeId id, const Node& node) {
    if (node.op != "Add") return false;
    for (const int sums : {0, 1}) {
      const ValueId bias = node.inputs[1 - sums];
      if (!IsBias(bias, graph_.type(node.inputs[sums]))) continue;
      Layer* layer = LayerBefore(node.inputs[sums]);
      if (layer == nullptr || layer->nodes.size() != 1 || layer->bias.valid() ||
          !layer->weight.valid() || !IsWeighted(graph_.node(layer->root).op)) {
        continue;
      }
      layer->bias = bias;
      Join(id, node, *layer);
      return true;
    }
    return false;
  }

  bool JoinAsActivation(NodeId id, const Node& node) {
    if (!IsOneOf(node.op, {"Relu", "Relu6"})) return false;
    Layer* layer = LayerBefore(node.inputs[0]);
    if (layer == nullptr || !TakesActivation(graph_.node(layer->root).op)) return false;
    if (IsOneOf(graph_.node(layer->nodes.back()).op, {"Relu", "Relu6"})) return false;
    Join(id, node, *layer);
    return true;
  }

  void Start(NodeId id, const Node& node) {
    Layer layer;
    layer.type = std::string(LayerTypeOf(graph_, node));
    layer.nodes = {id};
    layer.root = id;
    layer.outputs = node.outputs;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId input = node.inputs[i];
      if (!IsConstant(input)) {
        layer.inputs.push_back(input);
      } else if (IsWeighted(node.op) && i == 2) {
        layer.bias = input;
      } else if ((IsWeighted(node.op) && i == 1) || IsElementwise(node.op)) {
        layer.weight = input;
      }
    }
    layer_of_[id.value()] = layers_.size();
    layers_.push_back(std::move(layer));
  }

  void NameLayers() {
    std::set<std::string> taken;
    for (Layer& layer : layers_) {
      const std::string& source = graph_.node(layer.root).source.name;
      const std::string base = source.empty() ? layer.type : source;
      int& count = counts_[base];
      do {
        ++count;
        layer.name = count == 1 ? base : absl::StrCat(base, "_", count);
      } while (!taken.insert(layer.name).second);
    }
  }

  const Graph& graph_;
  const std::set<ValueId>& borders_;
  const std::vector<int> uses_;
  std::vector<size_t> layer_of_;  // by node id
  std::vector<Layer> layers_;
  std::map<std::string, int> counts_;
};

}  // namespace

std::vector<Layer> GroupLayers(const Graph& graph, const std::set<ValueId>& borders) {
  return Grouper(graph, borders).Run();
}

absl::string_view LayerTypeOf(const Graph& graph, const Node& node) {
  if (node.op == "MatMul") {
    return graph.ConstantOf(node.inputs[1]) == nullptr ? "MatMul" : "FullyConnected";
  }
  const auto* const found =
      std::find_if(kTypeNames.begin(), kTypeNames.end(),
                   [&](const Names& names) { return names.first == node.op; });
  return found == kTypeNames.end() ? absl::string_view(node.op) : found->second;
}

bool KeepsParameters(absl::string_view op) {
  return IsOneOf(op, {"Reshape", "Transpose", "Slice", "Split", "Identity", "MaxPool"});
}

}  // namespace npuc
