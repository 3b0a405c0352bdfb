#include "compiler_core/quant/state.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/layers.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/ops/shape_util.h"

namespace npuc {
namespace {

constexpr int kHeadroomBits = 14;
constexpr double kHeadroom = 2;

// The values behind a Concat's operands, through further Concats up to `depth`.
void ConcatSources(const QuantState& state, int layer, int64_t depth, std::set<ValueId>& sources) {
  for (const ValueId input : state.layers[layer].inputs) {
    const ValueId source = state.SourceOf(input);
    const int from = state.producer[source.value()];
    if (!sources.insert(source).second || depth <= 1 || from < 0) continue;
    if (state.root(from).op == Op::kConcat) ConcatSources(state, from, depth - 1, sources);
  }
}

}  // namespace

ValueRange Union(ValueRange a, ValueRange b) {
  return {std::min(a.min, b.min), std::max(a.max, b.max)};
}

ValueRange WithStated(const QuantState& state, ValueId id, ValueRange range) {
  const auto stated = state.stated.find(id);
  return stated == state.stated.end() ? range : Union(range, stated->second);
}

ValueId QuantState::SourceOf(ValueId id) const {
  while (true) {
    const int layer = producer[id.value()];
    if (layer < 0 || layers[layer].nodes.size() != 1 || layers[layer].inputs.size() != 1 ||
        !TraitsOf(root(layer).op).keeps_parameters) {
      return id;
    }
    id = layers[layer].inputs[0];  // layers are in order: this ends
  }
}

bool QuantState::IsQuantized(ValueId id) const {
  const int layer = producer[id.value()];
  if (layer < 0) return false;
  if (!settings[layer].in_float) return true;
  return std::any_of(consumers[id.value()].begin(), consumers[id.value()].end(),
                     [&](int consumer) { return !settings[consumer].in_float; });
}

absl::StatusOr<ValueRange> RangeOfValue(const QuantState& state, ValueId id,
                                        const QuantStrategy& strategy) {
  const int layer = state.producer[id.value()];
  const auto in_ir = state.in_ir.find(id);
  std::optional<ValueRange> range =
      RangeOf(strategy, state.statistics.at(id), state.settings[layer].activation_bits,
              in_ir == state.in_ir.end() ? std::nullopt : std::optional(in_ir->second));
  if (range.has_value()) {
    range = WithStated(state, id, *range);
    const auto read = state.read_ranges.find(id);
    const bool whole = strategy.kind == QuantStrategy::Kind::kInIr;
    if (whole || read == state.read_ranges.end()) return *range;
    return ValueRange{std::max(range->min, read->second.min),
                      std::min(range->max, read->second.max)};
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "layer '", Printable(state.layers[layer].name),
      "' has the strategy in_ir, but the model says nothing about the range of its result"));
}

QuantParams ParamsForRange(const QuantState& state, ValueId id, ValueRange range) {
  const LayerSettings& settings = state.settings[state.producer[id.value()]];
  const bool estimated =
      settings.activation_strategy.kind != QuantStrategy::Kind::kInIr && !state.stated.contains(id);
  if (settings.activation_bits >= kHeadroomBits && estimated && !state.fixed_point) {
    range = {range.min * kHeadroom, range.max * kHeadroom};
  }
  QuantParams params = ActivationParams(settings.activation_method, settings.activation_bits, range,
                                        settings.force_dtype_int);
  if (state.fixed_point) RoundScalesUp(params);
  const Op op = state.root(state.producer[id.value()]).op;
  if (op == Op::kFloor || op == Op::kRound) MakeWholeNumbersExact(params);
  return params;
}

absl::StatusOr<std::map<ValueId, QuantParams>> ChooseActivationParams(const QuantState& state) {
  std::map<ValueId, ValueRange> ranges;
  for (size_t i = 0; i < state.layers.size(); ++i) {
    for (const ValueId id : state.layers[i].outputs) {
      if (state.SourceOf(id) != id) continue;
      ASSIGN_OR_RETURN(ranges[id], RangeOfValue(state, id, state.settings[i].activation_strategy));
    }
  }
  if (state.options->unify_scales_for_concat) {
    for (size_t i = 0; i < state.layers.size(); ++i) {
      if (state.root(static_cast<int>(i)).op != Op::kConcat) continue;
      std::set<ValueId> sources = {state.layers[i].outputs[0]};
      ConcatSources(state, static_cast<int>(i), state.options->unify_scales_for_concat_max_depth,
                    sources);
      ValueRange all;
      for (const ValueId id : sources) all = Union(all, ranges.at(id));
      for (const ValueId id : sources) ranges[id] = all;
    }
  }
  for (const auto& [input, output] : state.states) {
    const ValueId source = state.SourceOf(output);
    if (!ranges.contains(input) || !ranges.contains(source)) continue;  // a constant
    ranges[input] = ranges[source] = Union(ranges.at(input), ranges.at(source));
  }
  std::map<ValueId, QuantParams> given;
  if (state.options->input_bytes.has_value()) {
    const InputBytes& bytes = *state.options->input_bytes;
    for (const ValueId input : state.graph->inputs()) {
      given[input] = {DType::kUint8, 0, 255, -1, {bytes.scale}, {bytes.zero_point}};
    }
    for (const auto& [input, output] : state.states) given.erase(input);
  }
  std::map<ValueId, QuantParams> values;
  for (const Layer& layer : state.layers) {
    for (const ValueId id : layer.outputs) {
      const ValueId source = state.SourceOf(id);
      const auto stated = given.find(id);
      if (stated != given.end()) {
        values[id] = stated->second;
      } else {
        values[id] = source == id ? ParamsForRange(state, id, ranges.at(id)) : values.at(source);
      }
    }
  }
  return values;
}

