#include "compiler_core/lowering/integer/channel_facts.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/lowering/integer/context.h"
#include "compiler_core/lowering/integer/weighted.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/ops/window.h"

namespace npuc {
namespace {

using Numbers = std::vector<std::optional<double>>;

constexpr int kWholeBias = 32;  // bias_effective_bits from which on a bias keeps all its bits

// A layer whose weight is a constant matrix or kernel.
bool IsWeighted(const Graph& graph, const Layer& layer) {
  const Node& root = graph.node(layer.root);
  if (!layer.weight.valid() || graph.ConstantOf(layer.weight) == nullptr) return false;
  return root.op == Op::kConv2D || root.op == Op::kDepthwiseConv2D ||
         MultipliesByMatrix(graph, root);
}

// True where every tap of every window lies on the operand.
bool NeverPads(const Graph& graph, const Node& root, const Shape& weight) {
  if (root.op == Op::kMatMul) return true;
  const Shape& in = graph.type(root.inputs[0]).shape;
  const absl::StatusOr<WindowGeometry> window = MakeConvWindow(root, in, weight);
  if (!window.ok()) return false;
  for (int axis = 0; axis < 2; ++axis) {
    for (const int64_t out : {int64_t{0}, window->output[axis] - 1}) {
      const WindowGeometry::Taps taps = window->TapsInside(axis, out);
      if (taps.first != 0 || taps.last != window->kernel[axis]) return false;
    }
  }
  return true;
}

// A sum as the command has it: modulo 2^32, or 2^48 where an operand has 16 bits.
int64_t WrappedSum(int64_t sum, bool is_wide) {
  const uint64_t bits = static_cast<uint64_t>(sum);
  return is_wide ? static_cast<int64_t>(bits << 16) >> 16
                 : static_cast<int32_t>(static_cast<uint32_t>(bits));
}

// The share of operand channel `i` with the constant number `number` in the sums of result o.
uint64_t ShareOf(const LayerKernel& kernel, int64_t o, int64_t i, double number) {
  uint64_t sum = 0;  // modulo 2^64: sums are taken modulo less
  for (int64_t tap = 0; tap < kernel.taps; ++tap) {
    sum += static_cast<uint64_t>(kernel.At(o, tap, i));
  }
  return sum * static_cast<uint64_t>(static_cast<int64_t>(number));
}

class IntegerFacts {
 public:
  IntegerFacts(const Graph& graph, const QuantPlan& plan)
      : graph_(graph), plan_(plan), context_(graph, plan, program_) {
    facts_.constants.resize(static_cast<size_t>(graph.value_count()));
    facts_.stored.resize(static_cast<size_t>(graph.value_count()));
    facts_.folds.resize(static_cast<size_t>(graph.node_count()));
    facts_.is_fixed.resize(static_cast<size_t>(graph.node_count()));
  }

  ChannelFacts Run() {
    if (HasTooManyChannels(graph_)) return std::move(facts_);
    const std::vector<int> uses = graph_.UseCounts();
    for (size_t i = 0; i < plan_.layers.size(); ++i) {
      const Layer& layer = plan_.layers[i];
      const LayerQuant settings = i < plan_.settings.size() ? plan_.settings[i] : LayerQuant();
      context_.Begin(layer, settings);
      if (!IsWeighted(graph_, layer)) {
        // Reciprocals of a constant share a scale, which the largest of them gives.
        facts_.is_fixed[layer.root.value()] = graph_.node(layer.root).op == Op::kDiv;
        TakeMoved(layer);
        continue;
      }
      // Without facts its weights are not known to be zero either.
      const absl::Status status = TakeWeighted(layer, settings, uses);
      facts_.is_fixed[layer.root.value()] =
          !status.ok() || settings.bias_effective_bits < kWholeBias;
    }
    return std::move(facts_);
  }

 private:
  const Numbers& Known(ValueId value) const {
    return facts_.constants[static_cast<size_t>(value.value())];
  }

  void Set(ValueId value, Numbers numbers) {
    const bool any = std::any_of(numbers.begin(), numbers.end(),
                                 [](const auto& number) { return number.has_value(); });
    if (any) facts_.constants[static_cast<size_t>(value.value())] = std::move(numbers);
  }

  // A number, less the zero point, within what the layer's clamps leave.
  double Clamped(const QuantParams& to, int64_t number) const {
    const integer::Result result = context_.ResultFor(to, {});
    return static_cast<double>(std::clamp<int64_t>(number + result.zero, result.min, result.max) -
                               result.zero);
  }

