#include "compiler_core/quant/read_ranges.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "compiler_core/ops/layer_function.h"
#include "compiler_core/ops/layers.h"
#include "compiler_core/ops/op.h"

namespace npuc {
namespace {

// A pass over so many equal parts leaves one of them at best; passes are repeated until one does
// not halve what is left. Three of them take 1e9 to 7.
constexpr int kParts = 1024;
constexpr int kMostPasses = 8;
// Both ends of a step of the result may be in a flat end, and rounding adds half of one.
constexpr double kFlatPartOfStep = 0.25;

// A function that jumps may do so between two points.
bool IsContinuous(Op op) {
  switch (op) {
    case Op::kEqual:
    case Op::kFloor:
    case Op::kGreater:
    case Op::kGreaterEqual:
    case Op::kRound:
    case Op::kSelect:
      return false;
    default:
      return TraitsOf(op).is_pointwise;
  }
}

bool IsFunction(const QuantState& state, int layer) {
  const Layer& reader = state.layers[layer];
  if (reader.inputs.size() != 1 || reader.outputs.size() != 1 || state.settings[layer].in_float) {
    return false;
  }
  return std::all_of(reader.nodes.begin(), reader.nodes.end(),
                     [&state](NodeId id) { return IsContinuous(state.graph->node(id).op); });
}

// Where the layer's function, followed from 0 to `end`, becomes flat: from there on its results
// stay within a part of the step that as many bits leave to what it does on this side of 0. The
// other side says nothing: Selu has results of any size there.
double FlatFrom(const QuantState& state, int layer, double end) {
  // Mixed precision may give the reader as many later.
  const int bits =
      state.options->mixed_precision_batches > 0 ? 16 : state.settings[layer].activation_bits;
  const double steps = std::ldexp(1.0, bits);
  std::optional<double> result_at_end;
  double flat = 0;
  for (int pass = 0; pass < kMostPasses && end != 0; ++pass) {
    std::vector<float> points;
    for (int i = 0; i <= kParts; ++i) points.push_back(static_cast<float>(end * i / kParts));
    const absl::StatusOr<std::vector<double>> results =
        EvaluateFunction(*state.graph, state.layers[layer], points);
    if (!results.ok() ||
        std::any_of(results->begin(), results->end(), [](double y) { return !std::isfinite(y); })) {
      break;
    }
    if (!result_at_end.has_value()) {
      const auto [least, most] = std::minmax_element(results->begin(), results->end());
      flat = (*most - *least) / steps * kFlatPartOfStep;
      result_at_end = results->back();
    }
    size_t first = kParts;
    while (first > 0 && std::fabs((*results)[first - 1] - *result_at_end) <= flat) --first;
    const double before = end;
    end = points[first];
    if (std::fabs(end) > std::fabs(before) / 2) break;
  }
  return end;
}

// So far below the largest element of its row an element's share is exp(-20): nothing that 16 bits
// hold, with room for rows that samples do not show.
constexpr double kSoftmaxReach = 20;
// A range is cut only where it becomes so many times less: the rows of other data may lie lower
// than those that were seen.
constexpr double kWorthCutting = 4;

// The part of `seen` that a Softmax reads of its operand; nullopt where it is most of it.
std::optional<ValueRange> SoftmaxNeeds(const QuantState& state, int layer, ValueRange seen) {
  const Layer& reader = state.layers[layer];
  if (state.root(layer).op != Op::kSoftmax || state.settings[layer].in_float) return std::nullopt;
  const auto top = state.least_tops.find(reader.inputs[0]);
  if (top == state.least_tops.end() || !std::isfinite(top->second)) return std::nullopt;
  const ValueRange need = {std::min(0.0, top->second - kSoftmaxReach), seen.max};
  const bool is_less = (need.max - need.min) * kWorthCutting < seen.max - seen.min;
  return is_less ? std::optional(need) : std::nullopt;
}

}  // namespace

std::map<ValueId, ValueRange> FindReadRanges(const QuantState& state) {
  // The part of each value with parameters of its own that its readers need; nullopt: all of it.
  std::map<ValueId, std::optional<ValueRange>> needs;
  const auto seen_of = [&state](ValueId id) {
    const TensorStatistics& seen = state.statistics.at(id);
    return WithStated(state, id,
                      {std::min(0.0, seen.extrema_min), std::max(0.0, seen.extrema_max)});
  };
  for (int i = 0; i < static_cast<int>(state.layers.size()); ++i) {
    for (const ValueId input : state.layers[i].inputs) {
      const ValueId source = state.SourceOf(input);
      if (!state.statistics.contains(source)) continue;
      const std::vector<ValueId>& results = state.layers[i].outputs;
      if (!results.empty() && state.SourceOf(results[0]) == source) continue;  // it moves values
      const auto [found, is_first] = needs.try_emplace(source, ValueRange{});
      if (!found->second.has_value()) continue;
      const ValueRange seen = seen_of(source);
      if (!IsFunction(state, i)) {
        const std::optional<ValueRange> read = SoftmaxNeeds(state, i, seen);
        found->second = read.has_value() ? std::optional(Union(*found->second, *read)) : read;
        continue;
      }
      found->second = {std::min(found->second->min, FlatFrom(state, i, seen.min)),
                       std::max(found->second->max, FlatFrom(state, i, seen.max))};
    }
  }
  for (const GraphOutput& output : state.graph->outputs()) {
    needs.erase(state.SourceOf(output.value));
  }
  for (const ValueId input : state.graph->inputs()) needs.erase(input);
  std::map<ValueId, ValueRange> cut;
  for (const auto& [id, need] : needs) {
    if (need.has_value() && *need != seen_of(id)) cut[id] = *need;
  }
  return cut;
}

}  // namespace npuc
