#include "compiler_core/quant/kept/spread_params.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ops/interval.h"
#include "compiler_core/ops/layers.h"
#include "compiler_core/ops/op.h"

namespace npuc {
namespace {

// The operands whose stored integers a node's results are, cut to a range or beside others.
std::vector<ValueId> MovedOperands(const Graph& graph, const Node& node) {
  if (TraitsOf(node.op).keeps_parameters || node.op == Op::kPad) return {node.inputs[0]};
  if (node.op == Op::kConcat) return node.inputs;
  const std::optional<Clamp> clamp = ClampOf(graph, node);
  if (clamp.has_value()) return {clamp->operand};
  return {};
}

QuantParams SixteenBits(double scale) {
  return {.dtype = DType::kInt16,
          .qmin = INT16_MIN,
          .qmax = INT16_MAX,
          .scale = {scale},
          .zero_point = {0}};
}

// Whether a node computes with 16 bits as exactly as they are. A function of them is a table with
// few entries: where it stands inside of an operator (a gate of an LSTM), errors would add up.
bool TakesSixteenBits(const Node& node) {
  constexpr Op kOps[] = {Op::kAbs,       Op::kAdd,        Op::kAvgPool, Op::kConcat, Op::kMatMul,
                         Op::kMaximum,   Op::kMinimum,    Op::kMul,     Op::kNeg,    Op::kPad,
                         Op::kReduceMax, Op::kReduceMean, Op::kRelu,    Op::kRelu6,  Op::kSub};
  return TraitsOf(node.op).keeps_parameters ||
         std::find(std::begin(kOps), std::end(kOps), node.op) != std::end(kOps);
}

// The scale 2^e, the smallest at which `largest` fits 16 bits.
double PowerOfTwoScale(double largest) {
  if (!(largest > 0)) return 1;
  return std::ldexp(1.0,
                    std::max(-60, static_cast<int>(std::ceil(std::log2(largest / INT16_MAX)))));
}

class Spreader {
 public:
  Spreader(const Graph& graph, const std::set<ValueId>& also_float, QuantPlan& plan,
           std::vector<std::string>& notes)
      : graph_(graph),
        also_float_(also_float),
        plan_(plan),
        notes_(notes),
        users_(graph.value_count()) {
    for (const Node& node : graph.nodes()) {
      for (const ValueId input : node.inputs) {
        users_[static_cast<size_t>(input.value())].push_back(&node);
      }
    }
    for (const GraphOutput& output : graph.outputs()) is_output_.insert(output.value);
  }

  void Run() {
    for (const Layer& layer : plan_.layers) {
      const bool known = std::all_of(layer.inputs.begin(), layer.inputs.end(),
                                     [this](ValueId input) { return Find(input) != nullptr; });
      if (!known || layer.inputs.empty()) continue;
      SpreadToConstants(layer);
      CheckBias(layer);
      for (const ValueId output : layer.outputs) {
        if (Find(output) != nullptr) continue;
        if (!SpreadMove(layer, output) && !SpreadBounded(layer, output)) {
          SpreadInside(layer, output);
        }
      }
    }
  }

 private:
  const QuantParams* Find(ValueId value) const {
    const auto found = plan_.values.find(value);
    return found == plan_.values.end() ? nullptr : &found->second;
  }

  void SpreadToConstants(const Layer& layer) {
    const Node& root = graph_.node(layer.root);
    if (!layer.weight.valid() || layer.type == "Activation" || Find(layer.weight) != nullptr) {
      return;
    }
    const double largest = LargestSize(IntervalOf(*graph_.ConstantOf(layer.weight)));
    if (!std::isfinite(largest)) return;
    plan_.values.emplace(layer.weight, SixteenBits(PowerOfTwoScale(largest)));
    const std::string& name = graph_.def(layer.weight).source.name;
    // Constants of our own making have their operator's name.
    if (name == root.source.name) return;
    notes_.push_back(absl::StrCat("the constant '", Printable(name), "' of layer '",
                                  Printable(layer.name),
                                  "' is float in the model; it is stored in 16 bits"));
  }

  void CheckBias(const Layer& layer) {
    if (!layer.bias.valid() || !layer.weight.valid()) return;
    const QuantParams* bias = Find(layer.bias);
    const QuantParams* weight = Find(layer.weight);
    if (bias == nullptr || weight == nullptr) return;
    const double input = Find(layer.inputs[0])->scale[0];
    constexpr double kRoundings = 1e-5;  // of scales that are products of floats
    for (size_t i = 0; i < std::max(bias->scale.size(), weight->scale.size()); ++i) {
      const double sums = input * weight->scale[weight->scale.size() == 1 ? 0 : i];
      const double own = bias->scale[bias->scale.size() == 1 ? 0 : i];
      const bool same = std::fabs(own - sums) <= kRoundings * sums;
      const bool counts_agree = bias->scale.size() == 1 || weight->scale.size() == 1 ||
                                bias->scale.size() == weight->scale.size();
      if (same && counts_agree) continue;
      plan_.constants.erase(layer.bias);
      plan_.values.erase(layer.bias);
      return;
    }
  }

