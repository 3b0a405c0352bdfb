#include "compiler_core/quant/kept/whole_numbers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "compiler_core/ops/layers.h"
#include "compiler_core/ops/op.h"

namespace npuc {
namespace {

// A step, by its effect on the float before it.
struct Step {
  ValueId source;
  double factor = 1;
  bool divides = false;
};

// A constant of one element.
std::optional<double> NumberOf(const Graph& graph, ValueId value) {
  const Tensor* constant = graph.ConstantOf(value);
  if (constant == nullptr || constant->element_count() != 1) return std::nullopt;
  return constant->at(0);
}

// True for a weight of whole numbers alone.
bool IsWhole(const Tensor& weight) {
  for (int64_t i = 0; i < weight.element_count(); ++i) {
    if (weight.at(i) != std::nearbyint(weight.at(i))) return false;
  }
  return true;
}

// By value: true where the last weights that it was computed with, of convolutions and matrix
// products, are whole numbers on some way.
std::vector<bool> FindWholeSums(const Graph& graph) {
  std::vector<bool> is_sum(static_cast<size_t>(graph.value_count()));
  for (const Node& node : graph.nodes()) {
    const bool is_product =
        node.op == Op::kConv2D || node.op == Op::kDepthwiseConv2D || node.op == Op::kMatMul;
    const Tensor* weight = is_product ? graph.ConstantOf(node.inputs[1]) : nullptr;
    const bool is_whole =
        weight != nullptr ? IsWhole(*weight)
                          : std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
                              return is_sum[static_cast<size_t>(input.value())];
                            });
    for (const ValueId output : node.outputs) {
      is_sum[static_cast<size_t>(output.value())] = is_whole;
    }
  }
  return is_sum;
}

// The integers that end in `cast`, a Cast of them to floats, and begin with a Cast of floats.
std::optional<Step> StepBefore(const Graph& graph, const Node& cast) {
  if (cast.op != Op::kCast || graph.type(cast.outputs[0]).dtype != DType::kFloat32) {
    return std::nullopt;
  }
  Step step;
  ValueId value = cast.inputs[0];
  while (IsInteger(graph.type(value).dtype)) {
    const Node& node = graph.def(value);
    if (node.op == Op::kCast) {
      step.source = node.inputs[0];
      if (graph.type(step.source).dtype != DType::kFloat32) return std::nullopt;
      return step;
    }
    if (node.op != Op::kMul && node.op != Op::kDiv) return std::nullopt;
    const bool is_swapped = node.op == Op::kMul && graph.ConstantOf(node.inputs[0]) != nullptr;
    const std::optional<double> number = NumberOf(graph, node.inputs[is_swapped ? 0 : 1]);
    if (!number.has_value() || *number == 0) {
      return std::nullopt;
    }
    step.factor = node.op == Op::kMul ? step.factor * *number : step.factor / *number;
    step.divides = step.divides || node.op == Op::kDiv;
    value = node.inputs[is_swapped ? 1 : 0];
  }
  return std::nullopt;
}

// The requantizing steps by their last nodes: of sums of whole numbers, with a division.
std::map<NodeId, Step> FindSteps(const Graph& graph) {
  std::map<NodeId, Step> steps;
  for (int i = 0; i < graph.node_count(); ++i) {
    const std::optional<Step> step = StepBefore(graph, graph.node(NodeId(i)));
    if (step.has_value() && step->divides) steps.emplace(NodeId(i), *step);
  }
  if (steps.empty()) return steps;
  const std::vector<bool> is_sum = FindWholeSums(graph);
  std::erase_if(steps, [&](const auto& step) {
    return !is_sum[static_cast<size_t>(step.second.source.value())];
  });
  return steps;
}

class WholeNumberFormer {
 public:
  WholeNumberFormer(const Graph& graph, const std::map<NodeId, Step>& steps)
      : graph_(graph),
        steps_(steps),
        uses_(graph.UseCounts()),
        value_(static_cast<size_t>(graph.value_count())) {
    for (const Node& node : graph.nodes()) {
      for (const ValueId input : node.inputs) users_[input].push_back(&node);
    }
  }

