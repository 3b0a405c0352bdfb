#include "compiler_core/quant/finite_constants.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "compiler_core/base/fp16.h"
#include "compiler_core/ops/op.h"

namespace npuc {
namespace {

bool TakesLimits(Op op) {
  return op == Op::kAdd || op == Op::kSub || op == Op::kMaximum || op == Op::kMinimum;
}

// By value: true where it ends in operands of Softmax alone, through the operators above and moves.
std::vector<bool> FindSoftmaxOperands(const Graph& graph) {
  std::vector<bool> is_read(static_cast<size_t>(graph.value_count()));
  std::vector<bool> ends_elsewhere(static_cast<size_t>(graph.value_count()));
  for (const GraphOutput& output : graph.outputs()) {
    ends_elsewhere[static_cast<size_t>(output.value.value())] = true;
  }
  for (int i = graph.node_count() - 1; i >= 0; --i) {  // readers first
    const Node& node = graph.node(NodeId(i));
    bool is_masked = node.op == Op::kSoftmax;
    if ((TakesLimits(node.op) || TraitsOf(node.op).keeps_parameters) && node.outputs.size() == 1) {
      const auto result = static_cast<size_t>(node.outputs[0].value());
      is_masked = is_read[result] && !ends_elsewhere[result];
    }
    for (const ValueId input : node.inputs) {
      is_read[static_cast<size_t>(input.value())] = true;
      if (!is_masked) ends_elsewhere[static_cast<size_t>(input.value())] = true;
    }
  }
  for (size_t i = 0; i < is_read.size(); ++i) is_read[i] = is_read[i] && !ends_elsewhere[i];
  return is_read;
}

}  // namespace

Graph WithFiniteConstants(Graph graph) {
  const std::vector<bool> may_change = FindSoftmaxOperands(graph);
  for (int i = 0; i < graph.node_count(); ++i) {
    const Node& node = graph.node(NodeId(i));
    if (node.op != Op::kConst || !may_change[static_cast<size_t>(node.outputs[0].value())]) {
      continue;
    }
    const Tensor& constant = *graph.ConstantOf(node.outputs[0]);
    if (constant.dtype() != DType::kFloat32) continue;
    const absl::Span<const float> values = constant.as<float>();
    if (std::none_of(values.begin(), values.end(), [](float x) { return std::isinf(x); })) continue;
    std::vector<float> finite(values.begin(), values.end());
    for (float& x : finite) {
      if (std::isinf(x)) x = std::copysign(static_cast<float>(kLargestHalf), x);
    }
    Tensor changed = Tensor::FromFloats(constant.shape(), finite);
    graph.mutable_node(NodeId(i)).attrs.find("value")->second = std::move(changed);
  }
  return graph;
}

}  // namespace npuc