  // Whether a number is the same after it was stored.
  static bool Holds(const QuantParams& params, double value) {
    const double stored = value / params.scale[0] + static_cast<double>(params.zero_point[0]);
    return stored == std::nearbyint(stored) && stored >= static_cast<double>(params.qmin) &&
           stored <= static_cast<double>(params.qmax);
  }

  // Whether every result of the node is one of the stored integers by `params`.
  bool Keeps(const Node& node, const QuantParams& params) const {
    if (TraitsOf(node.op).keeps_parameters) return true;
    if (node.op == Op::kPad) return Holds(params, FloatAttrOr(node, "value", 0.0));
    if (node.op == Op::kConcat) {
      return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
        const Tensor* constant = graph_.ConstantOf(input);
        if (constant == nullptr) return *Find(input) == params;
        for (int64_t i = 0; i < constant->element_count(); ++i) {
          if (!Holds(params, constant->at(i))) return false;
        }
        return true;
      });
    }
    const std::optional<Clamp> clamp = ClampOf(graph_, node);
    return clamp.has_value() && (std::isinf(clamp->low) || Holds(params, clamp->low)) &&
           (std::isinf(clamp->high) || Holds(params, clamp->high));
  }

  bool SpreadMove(const Layer& layer, ValueId output) {
    const QuantParams params = *Find(layer.inputs[0]);
    const bool keeps = std::all_of(layer.nodes.begin(), layer.nodes.end(),
                                   [&](NodeId id) { return Keeps(graph_.node(id), params); });
    if (!keeps || params.axis >= 0) return false;
    plan_.values.emplace(output, params);
    return true;
  }

  // The largest size of a function's results, by the function and its operand's parameters.
  std::optional<double> BoundOf(const Node& node) const {
    if (node.op == Op::kSoftmax || node.op == Op::kSigmoid || node.op == Op::kTanh) return 1.0;
    if (node.op != Op::kLogSoftmax && node.op != Op::kExp) return std::nullopt;
    const Interval x = RangeOf(node.inputs[0], {});
    if (node.op == Op::kExp) {
      // Around a result of 1 the steps must not be coarser than those of the operand.
      const double largest = std::exp(x.most);
      const bool is_fine = PowerOfTwoScale(largest) <= Find(node.inputs[0])->scale[0];
      return is_fine ? std::optional<double>(largest) : std::nullopt;
    }
    return x.most - x.least +
           std::log(static_cast<double>(graph_.type(node.inputs[0]).element_count()));
  }

  // The result of a function that the model computes in float, where it has a bound whatever the
  // operand is: shares behind the last Dequantize, say.
  bool SpreadBounded(const Layer& layer, ValueId output) {
    if (layer.nodes.size() != 1) return false;
    const std::optional<double> bound = BoundOf(graph_.node(layer.root));
    if (!bound.has_value()) return false;
    plan_.values.emplace(output, SixteenBits(*bound == 1.0 ? 0x1p-15 : PowerOfTwoScale(*bound)));
    notes_.push_back(absl::StrCat("the result of '", Printable(layer.name),
                                  "' is float in the model; it is stored in 16 bits"));
    return true;
  }

  // What reads a value, also through the moves that passes add, up to one that is stored by
  // parameters of its own; null: the model's caller.
  std::vector<const Node*> Readers(ValueId value) const {
    std::vector<const Node*> readers;
    if (is_output_.contains(value)) readers.push_back(nullptr);
    for (const Node* user : users_[static_cast<size_t>(value.value())]) {
      if (!user->source.op.empty() || !TraitsOf(user->op).keeps_parameters ||
          user->outputs.size() != 1 || Find(user->outputs[0]) != nullptr) {
        readers.push_back(user);
        continue;
      }
      const std::vector<const Node*> behind = Readers(user->outputs[0]);
      readers.insert(readers.end(), behind.begin(), behind.end());
    }
    return readers;
  }

  // Whether a value lies inside of an operator of the model. Other operators may read it, too,
  // where they compute the same.
  bool IsInside(ValueId value) const {
    const std::string& source = graph_.def(value).source.name;
    const std::vector<const Node*> readers = Readers(value);
    const bool all_take_it = std::all_of(readers.begin(), readers.end(), [](const Node* reader) {
      return reader != nullptr && TakesSixteenBits(*reader);
    });
    if (!all_take_it) return false;
    const bool is_operators_own =
        !source.empty() && std::any_of(readers.begin(), readers.end(), [&](const Node* reader) {
          return reader->source.name == source;
        });
    return is_operators_own || also_float_.contains(value);
  }