  absl::Status TakeWeighted(const Layer& layer, const LayerQuant& settings,
                            const std::vector<int>& uses) {
    ASSIGN_OR_RETURN(const QuantParams input, context_.ActivationParams(layer.inputs[0]));
    ASSIGN_OR_RETURN(const QuantParams output, context_.ActivationParams(layer.outputs[0]));
    ASSIGN_OR_RETURN(LayerKernel kernel, TakeKernel(context_));
    ASSIGN_OR_RETURN(facts_.stored[static_cast<size_t>(layer.weight.value())],
                     context_.Integers(layer.weight, *context_.FindParams(layer.weight)));
    if (settings.bias_effective_bits < kWholeBias) return absl::OkStatus();
    const Node& root = context_.root();
    const bool never_pads = NeverPads(graph_, root, graph_.type(layer.weight).shape);
    const bool has_own_bias =
        layer.bias.valid() && uses[static_cast<size_t>(layer.bias.value())] == 1;
    facts_.folds[layer.root.value()] =
        never_pads && has_own_bias && ChannelProductOf(graph_, root).has_value();
    if (BoolAttrOr(root, "transpose_a", false)) return absl::OkStatus();
    const bool is_wide = SizeOf(input.dtype) == 2;
    Rounding rounding = Rounding::kEven;
    ASSIGN_OR_RETURN(const std::vector<int64_t> biases, StoredBiases(context_, input, kernel));
    RETURN_IF_ERROR(FitSums(context_, input, biases, kernel));
    ASSIGN_OR_RETURN(const std::vector<Factor> factors,
                     TakeFactors(context_, input, kernel, output, is_wide, rounding));
    const bool has_wide_sums = is_wide || SizeOf(kernel.dtype) == 2;
    Numbers numbers(static_cast<size_t>(kernel.out));
    for (size_t o = 0; o < numbers.size(); ++o) {
      const std::optional<uint64_t> share =
          ConstantShare(kernel, static_cast<int64_t>(o), Known(layer.inputs[0]), never_pads);
      if (!share.has_value()) continue;
      const uint64_t sum = static_cast<uint64_t>(biases[o]) + *share;
      const int64_t wrapped = WrappedSum(static_cast<int64_t>(sum), has_wide_sums);
      numbers[o] =
          Clamped(output, Multiply(wrapped, factors[factors.size() == 1 ? 0 : o], rounding));
    }
    Set(layer.outputs[0], std::move(numbers));
    return absl::OkStatus();
  }

  // Returns what the operand adds to the sums of result channel o, where that is always the same.
  static std::optional<uint64_t> ConstantShare(const LayerKernel& kernel, int64_t o,
                                               const Numbers& operand, bool never_pads) {
    uint64_t share = 0;
    const int64_t in = static_cast<int64_t>(operand.size());
    // Where nothing is known of the operand only zero weights help.
    const int64_t groups = in == 0 ? 1 : std::max<int64_t>(1, in / kernel.group);
    const int64_t first = o / std::max<int64_t>(1, kernel.out / groups) * kernel.group;
    for (int64_t i = 0; i < kernel.group; ++i) {
      bool is_read = false;
      for (int64_t tap = 0; tap < kernel.taps && !is_read; ++tap) {
        is_read = kernel.At(o, tap, i) != 0;
      }
      if (!is_read) continue;
      if (in == 0) return std::nullopt;
      const std::optional<double>& number = operand[static_cast<size_t>(first + i)];
      if (!number.has_value() || (*number != 0 && !never_pads)) return std::nullopt;
      share += ShareOf(kernel, o, i, *number);
    }
    return share;
  }

  // Layers that move or pool a constant channel's integers, and sums of zeros.
  void TakeMoved(const Layer& layer) {
    const Node& root = graph_.node(layer.root);
    if (layer.type == "Activation" || layer.nodes.front() != layer.root) return;
    const auto links = ChannelLinksOf(graph_, root);
    if (!links.has_value()) return;
    for (size_t k = 0; k < layer.outputs.size(); ++k) {
      const absl::StatusOr<QuantParams> to = context_.ActivationParams(layer.outputs[k]);
      if (to.ok()) TakeMovedInto(root, *links, k, layer.outputs[k], *to);
    }
  }

  void TakeMovedInto(const Node& root, const std::vector<ChannelLink>& links, size_t output,
                     ValueId result, const QuantParams& to) {
    const size_t count = static_cast<size_t>(graph_.type(result).shape.back());
    Numbers numbers(count);
    std::vector<bool> varies(count, false);
    for (const ChannelLink& link : links) {
      if (link.output != output) continue;
      const size_t c = static_cast<size_t>(link.to);
      const std::optional<double> moved = MovedNumber(root, link, to);
      varies[c] =
          varies[c] || !moved.has_value() || (numbers[c].has_value() && *numbers[c] != *moved);
      numbers[c] = moved;
    }
    for (size_t c = 0; c < count; ++c) {
      numbers[c] = varies[c] || !numbers[c].has_value()
                       ? std::nullopt
                       : std::optional<double>(Clamped(to, static_cast<int64_t>(*numbers[c])));
    }
    Set(result, std::move(numbers));
  }

