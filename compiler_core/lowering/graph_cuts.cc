#include "compiler_core/lowering/graph_cuts.h"

#include <algorithm>
#include <iterator>

namespace npuc {
namespace {

// Whether a node computes more than the form of its operand.
bool Computes(const Node& node) {
  constexpr Op kOthers[] = {Op::kConst,    Op::kDequantize, Op::kIdentity, Op::kPlaceholder,
                            Op::kQuantize, Op::kReshape,    Op::kTranspose};
  return std::find(std::begin(kOthers), std::end(kOthers), node.op) == std::end(kOthers);
}

}  // namespace

GraphCuts::GraphCuts(const Graph& graph, Framework framework)
    : framework_(framework),
      has_work_before_(static_cast<size_t>(graph.value_count())),
      has_work_behind_(static_cast<size_t>(graph.value_count())) {
  const auto at = [](ValueId value) { return static_cast<size_t>(value.value()); };
  for (const Node& node : graph.nodes()) {
    bool works = Computes(node);
    for (const ValueId input : node.inputs) works = works || has_work_before_[at(input)];
    for (const ValueId output : node.outputs) has_work_before_[at(output)] = works;
  }
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    bool works = Computes(*node);
    for (const ValueId output : node->outputs) works = works || has_work_behind_[at(output)];
    for (const ValueId input : node->inputs) {
      has_work_behind_[at(input)] = has_work_behind_[at(input)] || works;
    }
  }
}

std::string GraphCuts::FixFor(const Node& node) const {
  if (!InfoOf(framework_).has_port_names) return "leave the layer out of the model that is saved";
  const bool before = std::any_of(node.inputs.begin(), node.inputs.end(), [this](ValueId input) {
    return has_work_before_[static_cast<size_t>(input.value())];
  });
  const bool behind = std::any_of(node.outputs.begin(), node.outputs.end(), [this](ValueId output) {
    return has_work_behind_[static_cast<size_t>(output.value())];
  });
  if (behind && before) {
    return "begin the model behind it with INPUT_OPS, or end it before it with OUTPUT_OPS";
  }
  if (behind) return "begin the model behind it with INPUT_OPS";
  if (before) return "end the model before it with OUTPUT_OPS";
  return "build the model without it";
}

}  // namespace npuc
