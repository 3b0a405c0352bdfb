#include "compiler_core/quant/kept/coarse_steps.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <vector>

#include "compiler_core/ops/op.h"
#include "compiler_core/ops/quantize.h"

namespace npuc {
namespace {

// Steps of the result in one step of the operand. Sigmoid and Tanh of 8 bits have 4 to 13.
constexpr int64_t kSteep = 32;

// Levels of a value whose rounding says what the model computes: those of 5 bits. Without it a net
// of 4 bits differs by a twentieth and more.
constexpr int64_t kFewLevels = 32;

bool IsWeighted(Op op) { return TraitsOf(op).integer == IntegerRule::kWeighted; }

class Finder {
 public:
  explicit Finder(const Graph& graph) : graph_(graph) {
    for (const Node& node : graph.nodes()) {
      if (node.op != Op::kQuantize) continue;
      stored_.emplace(node.inputs[0], &node);
    }
  }

  std::set<ValueId> Run() {
    for (const Node& node : graph_.nodes()) {
      if (node.op == Op::kQuantize && HasFewLevels(node)) kept_.insert(node.outputs[0]);
      if (IsSteep(node)) Keep(node.inputs[0]);
    }
    return std::move(kept_);
  }

 private:
  // The parameters of one scale and 8 bits that a Quantize or Dequantize has.
  std::optional<QuantParams> ParamsOf(const Node& node, ValueId integers) const {
    const absl::StatusOr<QuantParams> params = QuantParamsOf(node, graph_.type(integers));
    if (!params.ok() || params->axis >= 0 || SizeOf(graph_.type(integers).dtype) != 1) {
      return std::nullopt;
    }
    return *params;
  }

  bool HasFewLevels(const Node& node) const {
    const absl::StatusOr<QuantParams> params = QuantParamsOf(node, graph_.type(node.outputs[0]));
    return params.ok() && params->axis < 0 && params->qmax - params->qmin < kFewLevels;
  }

  bool IsSteep(const Node& node) const {
    const OpTraits& traits = TraitsOf(node.op);
    if (!traits.is_pointwise || traits.layout != LayoutRule::kElementwise) return false;
    const Node& before = graph_.def(node.inputs[0]);
    const auto behind = stored_.find(node.outputs[0]);
    if (before.op != Op::kDequantize || behind == stored_.end()) return false;
    const std::optional<QuantParams> from = ParamsOf(before, before.inputs[0]);
    const std::optional<QuantParams> to = ParamsOf(*behind->second, behind->second->outputs[0]);
    if (!from.has_value() || !to.has_value()) return false;
    std::vector<float> points;
    const DType dtype = graph_.type(before.inputs[0]).dtype;
    for (int64_t q = LowestOf(dtype); q <= HighestOf(dtype); ++q) {
      points.push_back(
          static_cast<float>(static_cast<double>(q - from->zero_point[0]) * from->scale[0]));
    }
    const Shape shape = {static_cast<int64_t>(points.size())};
    const auto results =
        DefOf(node.op).reference(node, std::vector<Tensor>{Tensor::FromFloats(shape, points)});
    if (!results.ok()) return false;
    std::optional<int64_t> last;
    for (const float value : (*results)[0].ToFloats()) {
      if (std::isnan(value)) continue;  // of no operand that the model has
      const double low = static_cast<double>(to->qmin - to->zero_point[0]);
      const double high = static_cast<double>(to->qmax - to->zero_point[0]);
      const int64_t stored = std::llround(std::clamp(double{value} / to->scale[0], low, high));
      if (last.has_value() && std::llabs(stored - *last) > kSteep) return true;
      last = stored;
    }
    return false;
  }

  // Keeps the Quantize nodes that a value comes from, behind weighted operators' results and
  // inputs.
  void Keep(ValueId value) {
    std::vector<ValueId> open = {value};
    while (!open.empty()) {
      const Node& node = graph_.def(open.back());
      open.pop_back();
      if (!seen_.insert(node.outputs[0]).second) continue;
      if (node.op == Op::kQuantize) {
        if (IsFirst(node.inputs[0])) continue;
        kept_.insert(node.outputs[0]);
      }
      open.insert(open.end(), node.inputs.begin(), node.inputs.end());
    }
  }

  // True where a Quantize stores the result of a weighted operator, or an input.
  bool IsFirst(ValueId value) const {
    std::vector<ValueId> open = {value};
    std::set<ValueId> seen;
    while (!open.empty()) {
      const Node& node = graph_.def(open.back());
      open.pop_back();
      if (!seen.insert(node.outputs[0]).second) continue;
      if (IsWeighted(node.op) || node.op == Op::kPlaceholder) return true;
      if (node.op != Op::kDequantize) {
        open.insert(open.end(), node.inputs.begin(), node.inputs.end());
      }
    }
    return false;
  }

  const Graph& graph_;
  std::map<ValueId, const Node*> stored_;  // by a Quantize node's operand
  std::set<ValueId> seen_;
  std::set<ValueId> kept_;
};

}  // namespace

std::set<ValueId> CoarseSteps(const Graph& graph) { return Finder(graph).Run(); }

}  // namespace npuc
