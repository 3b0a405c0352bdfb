#include "compiler_core/ops/layers.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/fixed_point.h"
#include "compiler_core/ops/op.h"

namespace npuc {
namespace {

IntegerRule RuleOf(Op op) { return TraitsOf(op).integer; }

bool IsWeighted(Op op) { return RuleOf(op) == IntegerRule::kWeighted; }

// True for an operand that has integers of its own where it is a constant. An exponent is a setting
// of the function, and a divisor becomes reciprocals of its real values.
bool TakesIntegers(Op op, size_t operand) {
  return TraitsOf(op).layout == LayoutRule::kBroadcast && op != Op::kPow &&
         !(op == Op::kDiv && operand == 1);
}

bool TakesActivation(Op op) {
  return IsWeighted(op) || RuleOf(op) == IntegerRule::kCombine || RuleOf(op) == IntegerRule::kPool;
}

// Real nets have some twenty nodes in the largest function, Gelu.
constexpr size_t kMaxFunctionNodes = 64;

// A function of one value: nodes in graph order, the last one gives the result.
struct Function {
  ValueId operand;
  std::vector<NodeId> nodes;
};

class Grouper {
 public:
  Grouper(const Graph& graph, const std::set<ValueId>& borders)
      : graph_(graph), borders_(borders), uses_(graph.UseCounts()), layer_of_(graph.node_count()) {}