  // The number that one operand's channel gives to the result's, before clamps.
  std::optional<double> MovedNumber(const Node& root, const ChannelLink& link,
                                    const QuantParams& to) const {
    const ValueId operand = root.inputs[link.operand];
    if (Known(operand).empty()) return std::nullopt;
    const std::optional<double>& number = Known(operand)[static_cast<size_t>(link.from)];
    if (!number.has_value()) return std::nullopt;
    if (*number == 0) return LeavesZero(root) ? number : std::nullopt;
    const absl::StatusOr<QuantParams> from = context_.ActivationParams(operand);
    const bool is_mean = root.op == Op::kAvgPool || root.op == Op::kReduceMean;
    const bool keeps = root.op == Op::kMaxPool || root.op == Op::kConcat ||
                       (is_mean && context_.exact()) ||  // averages the integers as they are
                       (TraitsOf(root.op).keeps_parameters && root.op != Op::kReduceMax);
    return keeps && from.ok() && SameParams(*from, to) ? number : std::nullopt;
  }

  // True where zeros in all activations give zeros.
  bool LeavesZero(const Node& root) const {
    const bool reads_constant =
        std::any_of(root.inputs.begin(), root.inputs.end(),
                    [this](ValueId input) { return graph_.ConstantOf(input) != nullptr; });
    switch (root.op) {
      case Op::kPad:
        return FloatAttrOr(root, "value", 0.0) == 0;
      case Op::kAdd:
      case Op::kSub:
      case Op::kMaximum:
      case Op::kMinimum:
        return !reads_constant;
      case Op::kMul:
      case Op::kAvgPool:
      case Op::kMaxPool:
      case Op::kConcat:
      case Op::kReduceMean:
      case Op::kReduceSum:
      case Op::kReduceMax:
      case Op::kRelu:
      case Op::kRelu6:
        return true;
      default:
        return TraitsOf(root.op).keeps_parameters;
    }
  }

  const Graph& graph_;
  const QuantPlan& plan_;
  integer::Program program_;
  IntegerContext context_;
  ChannelFacts facts_;
};

Tensor IntegersOf(const std::vector<int64_t>& values, const Shape& shape) {
  std::vector<uint8_t> bytes(values.size() * sizeof(int64_t));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return Tensor({DType::kInt64, shape}, std::move(bytes));
}

class IntegerKeeper {
 public:
  IntegerKeeper(const Graph& graph, const QuantPlan& plan, const ChannelFacts& facts,
                const KeptChannels& kept)
      : graph_(graph), plan_(plan), facts_(facts), kept_(kept), context_(graph, plan, program_) {}

  absl::StatusOr<KeptIntegers> Run() {
    result_.plan = plan_;
    for (const ConstantCut& cut : kept_.cuts) CutConstant(cut);
    for (size_t i = 0; i < plan_.layers.size(); ++i) {
      const Layer& layer = plan_.layers[i];
      if (!IsWeighted(graph_, layer)) continue;
      if (i < plan_.settings.size()) CutFactors(ChannelsOf(layer.outputs[0]), i);
      if (!facts_.folds[layer.root.value()]) continue;
      context_.Begin(layer, i < plan_.settings.size() ? plan_.settings[i] : no_settings_);
      RETURN_IF_ERROR(FoldIntoBias(layer));
    }
    return std::move(result_);
  }

 private:
  const std::vector<int64_t>& ChannelsOf(ValueId value) const {
    return kept_.channels[static_cast<size_t>(value.value())];
  }

  void CutConstant(const ConstantCut& cut) {
    const auto stored = result_.plan.constants.find(cut.constant);
    if (stored != result_.plan.constants.end()) stored->second = CutTensor(stored->second, cut);
    const auto params = result_.plan.values.find(cut.constant);
    if (params != result_.plan.values.end()) CutParams(cut, params->second);
  }

