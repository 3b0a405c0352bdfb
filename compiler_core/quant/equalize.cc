#include "compiler_core/quant/equalize.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "compiler_core/ops/layers.h"

namespace npuc {
namespace {

constexpr int kMaxRounds = 20;
constexpr double kSettled = 1e-3;

// Which channel of its operand, or of its result, an element of a weight belongs to.
struct WeightWalk {
  int64_t channels = 0;
  int64_t inner = 1;
  int64_t Of(int64_t i) const { return i / inner % channels; }
};

struct Pair {
  ValueId first;
  ValueId bias;
  ValueId second;
  WeightWalk of_result;
  WeightWalk of_operand;
};

class Equalizer {
 public:
  Equalizer(const Graph& graph, const std::vector<Layer>& layers)
      : graph_(graph), layers_(layers), uses_(graph.UseCounts()) {
    for (const Layer& layer : layers) FindPair(layer);
    for (const Pair& pair : pairs_) {
      for (const ValueId id : {pair.first, pair.bias, pair.second}) {
        if (id.valid()) values_[id] = graph.ConstantOf(id)->ToFloats();
      }
    }
  }

  Graph Run(int& pairs) {
    pairs = static_cast<int>(pairs_.size());
    for (int round = 0; round < kMaxRounds; ++round) {
      double most = 0;
      for (const Pair& pair : pairs_) most = std::max(most, Equalize(pair));
      if (most < kSettled) break;
    }
    return Rebuild();
  }

 private:
  // A float constant that this layer alone reads.
  bool IsOwn(ValueId id) const {
    return id.valid() && uses_[id.value()] == 1 && graph_.ConstantOf(id) != nullptr &&
           graph_.type(id).dtype == DType::kFloat32;
  }

  bool ResultWalk(const Layer& layer, WeightWalk& walk) const {
    const Node& root = graph_.node(layer.root);
    const Shape& shape = graph_.type(layer.weight).shape;
    if (root.op == Op::kConv2D) {
      walk = {shape[3], 1};
    } else if (root.op == Op::kDepthwiseConv2D && shape[3] == 1) {
      walk = {shape[2], 1};
    } else if (MultipliesByMatrix(graph_, root)) {
      walk = BoolAttrOr(root, "transpose_b", false) ? WeightWalk{shape[0], shape[1]}
                                                    : WeightWalk{shape[1], 1};
    } else {
      return false;
    }
    return true;
  }

  bool OperandWalk(const Layer& layer, WeightWalk& walk) const {
    const Node& root = graph_.node(layer.root);
    const Shape& shape = graph_.type(layer.weight).shape;
    const Shape& operand = graph_.type(root.inputs[0]).shape;
    if (root.op == Op::kConv2D && shape[2] == operand[3]) {
      walk = {shape[2], shape[3]};
    } else if (root.op == Op::kDepthwiseConv2D && shape[3] == 1) {
      walk = {shape[2], 1};
    } else if (MultipliesByMatrix(graph_, root) && !BoolAttrOr(root, "transpose_a", false)) {
      walk = BoolAttrOr(root, "transpose_b", false) ? WeightWalk{shape[1], 1}
                                                    : WeightWalk{shape[0], shape[1]};
    } else {
      return false;
    }
    return true;
  }

  void FindPair(const Layer& layer) {
    if (!IsOwn(layer.weight) || layer.outputs.size() != 1) return;
    const ValueId between = layer.outputs[0];
    if (uses_[between.value()] != 1) return;
    const ClampRange clamps = ClampsOf(graph_, layer);
    if (clamps != ClampRange() && clamps != kReluRange) return;  // does not scale
    const auto next = std::find_if(layers_.begin(), layers_.end(), [&](const Layer& other) {
      return std::find(other.inputs.begin(), other.inputs.end(), between) != other.inputs.end();
    });
    if (next == layers_.end() || next->inputs.size() != 1 || !IsOwn(next->weight)) return;
    if (graph_.node(next->root).inputs[0] != between) return;
    Pair pair{layer.weight, layer.bias, next->weight, {}, {}};
    if (!ResultWalk(layer, pair.of_result) || !OperandWalk(*next, pair.of_operand)) return;
    if (pair.of_result.channels != pair.of_operand.channels) return;
    if (layer.bias.valid() && (!IsOwn(layer.bias) || graph_.type(layer.bias).element_count() !=
                                                         pair.of_result.channels)) {
      return;
    }
    pairs_.push_back(pair);
  }

  static std::vector<double> Magnitudes(const std::vector<float>& values, const WeightWalk& walk) {
    std::vector<double> out(walk.channels, 0.0);
    for (size_t i = 0; i < values.size(); ++i) {
      double& greatest = out[walk.Of(static_cast<int64_t>(i))];
      greatest = std::max(greatest, std::fabs(static_cast<double>(values[i])));
    }
    return out;
  }

  // How far the scales are from 1.
  double Equalize(const Pair& pair) {
    std::vector<float>& first = values_[pair.first];
    std::vector<float>& second = values_[pair.second];
    const std::vector<double> r1 = Magnitudes(first, pair.of_result);
    const std::vector<double> r2 = Magnitudes(second, pair.of_operand);
    std::vector<double> scale(r1.size(), 1.0);
    double most = 0;
    for (size_t c = 0; c < scale.size(); ++c) {
      constexpr double kLeast = 1e-8;
      if (r1[c] < kLeast || r2[c] < kLeast) continue;
      scale[c] = std::sqrt(r1[c] / r2[c]);
      most = std::max(most, std::fabs(std::log(scale[c])));
    }
    for (size_t i = 0; i < first.size(); ++i) {
      first[i] = static_cast<float>(first[i] / scale[pair.of_result.Of(static_cast<int64_t>(i))]);
    }
    for (size_t i = 0; i < second.size(); ++i) {
      second[i] =
          static_cast<float>(second[i] * scale[pair.of_operand.Of(static_cast<int64_t>(i))]);
    }
    if (pair.bias.valid()) {
      std::vector<float>& bias = values_[pair.bias];
      for (size_t c = 0; c < bias.size(); ++c) bias[c] = static_cast<float>(bias[c] / scale[c]);
    }
    return most;
  }

  Graph Rebuild() const {
    Graph out;
    out.set_name(graph_.name());
    for (const Node& node : graph_.nodes()) {
      std::vector<TensorType> types;
      for (const ValueId id : node.outputs) types.push_back(graph_.type(id));
      const auto changed = node.op == Op::kConst ? values_.find(node.outputs[0]) : values_.end();
      if (node.op == Op::kPlaceholder) {
        out.AddInput(node.source.name, types[0]);
      } else if (changed != values_.end()) {
        out.AddConst(Tensor::FromFloats(types[0].shape, changed->second), node.source);
      } else {
        out.AddNode(node.op, node.inputs, node.attrs, types, node.source);
      }
    }
    for (const GraphOutput& output : graph_.outputs()) out.AddOutput(output);
    return out;
  }

  const Graph& graph_;
  const std::vector<Layer>& layers_;
  std::vector<int> uses_;
  std::vector<Pair> pairs_;
  std::map<ValueId, std::vector<float>> values_;
};

}  // namespace

Graph EqualizeWeights(const Graph& graph, const std::vector<Layer>& layers, int& pairs) {
  return Equalizer(graph, layers).Run(pairs);
}

}  // namespace npuc