  std::vector<Layer> Run() {
    FindFunctions();
    for (int i = 0; i < graph_.node_count(); ++i) {
      const NodeId id(i);
      const Node& node = graph_.node(id);
      if (node.op == Op::kConst || inside_function_.contains(id)) continue;
      const auto function = functions_.find(id);
      if (function != functions_.end()) {
        StartFunction(function->second);
      } else if (!JoinAsBias(id, node) && !JoinAsActivation(id, node)) {
        Start(id, node);
      }
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

  bool TakesBias(const Node& root) const {
    return IsWeighted(root.op) && (root.op != Op::kMatMul || MultipliesByMatrix(graph_, root));
  }

  bool JoinAsBias(NodeId id, const Node& node) {
    if (node.op != Op::kAdd) return false;
    for (const int sums : {0, 1}) {
      const ValueId bias = node.inputs[1 - sums];
      if (!IsBias(bias, graph_.type(node.inputs[sums]))) continue;
      Layer* layer = LayerBefore(node.inputs[sums]);
      if (layer == nullptr || layer->nodes.size() != 1 || layer->bias.valid() ||
          !layer->weight.valid() || !TakesBias(graph_.node(layer->root))) {
        continue;
      }
      layer->bias = bias;
      Join(id, node, *layer);
      return true;
    }
    return false;
  }

  bool JoinAsActivation(NodeId id, const Node& node) {
    const std::optional<Clamp> clamp = ClampOf(graph_, node);
    if (!clamp.has_value()) return false;
    Layer* layer = LayerBefore(clamp->operand);
    if (layer == nullptr || !TakesActivation(graph_.node(layer->root).op)) return false;
    Join(id, node, *layer);
    return true;
  }

  // The function that ends in node `end`: back to where the integers begin. None where the nodes
  // read two values, or something else reads between.
  std::optional<Function> FunctionBefore(NodeId end) const {
    Function function;
    std::map<ValueId, int> reads;  // of values inside, by nodes inside
    std::set<NodeId> seen = {end};
    std::vector<NodeId> queue = {end};
    for (size_t i = 0; i < queue.size(); ++i) {
      const Node& node = graph_.node(queue[i]);
      for (const ValueId input : node.inputs) {
        const Tensor* constant = graph_.ConstantOf(input);
        if (constant != nullptr) {
          if (constant->element_count() != 1) return std::nullopt;
          continue;
        }
        if (graph_.type(input).shape != graph_.type(graph_.node(end).outputs[0]).shape) {
          return std::nullopt;
        }
        if (borders_.contains(input)) {
          if (function.operand.valid() && function.operand != input) return std::nullopt;
          function.operand = input;
          continue;
        }
        const NodeId def = graph_.value(input).def;
        if (!TraitsOf(graph_.node(def).op).is_pointwise) return std::nullopt;
        ++reads[input];
        if (seen.insert(def).second) queue.push_back(def);
        if (queue.size() > kMaxFunctionNodes) return std::nullopt;
      }
    }
    const bool closed = std::all_of(reads.begin(), reads.end(), [this](const auto& read) {
      return uses_[read.first.value()] == read.second;
    });
    if (!closed || !function.operand.valid()) return std::nullopt;
    function.nodes.assign(seen.begin(), seen.end());
    return function;
  }

  bool DividesTensors(const Node& node) const {
    return node.op == Op::kDiv && !IsConstant(node.inputs[0]) && !IsConstant(node.inputs[1]);
  }

  // Whether a function is an operator that has a kind of layer, with clamps behind it. Not where a
  // number beside the operator has no integers.
  bool HasOwnCommand(const Function& function) const {
    const Node& first = graph_.node(function.nodes.front());
    if (HasPlainNumber(first)) return false;
    if (function.nodes.size() == 1) return true;
    // x / x jumps at 0, which no table follows.
    if (!TakesActivation(first.op) && !DividesTensors(first)) return false;
    ValueId result = first.outputs[0];
    for (size_t i = 1; i < function.nodes.size(); ++i) {
      const Node& node = graph_.node(function.nodes[i]);
      const std::optional<Clamp> clamp = ClampOf(graph_, node);
      if (!clamp.has_value() || clamp->operand != result) return false;
      result = node.outputs[0];
    }
    return true;
  }

  void FindFunctions() {
    for (const ValueId border : borders_) {
      const NodeId end = graph_.value(border).def;
      if (IsConstant(border) || !TraitsOf(graph_.node(end).op).is_pointwise) continue;
      std::optional<Function> function = FunctionBefore(end);
      if (!function.has_value()) continue;
      if (HasOwnCommand(*function)) continue;
      inside_function_.insert(function->nodes.begin(), function->nodes.end() - 1);
      functions_.emplace(end, *std::move(function));
    }
  }

  void StartFunction(const Function& function) {
    Layer layer;
    layer.type = "Activation";
    layer.nodes = function.nodes;
    layer.root = function.nodes.back();
    layer.inputs = {function.operand};
    layer.outputs = graph_.node(layer.root).outputs;
    layer_of_[layer.root.value()] = layers_.size();
    layers_.push_back(std::move(layer));
  }

  // Whether an operand is a constant that is no border: one without integers.
  bool HasPlainNumber(const Node& node) const {
    return std::any_of(node.inputs.begin(), node.inputs.end(), [this](ValueId input) {
      return IsConstant(input) && !borders_.contains(input);
    });
  }

  void Start(NodeId id, const Node& node) {
    const std::optional<Clamp> clamp = ClampOf(graph_, node);
    if (!borders_.empty() && clamp.has_value() && HasPlainNumber(node)) {
      return StartFunction({clamp->operand, {id}});
    }
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
      } else if ((IsWeighted(node.op) && i == 1) || node.op == Op::kMatMul ||
                 TakesIntegers(node.op, i)) {
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
  std::map<NodeId, Function> functions_;  // by their last nodes
  std::set<NodeId> inside_function_;      // their other nodes
};

}  // namespace

std::vector<Layer> GroupLayers(const Graph& graph, const std::set<ValueId>& borders) {
  return Grouper(graph, borders).Run();
}

std::optional<Clamp> ClampOf(const Graph& graph, const Node& node) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  if (node.op == Op::kRelu) return Clamp{node.inputs[0], 0, kNone};
  if (node.op == Op::kRelu6) return Clamp{node.inputs[0], 0, 6};
  if (node.op != Op::kMaximum && node.op != Op::kMinimum) return std::nullopt;
  for (const size_t i : {0, 1}) {
    const ValueId operand = node.inputs[i];
    const Tensor* bound = graph.ConstantOf(node.inputs[1 - i]);
    if (bound == nullptr || bound->element_count() != 1 || graph.ConstantOf(operand) != nullptr ||
        graph.type(operand) != graph.type(node.outputs[0]) || std::isnan(bound->at(0))) {
      continue;
    }
    if (node.op == Op::kMaximum) return Clamp{operand, bound->at(0), kNone};
    return Clamp{operand, -kNone, bound->at(0)};
  }
  return std::nullopt;
}

bool MultipliesByMatrix(const Graph& graph, const Node& node) {
  return node.op == Op::kMatMul && graph.ConstantOf(node.inputs[1]) != nullptr &&
         graph.type(node.inputs[1]).shape.size() == 2;
}

int ChannelAxis(const Graph& graph, const Layer& layer) {
  const Node& root = graph.node(layer.root);
  if (root.op == Op::kConv2D) return 3;
  if (root.op == Op::kMatMul) {
    if (!MultipliesByMatrix(graph, root)) return -1;
    return BoolAttrOr(root, "transpose_b", false) ? 0 : 1;
  }
  // A result channel of a depthwise weight [kh,kw,c,m] is (c, m): with one of them 1, the other.
  if (root.op == Op::kDepthwiseConv2D) {
    const Shape& shape = graph.type(layer.weight).shape;
    return shape[3] == 1 ? 2 : (shape[2] == 1 ? 3 : 2);
  }
  return -1;
}

bool ReadsConstantsAlone(const Layer& layer) {
  return layer.inputs.empty() && layer.type != "Input";
}

ClampRange ClampsOf(const Graph& graph, const Layer& layer) {
  // A Maximum that is an Eltwise layer's root is its operation; a clamp that stands alone is an
  // Activation and has no other.
  const auto is_clamp = [&](NodeId id) {
    return ClampOf(graph, graph.node(id)).has_value() &&
           (id != layer.root || layer.type == "Activation");
  };
  // The layer's last nodes, as far back as they are clamps, one after the other.
  auto first = layer.nodes.end();
  while (first != layer.nodes.begin() && is_clamp(*(first - 1))) --first;
  ClampRange range;
  for (auto id = first; id != layer.nodes.end(); ++id) {
    const Clamp clamp = *ClampOf(graph, graph.node(*id));
    range = {std::clamp(range.low, clamp.low, clamp.high),
             std::clamp(range.high, clamp.low, clamp.high)};
  }
  return range;
}

int64_t StoredOf(double x, const QuantParams& params, size_t channel, const LayerQuant& settings) {
  constexpr int64_t kLarge = int64_t{1} << 40;  // the zero point can be added
  const double scaled = x / params.scale[channel];
  const int64_t rounded = FollowsTflite(settings) ? RoundHalfAway(scaled) : RoundHalfEven(scaled);
  return std::clamp(std::clamp(rounded, -kLarge, kLarge) + params.zero_point[channel], params.qmin,
                    params.qmax);
}

StoredRange StoredClamps(const ClampRange& clamps, const QuantParams& params,
                         const LayerQuant& settings) {
  return {StoredOf(clamps.low, params, 0, settings), StoredOf(clamps.high, params, 0, settings)};
}

absl::string_view LayerTypeOf(const Graph& graph, const Node& node) {
  const bool is_other_product = node.op == Op::kMatMul && !MultipliesByMatrix(graph, node);
  const absl::string_view type = TraitsOf(node.op).layer_type;
  return type.empty() || is_other_product ? NameOf(node.op) : type;
}

}  // namespace npuc