  // Scales run along a dimension, or of a depthwise weight [h,w,c,m] over both of its last.
  void CutParams(const ConstantCut& cut, QuantParams& params) const {
    const Shape& shape = graph_.type(cut.constant).shape;
    const size_t count = params.scale.size();
    if (params.axis < 0 || count == 1) return;
    const size_t axis = static_cast<size_t>(params.axis);
    int64_t repeats = 1;
    const std::vector<int64_t>* kept = &cut.kept[axis];
    if (shape.size() == 4 && cut.kept[2].size() > 0 && cut.kept[3].empty() &&
        static_cast<int64_t>(count) == shape[2] * shape[3]) {
      kept = &cut.kept[2];
      repeats = shape[3];
    }
    if (kept->empty()) return;
    QuantParams left = params;
    left.scale.clear();
    left.zero_point.clear();
    for (const int64_t c : *kept) {
      for (int64_t r = 0; r < repeats; ++r) {
        left.scale.push_back(params.scale[static_cast<size_t>(c * repeats + r)]);
        left.zero_point.push_back(params.zero_point[static_cast<size_t>(c * repeats + r)]);
      }
    }
    params = std::move(left);
  }

  void CutFactors(const std::vector<int64_t>& channels, size_t layer) {
    const std::vector<Factor>& factors = plan_.settings[layer].factors;
    if (channels.empty() || factors.size() <= 1) return;
    std::vector<Factor> left;
    for (const int64_t o : channels) left.push_back(factors[static_cast<size_t>(o)]);
    result_.plan.settings[layer].factors = std::move(left);
  }

  // Adds the shares of constant channels that are gone to the biases of the channels that stay.
  absl::Status FoldIntoBias(const Layer& layer) {
    const std::vector<int64_t>& from = ChannelsOf(layer.inputs[0]);
    const auto& numbers = facts_.constants[static_cast<size_t>(layer.inputs[0].value())];
    if (from.empty() || numbers.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const QuantParams input, context_.ActivationParams(layer.inputs[0]));
    ASSIGN_OR_RETURN(const LayerKernel kernel, TakeKernel(context_));
    ASSIGN_OR_RETURN(const std::vector<int64_t> biases, StoredBiases(context_, input, kernel));
    std::vector<int64_t> outs = ChannelsOf(layer.outputs[0]);
    if (outs.empty()) {
      outs.resize(static_cast<size_t>(kernel.out));
      std::iota(outs.begin(), outs.end(), 0);
    }
    std::vector<int64_t> integers;
    std::vector<float> reals;
    bool any = false;
    for (const int64_t o : outs) {
      const uint64_t share = ShareOfRemoved(kernel, o, from, numbers);
      any = any || share != 0;
      integers.push_back(
          static_cast<int64_t>(static_cast<uint64_t>(biases[static_cast<size_t>(o)]) + share));
      const size_t scale = kernel.scales.size() == 1 ? 0 : static_cast<size_t>(o);
      reals.push_back(static_cast<float>(graph_.ConstantOf(layer.bias)->at(o) +
                                         static_cast<double>(static_cast<int64_t>(share)) *
                                             input.scale[0] * kernel.scales[scale]));
    }
    if (!any) return absl::OkStatus();
    Shape shape = graph_.type(layer.bias).shape;
    shape.back() = static_cast<int64_t>(outs.size());
    result_.plan.constants.insert_or_assign(layer.bias, IntegersOf(integers, shape));
    result_.biases.emplace(layer.bias, Tensor::FromFloats(shape, reals));
    return absl::OkStatus();
  }

  // kept: the operand's channels that remain, ascending.
  static uint64_t ShareOfRemoved(const LayerKernel& kernel, int64_t o,
                                 const std::vector<int64_t>& kept,
                                 const std::vector<std::optional<double>>& numbers) {
    uint64_t share = 0;
    auto next = kept.begin();
    for (int64_t i = 0; i < static_cast<int64_t>(numbers.size()); ++i) {
      if (next != kept.end() && *next == i) {
        ++next;
        continue;
      }
      const std::optional<double>& number = numbers[static_cast<size_t>(i)];
      if (number.has_value()) share += ShareOf(kernel, o, i, *number);
    }
    return share;
  }

  const Graph& graph_;
  const QuantPlan& plan_;
  const ChannelFacts& facts_;
  const KeptChannels& kept_;
  const LayerQuant no_settings_;
  integer::Program program_;
  IntegerContext context_;
  KeptIntegers result_;
};

}  // namespace

ChannelFacts IntegerChannelFacts(const Graph& graph, const QuantPlan& plan) {
  return IntegerFacts(graph, plan).Run();
}

absl::StatusOr<KeptIntegers> KeepIntegers(const Graph& graph, const QuantPlan& plan,
                                          const ChannelFacts& facts, const KeptChannels& kept) {
  return IntegerKeeper(graph, plan, facts, kept).Run();
}

}  // namespace npuc
