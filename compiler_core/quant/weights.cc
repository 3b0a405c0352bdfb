#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/fixed_point.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/layers.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/quant/adaround.h"
#include "compiler_core/quant/state.h"

namespace npuc {
namespace {

// The magnitude that a strategy leaves of one channel's values.
double MagnitudeOf(const QuantStrategy& strategy, int bits, int64_t bins,
                   absl::Span<const float> values) {
  float greatest = 0;
  for (const float value : values) greatest = std::max(greatest, std::fabs(value));
  if (strategy.kind == QuantStrategy::Kind::kExtrema || values.empty()) return greatest;
  StatisticsCollector collector(bins, 0, std::nullopt);
  NPUC_CHECK(collector.Add(values));  // Quantize() has refused weights that are not finite
  collector.EndBatch();
  const std::optional<ValueRange> range =
      RangeOf(strategy, collector.statistics(), bits, std::nullopt);
  if (!range.has_value()) return greatest;
  return std::max(std::fabs(range->min), std::fabs(range->max));
}

std::vector<double> Magnitudes(const LayerSettings& settings, const Tensor& weight, int axis) {
  const std::vector<float> values = weight.ToFloats();
  const ChannelWalk walk = WalkOf(weight.shape(), axis);
  std::vector<std::vector<float>> channels(static_cast<size_t>(walk.channels));
  for (size_t i = 0; i < values.size(); ++i) {
    channels[static_cast<size_t>(walk.ChannelOf(static_cast<int64_t>(i)))].push_back(values[i]);
  }
  std::vector<double> magnitudes;
  for (const std::vector<float>& channel : channels) {
    magnitudes.push_back(
        MagnitudeOf(settings.weight_strategy, settings.weight_bits, settings.histc_bins, channel));
  }
  return magnitudes;
}

bool Asks(const QuantState& state, GlobalCalibration what) {
  const std::vector<GlobalCalibration>& list = state.options->global_calibration;
  return std::find(list.begin(), list.end(), what) != list.end();
}

// The bias in force: as corrected, or the model's.
const Tensor& FloatBias(const QuantState& state, ValueId bias) {
  const auto corrected = state.float_biases.find(bias);
  return corrected != state.float_biases.end() ? corrected->second : state.executor->constant(bias);
}

absl::Status ShiftBias(QuantState& state, ValueId bias, absl::Span<const double> shift) {
  if (shift.empty()) return absl::OkStatus();
  const Tensor& before = FloatBias(state, bias);
  std::vector<float> values = before.ToFloats();
  for (size_t c = 0; c < values.size(); ++c) values[c] += static_cast<float>(shift[c]);
  Tensor after = Tensor::FromFloats(before.shape(), values);
  RETURN_IF_ERROR(state.quantized->SetConstant(bias, after));
  state.float_biases[bias] = std::move(after);
  return absl::OkStatus();
}

}  // namespace

absl::Status QuantizeWeight(QuantState& state, int layer, const SampleSet* samples) {
  const Layer& l = state.layers[layer];
  const LayerSettings& settings = state.settings[layer];
  if (!l.weight.valid()) return absl::OkStatus();
  const Tensor& weight = state.executor->constant(l.weight);
  if (weight.dtype() != DType::kFloat32) return absl::OkStatus();
  // What an earlier rounding of this layer left in its bias belongs to that rounding.
  if (state.float_biases.erase(l.bias) > 0) {
    RETURN_IF_ERROR(state.quantized->SetConstant(l.bias, state.executor->constant(l.bias)));
  }
  if (settings.in_float) {
    state.values.erase(l.weight);
    state.constants.erase(l.weight);
    return state.quantized->SetConstant(l.weight, weight);
  }
  const int axis = IsPerChannel(settings.weight_method) ? ChannelAxis(*state.graph, l) : -1;
  QuantParams params = WeightParams(settings.weight_method, settings.weight_bits,
                                    Magnitudes(settings, weight, axis), axis);
  if (state.fixed_point) RoundScalesUp(params);
  Tensor integers;
  if (samples != nullptr && Asks(state, GlobalCalibration::kAdaround) && HasMoments(state, layer)) {
    ASSIGN_OR_RETURN(const OperandMoments moments, MeasureMoments(state, layer, *samples));
    AdaptiveRounding rounding = RoundAdaptively(state, layer, weight, moments, params);
    integers = std::move(rounding.integers);
    RETURN_IF_ERROR(ShiftBias(state, l.bias, rounding.bias_shift));
  } else {
    integers = QuantizeTensor(params, weight.ToFloats(), weight.shape());
  }
  RETURN_IF_ERROR(state.quantized->SetConstant(l.weight, DequantizeTensor(params, integers)));
  state.values[l.weight] = params;
  state.constants[l.weight] = std::move(integers);
  return absl::OkStatus();
}

namespace {

// Sums of 16-bit operands have 48 bits, and lowering lets a bias go as far as 46; those of 8-bit
// operands have 32.
constexpr int kNarrowBits = 32;
constexpr int kWideBits = 46;

int MostBiasBits(const QuantState& state, int layer) {
  const Layer& l = state.layers[layer];
  const bool wide =
      SizeOf(state.values.at(l.weight).dtype) > 1 || SizeOf(state.values.at(l.inputs[0]).dtype) > 1;
  return wide ? kWideBits : kNarrowBits;
}

// Bits of a signed integer that holds both `magnitude` and its negative.
int BitsFor(double magnitude) {
  int bits = 1;
  while (bits < 1000 && std::ldexp(1.0, bits - 1) - 1 < magnitude) ++bits;
  return bits;
}

// Result channels that have scale `channel` of the weight: all, or those whose number divided by
// `repeats` is it. The widest bias among them, in real numbers.
double WidestBias(const Tensor& bias, const QuantParams& weight, int64_t channel) {
  const auto scales = static_cast<int64_t>(weight.scale.size());
  const int64_t repeats = bias.element_count() / scales;
  double widest = 0;
  for (int64_t i = channel * repeats; i < (channel + 1) * repeats; ++i) {
    widest = std::max(widest, std::fabs(static_cast<double>(bias.at(i))));
  }
  return widest;
}

// The weight's integers again where a scale has changed.
absl::Status StoreAgain(QuantState& state, ValueId id, const QuantParams& params,
                        const std::vector<bool>& changed) {
  const Tensor& weight = state.executor->constant(id);
  Tensor integers = QuantizeTensor(params, weight.ToFloats(), weight.shape());
  const Tensor& before = state.constants.at(id);
  const ChannelWalk walk = WalkOf(weight.shape(), params.axis);
  std::vector<uint8_t> bytes(integers.bytes().begin(), integers.bytes().end());
  const auto size = static_cast<size_t>(SizeOf(params.dtype));
  for (int64_t i = 0; i < integers.element_count(); ++i) {
    if (changed[static_cast<size_t>(walk.ChannelOf(i))]) continue;
    const size_t at = static_cast<size_t>(i) * size;
    std::copy_n(before.bytes().begin() + static_cast<std::ptrdiff_t>(at), size,
                bytes.begin() + static_cast<std::ptrdiff_t>(at));
  }
  integers = Tensor(TensorType{params.dtype, weight.shape()}, std::move(bytes));
  RETURN_IF_ERROR(state.quantized->SetConstant(id, DequantizeTensor(params, integers)));
  state.values[id] = params;
  state.constants[id] = std::move(integers);
  return absl::OkStatus();
}

// Raises the scales of weights so small beside a bias that its integer would not fit: such weights
// change no result, and lose bits. The scale of a channel of zeros says nothing: it gets
// one that leaves the bias 24 bits. Returns whether a scale has changed.
absl::StatusOr<bool> RaiseWeightScales(QuantState& state, int layer) {
  constexpr double kBiasOfZeros = 1 << 23;
  const Layer& l = state.layers[layer];
  const auto stored = state.constants.find(l.weight);
  const Tensor& bias = FloatBias(state, l.bias);
  QuantParams params = state.values.at(l.weight);
  const auto scales = static_cast<int64_t>(params.scale.size());
  if (stored == state.constants.end() || bias.element_count() % scales != 0) return false;
  std::vector<bool> is_zero(params.scale.size(), true);
  const ChannelWalk walk = WalkOf(stored->second.shape(), params.axis);
  for (int64_t i = 0; i < stored->second.element_count(); ++i) {
    if (stored->second.int_at(i) != 0) is_zero[static_cast<size_t>(walk.ChannelOf(i))] = false;
  }
  // Half of the widest bias, so that a sum has room beside it.
  const double most = std::ldexp(1.0, MostBiasBits(state, layer) - 2);
  const double input_scale = state.values.at(l.inputs[0]).scale[0];
  const QuantParams before = params;
  for (int64_t c = 0; c < scales; ++c) {
    double& scale = params.scale[static_cast<size_t>(c)];
    const double needed = WidestBias(bias, params, c) / input_scale;
    const bool says_nothing = is_zero[static_cast<size_t>(c)] && scale == kScaleOfZeros;
    if (says_nothing && needed > 0) {
      scale = needed / kBiasOfZeros;
    } else if (needed / scale > most) {
      scale = needed / most;
    }
  }
  if (params == before) return false;
  if (state.fixed_point) RoundScalesUp(params);
  std::vector<bool> changed;
  for (size_t c = 0; c < params.scale.size(); ++c) {
    changed.push_back(params.scale[c] != before.scale[c]);
  }
  RETURN_IF_ERROR(StoreAgain(state, l.weight, params, changed));
  return true;
}

// As the settings say; where sums are wide, as many more as the widest bias needs.
void SetBiasBits(const LayerSettings& settings, double widest, int most, QuantParams& params) {
  int bits = std::min(settings.bias_bits, most);
  if (most > kNarrowBits) bits = std::max(bits, std::min(BitsFor(std::ceil(widest)), most));
  params.dtype = bits > 32 ? DType::kInt64 : DType::kInt32;
  params.qmax = (int64_t{1} << (bits - 1)) - 1;
  params.qmin = -params.qmax - 1;
}

// Leaves the bits of biases that take part, as lowering does: of biases with the operand's zero
// point absorbed.
void DropLowBits(const QuantState& state, int layer, const QuantParams& params,
                 std::vector<int64_t>& biases) {
  const Layer& l = state.layers[layer];
  const int64_t zero = state.values.at(l.inputs[0]).zero_point[0];
  const auto weight = state.constants.find(l.weight);
  std::vector<int64_t> absorbed(biases.size(), 0);
  if (zero != 0 && weight != state.constants.end() && !biases.empty()) {
    // Result channels are the weight's last dimensions, of a transposed matrix the first one.
    const int64_t elements = weight->second.element_count();
    const auto channels = static_cast<int64_t>(biases.size());
    const bool by_rows = BoolAttrOr(state.root(layer), "transpose_b", false);
    const int64_t inner = by_rows ? std::max<int64_t>(elements / channels, 1) : 1;
    for (int64_t i = 0; i < elements; ++i) {
      absorbed[static_cast<size_t>(i / inner % channels)] += zero * weight->second.int_at(i);
    }
  }
  for (size_t o = 0; o < biases.size(); ++o) biases[o] -= absorbed[o];
  KeepHighBits(state.settings[layer].bias_effective_bits, biases);
  for (size_t o = 0; o < biases.size(); ++o) {
    biases[o] = std::clamp(biases[o] + absorbed[o], params.qmin, params.qmax);
  }
}

}  // namespace

absl::Status QuantizeBias(QuantState& state, int layer) {
  const Layer& l = state.layers[layer];
  const LayerSettings& settings = state.settings[layer];
  if (!l.bias.valid() || !l.weight.valid() || l.inputs.size() != 1) return absl::OkStatus();
  const Tensor& bias = FloatBias(state, l.bias);
  if (settings.in_float) {
    state.values.erase(l.bias);
    state.constants.erase(l.bias);
    return state.quantized->SetConstant(l.bias, bias);
  }
  ASSIGN_OR_RETURN(const bool is_raised, RaiseWeightScales(state, layer));
  for (size_t i = 0; is_raised && i < state.layers.size(); ++i) {
    const Layer& other = state.layers[i];
    const bool shares = other.weight == l.weight && other.bias != l.bias;
    if (!shares || !state.values.contains(other.bias)) continue;
    RETURN_IF_ERROR(QuantizeBias(state, static_cast<int>(i)));
  }
  const QuantParams& weight = state.values.at(l.weight);
  const double input_scale = state.values.at(l.inputs[0]).scale[0];
  QuantParams params;
  const int64_t count = bias.element_count();
  // Result channel o of a depthwise weight of multiplier m has the scale of its channel o / m.
  const auto scales = static_cast<int64_t>(weight.scale.size());
  const bool each = scales > 1 && count % scales == 0 && !bias.shape().empty();
  params.axis = each ? static_cast<int>(bias.shape().size()) - 1 : -1;
  if (each) {
    for (int64_t i = 0; i < count; ++i) {
      params.scale.push_back(weight.scale[i / (count / scales)] * input_scale);
    }
  } else {
    params.scale = {*std::max_element(weight.scale.begin(), weight.scale.end()) * input_scale};
  }
  params.zero_point.assign(params.scale.size(), 0);
  double widest = 0;
  for (int64_t i = 0; i < count; ++i) {
    widest = std::max(widest, std::fabs(bias.at(i)) / params.scale[each ? i : 0]);
  }
  SetBiasBits(settings, widest, MostBiasBits(state, layer), params);
  std::vector<int64_t> stored;
  for (int64_t i = 0; i < count; ++i) {
    stored.push_back(QuantizeValue(params, each ? i : 0, bias.at(i)));
  }
  if (settings.bias_effective_bits < kNarrowBits) DropLowBits(state, layer, params, stored);
  Tensor integers = CastTensor(Tensor::FromInts(bias.shape(), stored), params.dtype);
  RETURN_IF_ERROR(state.quantized->SetConstant(l.bias, DequantizeTensor(params, integers)));
  state.values[l.bias] = params;
  state.constants[l.bias] = std::move(integers);
  return absl::OkStatus();
}

void ReportBiases(QuantState& state, const std::string& model_name, std::vector<std::string>& log,
                  Diagnostics& diagnostics) {
  for (size_t i = 0; i < state.layers.size(); ++i) {
    const Layer& l = state.layers[i];
    const auto params = state.values.find(l.bias);
    if (!l.bias.valid() || params == state.values.end()) continue;
    LayerSettings& settings = state.settings[i];
    const int bits = BitsFor(static_cast<double>(params->second.qmax));
    if (bits > settings.bias_bits) {
      log.push_back(absl::StrCat("layer '", Printable(l.name), "': its biases need ", bits,
                                 " bits, bias_bits is ", settings.bias_bits, ": ", bits,
                                 " are taken"));
      settings.bias_bits = bits;
    }
    const Tensor& bias = FloatBias(state, l.bias);
    double widest = 0;
    float value = 0;
    for (int64_t k = 0; k < bias.element_count(); ++k) {
      const double scale = params->second.scale[params->second.axis >= 0 ? k : 0];
      if (std::fabs(bias.at(k)) / scale <= widest) continue;
      widest = std::fabs(bias.at(k)) / scale;
      value = static_cast<float>(bias.at(k));
    }
    const int needed = BitsFor(std::floor(widest));
    if (needed <= bits) continue;
    diagnostics.Add({.kind = DiagnosticKind::kBiasTooWide,
                     .message = absl::StrFormat("the bias %g needs %d bits beside the scales of "
                                                "its sums and is cut to the largest of %d",
                                                value, needed, bits),
                     .file = model_name,
                     .node = l.name,
                     .op = l.type,
                     .fix = absl::StrCat("set bias_bits (q_bits_bias) to ", needed)});
  }
}

absl::Status CorrectBiases(QuantState& state, Evaluator& evaluator) {
  if (!Asks(state, GlobalCalibration::kBiasCorrection)) return absl::OkStatus();
  // Sums before the activation: the last node of the layer that is none.
  const auto sums_of = [&](const Layer& layer) {
    ValueId sums;
    for (const NodeId id : layer.nodes) {
      const Node& node = state.graph->node(id);
      if (!ClampOf(*state.graph, node).has_value()) sums = node.outputs[0];
    }
    return sums;
  };
  for (size_t i = 0; i < state.layers.size(); ++i) {
    const Layer& layer = state.layers[i];
    if (!layer.bias.valid() || !layer.weight.valid() || state.settings[i].in_float) continue;
    const ValueId sums = sums_of(layer);
    const int64_t channels = state.executor->constant(layer.bias).element_count();
    const int stop = layer.nodes.back().value() + 1;
    std::vector<double> shift(channels, 0.0);
    // Float and quantized sums of the same samples, from the start: layers before are corrected.
    int64_t rows = 0;
    for (const bool quantized : {false, true}) {
      evaluator.Restart();
      const FakeQuants quants =
          quantized ? QuantsOf(state, state.values) : FakeQuants(state.graph->value_count());
      const FloatExecutor::Hook apply = HookOf(quants);
      const FloatExecutor& executor = quantized ? *state.quantized : *state.executor;
      rows = 0;
      const FloatExecutor::Hook hook = [&](ValueId id, absl::Span<float> value) {
        if (id == sums) {
          for (size_t k = 0; k < value.size(); ++k) {
            shift[k % channels] += quantized ? -value[k] : value[k];
          }
          rows += static_cast<int64_t>(value.size()) / channels;
        }
        apply(id, value);
      };
      for (int64_t s = 0; s < evaluator.size(); ++s) {
        ASSIGN_OR_RETURN(FloatExecutor::Arena* const arena, evaluator.ArenaOf(s));
        RETURN_IF_ERROR(executor.Run(*arena, 0, stop, hook));
      }
    }
    for (double& mean : shift) {
      mean /= static_cast<double>(std::max<int64_t>(rows, 1));
      if (!std::isfinite(mean)) mean = 0;  // trimmed infinities say nothing about the bias
    }
    RETURN_IF_ERROR(ShiftBias(state, layer.bias, shift));
    RETURN_IF_ERROR(QuantizeBias(state, static_cast<int>(i)));
  }
  evaluator.Restart();
  return absl::OkStatus();
}

}  // namespace npuc
