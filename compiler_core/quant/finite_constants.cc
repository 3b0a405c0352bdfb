#include "compiler_core/quant/finite_constants.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace npuc {
namespace {

constexpr float kLargest = 65504;  // as passes/float_selection.h has it for choices

bool TakesLimits(Op op) {
  return op == Op::kAdd || op == Op::kSub || op == Op::kMaximum || op == Op::kMinimum;
}

}  // namespace

Graph WithFiniteConstants(Graph graph) {
  std::vector<bool> may_change(static_cast<size_t>(graph.value_count()), true);
  for (const Node& node : graph.nodes()) {
    if (TakesLimits(node.op)) continue;
    for (const ValueId input : node.inputs) may_change[static_cast<size_t>(input.value())] = false;
  }
  for (const GraphOutput& output : graph.outputs()) {
    may_change[static_cast<size_t>(output.value.value())] = false;
  }
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
      if (std::isinf(x)) x = std::copysign(kLargest, x);
    }
    Tensor changed = Tensor::FromFloats(constant.shape(), finite);
    graph.mutable_node(NodeId(i)).attrs.find("value")->second = std::move(changed);
  }
  return graph;
}

}  // namespace npuc