FakeQuants QuantsOf(const QuantState& state, const std::map<ValueId, QuantParams>& values) {
  FakeQuants quants(state.graph->value_count());
  for (const auto& [id, params] : values) {
    if (params.dtype != DType::kInvalid && params.axis < 0 && state.producer[id.value()] >= 0 &&
        state.IsQuantized(id)) {
      quants[id.value()] = FakeQuant(params);
    }
  }
  return quants;
}

namespace {

// The rows of a Softmax's operand.
struct SoftmaxRows {
  int64_t length = 1;
  int64_t step = 1;  // between the elements of a row

  // The least of what the rows have as their largest element. Rows of equal elements do not count:
  // cut to any range, they still give equal shares.
  double LeastTop(absl::Span<const float> x) const {
    double least = std::numeric_limits<double>::infinity();
    const auto count = static_cast<int64_t>(x.size());
    for (int64_t start = 0; start < count; start += length * step) {
      for (int64_t inner = 0; inner < step; ++inner) {
        float low = x[start + inner];
        float high = low;
        for (int64_t i = 1; i < length; ++i) {
          const float value = x[start + inner + i * step];
          low = std::min(low, value);
          high = std::max(high, value);
        }
        if (low < high) least = std::min(least, double{high});
      }
    }
    return least;
  }
};

std::map<ValueId, SoftmaxRows> FindSoftmaxRows(const QuantState& state) {
  std::map<ValueId, SoftmaxRows> rows;
  for (size_t i = 0; i < state.layers.size(); ++i) {
    const Node& node = state.root(static_cast<int>(i));
    if (node.op != Op::kSoftmax || state.layers[i].inputs.size() != 1) continue;
    const ValueId operand = state.layers[i].inputs[0];
    const Shape& shape = state.graph->type(operand).shape;
    const auto rank = static_cast<int64_t>(shape.size());
    // Shape inference has refused any other axis.
    const int64_t axis = AxisAttr(node, "axis", rank, rank - 1).value_or(rank - 1);
    const ChannelWalk walk = WalkOf(shape, static_cast<int>(axis));
    // Two ways to cut one value into rows: no statement holds for both.
    if (!rows.emplace(operand, SoftmaxRows{walk.channels, walk.inner}).second) rows[operand] = {};
  }
  return rows;
}

}  // namespace

absl::StatusOr<std::optional<NotFinite>> Calibrate(QuantState& state, const SampleSet& samples) {
  std::vector<int> collector_of(state.graph->value_count(), -1);
  std::vector<StatisticsCollector> collectors;
  std::vector<ValueId> ids;
  for (size_t i = 0; i < state.layers.size(); ++i) {
    const LayerSettings& settings = state.settings[i];
    for (const ValueId id : state.layers[i].outputs) {
      if (state.SourceOf(id) != id) continue;
      collector_of[id.value()] = static_cast<int>(collectors.size());
      const bool counts =
          state.options->save_statistic_info || ReadsHistogram(settings.activation_strategy);
      collectors.emplace_back(counts ? settings.histc_bins : 0, settings.momentum, settings.trim);
      ids.push_back(id);
    }
  }
  const FloatExecutor& executor = *state.executor;
  FloatExecutor::Arena arena = executor.MakeArena();
  std::optional<NotFinite> not_finite;
  const std::map<ValueId, SoftmaxRows> softmax_rows = FindSoftmaxRows(state);
  for (const auto& [id, rows] : softmax_rows) {
    state.least_tops[id] = std::numeric_limits<double>::infinity();
  }
  const FloatExecutor::Hook hook = [&](ValueId id, absl::Span<float> value) {
    const auto rows = softmax_rows.find(id);
    if (rows != softmax_rows.end()) {
      double& least = state.least_tops.at(id);
      least = std::min(least, rows->second.LeastTop(value));
    }
    const int collector = collector_of[id.value()];
    if (collector < 0 || not_finite.has_value() || collectors[collector].Add(value)) return;
    const auto* const first =
        std::find_if(value.begin(), value.end(), [](float x) { return !std::isfinite(x); });
    not_finite = NotFinite{state.producer[id.value()], 0, *first};
  };
  std::vector<std::vector<float>> inputs;
  for (int64_t i = 0; i < samples.size(); ++i) {
    RETURN_IF_ERROR(samples.Read(i, inputs));
    for (size_t k = 0; k < inputs.size(); ++k) executor.SetInput(arena, k, inputs[k]);
    RETURN_IF_ERROR(executor.RunAll(arena, hook));
    if (not_finite.has_value()) {
      not_finite->sample = i;
      return not_finite;
    }
    const bool last = i + 1 == samples.size();
    if (!last && (i + 1) % state.options->calibration_batch_size != 0) continue;
    for (StatisticsCollector& collector : collectors) collector.EndBatch();
  }
  for (size_t i = 0; i < ids.size(); ++i) state.statistics[ids[i]] = collectors[i].Take();
  return std::nullopt;
}

std::map<ValueId, std::string> NamesOfValues(const QuantState& state) {
  std::map<ValueId, std::string> names;
  for (const Layer& layer : state.layers) {
    for (size_t k = 0; k < layer.outputs.size(); ++k) {
      names[layer.outputs[k]] = k == 0 ? layer.name : absl::StrCat(layer.name, ":", k);
    }
  }
  return names;
}

}  // namespace npuc