  WholeNumbersForm Run() {
    form_.graph.set_name(graph_.name());
    form_.steps = static_cast<int>(steps_.size());
    for (int i = 0; i < graph_.node_count(); ++i) {
      const Node& node = graph_.node(NodeId(i));
      const auto step = steps_.find(NodeId(i));
      if (step == steps_.end()) {
        Copy(node);
      } else {
        Set(node.outputs[0], Replaced(step->second, node));
      }
    }
    for (const GraphOutput& output : graph_.outputs()) {
      form_.graph.AddOutput({output.name, New(output.value), output.fp16});
    }
    return std::move(form_);
  }

 private:
  ValueId New(ValueId old) const { return value_[static_cast<size_t>(old.value())]; }
  void Set(ValueId old, ValueId now) { value_[static_cast<size_t>(old.value())] = now; }
  bool IsUsedOnce(ValueId old) const { return uses_[static_cast<size_t>(old.value())] == 1; }

  void Copy(const Node& node) {
    if (node.op == Op::kPlaceholder) {
      Set(node.outputs[0], form_.graph.AddInput(node.source.name, graph_.type(node.outputs[0])));
      return;
    }
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(New(input));
    std::vector<TensorType> types;
    for (const ValueId output : node.outputs) types.push_back(graph_.type(output));
    const NodeId id =
        form_.graph.AddNode(node.op, std::move(inputs), node.attrs, std::move(types), node.source);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      Set(node.outputs[i], form_.graph.node(id).outputs[i]);
    }
  }

  ValueId Apply(Op op, ValueId x, const Tensor& constant, const Node& node) {
    const ValueId operand = form_.graph.AddConst(constant, node.source);
    return form_.graph.AddValue(op, {x, operand}, {}, graph_.type(node.outputs[0]), node.source);
  }

  // The constant operand of a sum or product that gives `value` and whose other operand has the
  // result's shape; moves `value` to that operand. Null: there is none.
  const Tensor* TakeConstant(Op op, ValueId& value) const {
    const Node& node = graph_.def(value);
    if (node.op != op || !IsUsedOnce(value)) return nullptr;
    for (const size_t i : {0, 1}) {
      const Tensor* constant = graph_.ConstantOf(node.inputs[i]);
      if (constant == nullptr || graph_.type(node.inputs[1 - i]) != graph_.type(value)) continue;
      value = node.inputs[1 - i];
      return constant;
    }
    return nullptr;
  }

  static Tensor Scaled(const Tensor* constant, double factor, double offset, double fallback) {
    const Shape shape = constant == nullptr ? Shape() : constant->shape();
    std::vector<float> values;
    for (int64_t i = 0; i < ElementCount(shape); ++i) {
      const double value = constant == nullptr ? fallback : constant->at(i);
      values.push_back(static_cast<float>(value * factor + offset));
    }
    return Tensor::FromFloats(shape, values);
  }

  // True where everything that reads the step's result cuts off negative values.
  bool IsCutAtZero(ValueId result) const {
    const auto users = users_.find(result);
    return users != users_.end() &&
           std::all_of(users->second.begin(), users->second.end(), [&](const Node* user) {
             const std::optional<Clamp> clamp = ClampOf(graph_, *user);
             return clamp.has_value() && clamp->low >= 0;
           });
  }

  ValueId Replaced(const Step& step, const Node& cast) {
    ValueId x = step.source;
    const bool drops_half = IsCutAtZero(cast.outputs[0]);
    const Tensor* offset = TakeConstant(Op::kAdd, x);
    const Tensor* factor = TakeConstant(Op::kMul, x);
    const Tensor product = Scaled(factor, step.factor, 0, 1);
    const std::optional<ValueId> folded = IntoWeight(x, product);
    ValueId result = folded.has_value() ? *folded : Apply(Op::kMul, New(x), product, cast);
    if (offset == nullptr && !drops_half) return result;
    return Apply(Op::kAdd, result, Scaled(offset, step.factor, drops_half ? -0.5 : 0, 0), cast);
  }

  // Where a dimension is behind a node that only moves data; -1: nowhere.
  int AxisBehind(const Node& node, int axis) const {
    const Shape& from = graph_.type(node.inputs[0]).shape;
    const Shape& to = graph_.type(node.outputs[0]).shape;
    if (node.op == Op::kTranspose) {
      const auto perm = IntsAttr(node, "perm");
      if (!perm.ok()) return -1;
      return static_cast<int>(std::find(perm->begin(), perm->end(), axis) - perm->begin());
    }
    int64_t inner = 1;
    for (size_t d = static_cast<size_t>(axis) + 1; d < from.size(); ++d) inner *= from[d];
    int64_t behind = 1;
    for (int d = static_cast<int>(to.size()) - 1; d >= 0; --d) {
      if (behind == inner && to[static_cast<size_t>(d)] == from[static_cast<size_t>(axis)])
        return d;
      behind *= to[static_cast<size_t>(d)];
    }
    return -1;
  }

  // True where a constant beside a value of `rank` has numbers along dimension `axis` alone.
  static bool RunsAlong(const Tensor& constant, size_t rank, int axis) {
    if (constant.element_count() == 1) return true;
    const Shape& shape = constant.shape();
    const size_t missing = rank - shape.size();
    return axis >= static_cast<int>(missing) &&
           shape[static_cast<size_t>(axis) - missing] == constant.element_count();
  }

  // `x` with its product by a constant in the weight that it was computed with, also through nodes
  // that move it; none where that is not so.
  std::optional<ValueId> IntoWeight(ValueId x, const Tensor& factor) {
    std::vector<const Node*> moves;
    ValueId value = x;
    while (graph_.def(value).op == Op::kTranspose || graph_.def(value).op == Op::kReshape) {
      if (!IsUsedOnce(value)) return std::nullopt;
      moves.push_back(&graph_.def(value));
      value = moves.back()->inputs[0];
    }
    const Node& product = graph_.def(value);
    const bool is_product = product.op == Op::kConv2D || product.op == Op::kDepthwiseConv2D ||
                            product.op == Op::kMatMul;
    const Tensor* weight = is_product ? graph_.ConstantOf(product.inputs[1]) : nullptr;
    if (weight == nullptr || product.inputs.size() != 2 || !IsUsedOnce(value)) return std::nullopt;
    const int64_t channels = graph_.type(value).shape.back();
    int axis = static_cast<int>(graph_.type(value).shape.size()) - 1;
    for (size_t i = moves.size(); i-- > 0 && axis >= 0;) axis = AxisBehind(*moves[i], axis);
    const bool fits = factor.element_count() == 1 || factor.element_count() == channels;
    if (axis < 0 || !fits || !RunsAlong(factor, graph_.type(x).shape.size(), axis)) {
      return std::nullopt;
    }
    Node scaled = product;
    scaled.inputs[0] = New(product.inputs[0]);
    scaled.inputs[1] = ScaledWeight(product, *weight, factor, channels);
    ValueId result = form_.graph.AddValue(product.op, scaled.inputs, product.attrs,
                                          graph_.type(value), product.source);
    for (size_t i = moves.size(); i-- > 0;) {
      result = form_.graph.AddValue(moves[i]->op, {result}, moves[i]->attrs,
                                    graph_.type(moves[i]->outputs[0]), moves[i]->source);
    }
    return result;
  }

  ValueId ScaledWeight(const Node& product, const Tensor& weight, const Tensor& factor,
                       int64_t channels) {
    const bool by_rows = product.op == Op::kMatMul && BoolAttrOr(product, "transpose_b", false);
    const int64_t inner = by_rows ? weight.shape().back() : 1;
    std::vector<float> values;
    for (int64_t i = 0; i < weight.element_count(); ++i) {
      const int64_t channel = factor.element_count() == 1 ? 0 : i / inner % channels;
      values.push_back(static_cast<float>(weight.at(i) * factor.at(channel)));
    }
    return form_.graph.AddConst(Tensor::FromFloats(weight.shape(), values),
                                graph_.def(product.inputs[1]).source);
  }

  const Graph& graph_;
  const std::map<NodeId, Step>& steps_;
  const std::vector<int> uses_;
  std::vector<ValueId> value_;  // in the new graph, by old id
  std::map<ValueId, std::vector<const Node*>> users_;
  WholeNumbersForm form_;
};

}  // namespace

int CountWholeNumberSteps(const Graph& graph) { return static_cast<int>(FindSteps(graph).size()); }

WholeNumbersForm FloatWholeNumbers(Graph graph) {
  const std::map<NodeId, Step> steps = FindSteps(graph);
  if (steps.empty()) return {std::move(graph), 0};
  return WholeNumberFormer(graph, steps).Run();
}

}  // namespace npuc