  void SpreadInside(const Layer& layer, ValueId output) {
    if (!IsInside(output)) return;
    std::map<ValueId, Interval> known;
    std::optional<Interval> range;
    for (const NodeId id : layer.nodes) {
      range = RangeOfResult(graph_.node(id), known);
      if (!range.has_value()) return;
      known[graph_.node(id).outputs[0]] = *range;
    }
    double scale = std::numeric_limits<double>::infinity();
    for (const ValueId input : layer.inputs) scale = std::min(scale, Find(input)->scale[0]);
    // A limit for operands that are 0 alone.
    const double fits = std::max(LargestSize(*range) / INT16_MAX, scale * 0x1p-15);
    if (!(fits > 0) || !std::isfinite(fits)) return;
    plan_.values.emplace(output, SixteenBits(std::ldexp(
                                     scale, static_cast<int>(std::ceil(std::log2(fits / scale))))));
  }

  Interval RangeOf(ValueId value, const std::map<ValueId, Interval>& known) const {
    const auto found = known.find(value);
    if (found != known.end()) return found->second;
    const Tensor* constant = graph_.ConstantOf(value);
    if (constant != nullptr) return IntervalOf(*constant);
    const QuantParams& params = *Find(value);
    const auto real = [&](int64_t q) {
      return static_cast<double>(q - params.zero_point[0]) * params.scale[0];
    };
    return {real(params.qmin), real(params.qmax)};
  }

  // Of the operators whose results grow no faster than their operands.
  std::optional<Interval> RangeOfResult(const Node& node,
                                        const std::map<ValueId, Interval>& known) const {
    const Interval x = RangeOf(node.inputs[0], known);
    if (TraitsOf(node.op).keeps_parameters || node.op == Op::kAvgPool ||
        node.op == Op::kReduceMean || node.op == Op::kReduceMax) {
      return x;
    }
    if (node.op == Op::kPad) {
      const double value = FloatAttrOr(node, "value", 0.0);
      return Hull(x, {value, value});
    }
    if (const std::optional<Clamp> clamp = ClampOf(graph_, node); clamp.has_value()) {
      const Interval operand = RangeOf(clamp->operand, known);
      return Interval{std::clamp(operand.least, clamp->low, clamp->high),
                      std::clamp(operand.most, clamp->low, clamp->high)};
    }
    if (node.op == Op::kMatMul) return RangeOfProduct(node, x);
    if (node.op == Op::kConcat) {
      Interval all = x;
      for (const ValueId input : node.inputs) all = Hull(all, RangeOf(input, known));
      return all;
    }
    if (node.inputs.size() == 1) return IntervalOfResult(node.op, x);
    if (node.inputs.size() != 2) return std::nullopt;
    return IntervalOfResult(node.op, x, RangeOf(node.inputs[1], known));
  }

  std::optional<Interval> RangeOfProduct(const Node& node, const Interval& x) const {
    const Tensor* weight = graph_.ConstantOf(node.inputs[1]);
    if (weight == nullptr || weight->shape().size() != 2) return std::nullopt;
    const bool transposed = BoolAttrOr(node, "transpose_b", false);
    const int64_t columns = weight->shape()[transposed ? 0 : 1];
    const int64_t inner = weight->shape()[transposed ? 1 : 0];
    Interval all = {0, 0};
    for (int64_t c = 0; c < columns; ++c) {
      Interval sum = {0, 0};
      for (int64_t i = 0; i < inner; ++i) {
        const double w = weight->at(transposed ? c * inner + i : i * columns + c);
        const Interval part = Product(x, {w, w});
        sum = {sum.least + part.least, sum.most + part.most};
      }
      all = Hull(all, sum);
    }
    return all;
  }

  const Graph& graph_;
  const std::set<ValueId>& also_float_;
  QuantPlan& plan_;
  std::vector<std::string>& notes_;
  std::vector<std::vector<const Node*>> users_;  // by value
  std::set<ValueId> is_output_;
};

}  // namespace

void SpreadBackwards(const Graph& graph, std::map<ValueId, QuantParams>& params) {
  const std::vector<int> uses = graph.UseCounts();
  for (int i = graph.node_count() - 1; i >= 0; --i) {
    const Node& node = graph.node(NodeId(i));
    if (node.outputs.size() != 1) continue;
    const auto found = params.find(node.outputs[0]);
    if (found == params.end() || found->second.axis >= 0) continue;
    const QuantParams result = found->second;
    for (const ValueId operand : MovedOperands(graph, node)) {
      // A node may read one value several times: copies beside each other.
      const auto own = std::count(node.inputs.begin(), node.inputs.end(), operand);
      if (graph.ConstantOf(operand) != nullptr ||
          uses[static_cast<size_t>(operand.value())] != own) {
        continue;
      }
      params.emplace(operand, result);
    }
  }
}

void SpreadForwards(const Graph& graph, const std::set<ValueId>& also_float, QuantPlan& plan,
                    std::vector<std::string>& notes) {
  Spreader(graph, also_float, plan, notes).Run();
}

}  // namespace npuc
