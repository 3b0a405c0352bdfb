#include "compiler_core/quant/table_runs.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "compiler_core/base/status.h"
#include "compiler_core/base/table_bits.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/ops/quantize.h"
#include "compiler_core/ops/shape_util.h"

namespace npuc {
namespace {

// The table that a layer reads with a 16-bit operand; none where it reads none, or where lowering
// refuses its function.
std::optional<StoredTable> TableOf(const QuantState& state, int layer) {
  const Layer& l = state.layers[layer];
  const bool is_softmax = TraitsOf(state.root(layer).op).integer == IntegerRule::kSoftmax;
  const bool is_function = IsTableFunction(*state.graph, l);
  if (state.settings[layer].in_float || (!is_softmax && !is_function)) return std::nullopt;
  const auto operand = state.values.find(l.inputs[0]);
  const auto result = state.values.find(l.outputs[0]);
  if (operand == state.values.end() || result == state.values.end()) return std::nullopt;
  const QuantParams& from = operand->second;
  const QuantParams& to = result->second;
  if (SizeOf(from.dtype) == 1) return std::nullopt;
  LayerQuant settings;
  settings.lut_bits = state.settings[layer].lut_bits;
  settings.multiplier_bits = state.settings[layer].multiplier_bits;
  const int least = state.fixed_point ? kLeastFixedPointTableBits : kMinLutBits;
  if (is_softmax) return MakeExponentialTable(from, to.scale[0], settings, least);
  absl::StatusOr<StoredTable> table = MakeFunctionTable(*state.graph, l, from, to, settings, least);
  if (!table.ok()) return std::nullopt;
  return *std::move(table);
}

}  // namespace

void SettleTables(QuantState& state) {
  for (size_t i = 0; i < state.layers.size(); ++i) {
    int& bits = state.settings[i].lut_bits;
    if (bits != kChosenLutBits) continue;
    const std::optional<StoredTable> table = TableOf(state, static_cast<int>(i));
    if (table.has_value()) bits = table->index_bits;
  }
}

TableRuns::TableRuns(const QuantState& state) : state_(&state) {
  for (size_t i = 0; i < state.layers.size(); ++i) {
    const int layer = static_cast<int>(i);
    // A LogSoftmax has further tables, of its logarithm.
    const bool is_log = state.root(layer).op == Op::kLogSoftmax;
    if (state.settings[i].lut_bits == kMaxLutBits && !is_log) continue;
    std::optional<StoredTable> table = TableOf(state, layer);
    if (table.has_value()) {
      tables_.emplace(state.layers[i].nodes.front(), Entry{layer, *std::move(table)});
    }
  }
}

void TableRuns::Before(NodeId node, const FloatExecutor& executor,
                       const FloatExecutor::Arena& arena) {
  const auto found = tables_.find(node);
  if (found == tables_.end()) return;
  const Entry& entry = found->second;
  const Layer& layer = state_->layers[entry.layer];
  const absl::Span<const float> operand = executor.ValueOf(arena, layer.inputs[0]);
  const bool is_softmax = TraitsOf(state_->root(entry.layer).op).integer == IntegerRule::kSoftmax;
  results_[layer.outputs[0]] = is_softmax ? SoftmaxOf(entry, operand) : FunctionOf(entry, operand);
}

void TableRuns::Replace(ValueId id, absl::Span<float> value) {
  const auto found = results_.find(id);
  if (found == results_.end()) return;
  std::copy(found->second.begin(), found->second.end(), value.begin());
  results_.erase(found);
}

std::vector<float> TableRuns::FunctionOf(const Entry& entry,
                                         absl::Span<const float> operand) const {
  const Layer& layer = state_->layers[entry.layer];
  const QuantParams& from = state_->values.at(layer.inputs[0]);
  const QuantParams& to = state_->values.at(layer.outputs[0]);
  std::vector<float> results;
  results.reserve(operand.size());
  for (const float x : operand) {
    const int64_t stored = entry.table.At(QuantizeValue(from, 0, x) - LowestOf(from.dtype));
    results.push_back(
        static_cast<float>(static_cast<double>(stored - to.zero_point[0]) * to.scale[0]));
  }
  return results;
}

std::vector<float> TableRuns::SoftmaxOf(const Entry& entry, absl::Span<const float> operand) const {
  constexpr int64_t kTop = 65535;
  const Layer& layer = state_->layers[entry.layer];
  const QuantParams& from = state_->values.at(layer.inputs[0]);
  const Shape& shape = state_->graph->type(layer.outputs[0]).shape;
  const auto rank = static_cast<int64_t>(shape.size());
  // Shape inference has refused any other axis.
  const auto axis = static_cast<size_t>(
      AxisAttr(state_->root(entry.layer), "axis", rank, rank - 1).value_or(rank - 1));
  const int64_t length = shape[axis];
  int64_t inner = 1;
  for (size_t d = axis + 1; d < shape.size(); ++d) inner *= shape[d];
  const bool is_log = state_->root(entry.layer).op == Op::kLogSoftmax;
  const LargestShare share = is_log ? MakeLargestShare(length) : LargestShare();
  const double below = DistanceStep(from);
  std::vector<float> results(operand.size());
  std::vector<int64_t> row(static_cast<size_t>(length));
  const int64_t rows = length == 0 ? 0 : static_cast<int64_t>(operand.size()) / length;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t begin = r / inner * inner * length + r % inner;
    const auto at = [&](int64_t i) { return static_cast<size_t>(begin + i * inner); };
    for (int64_t i = 0; i < length; ++i) {
      row[static_cast<size_t>(i)] = QuantizeValue(from, 0, operand[at(i)]);
    }
    const int64_t largest = *std::max_element(row.begin(), row.end());
    double sum = 0;
    for (const int64_t number : row) {
      sum += static_cast<double>(entry.table.At(number - largest + kTop));
    }
    sum = std::max(sum, 1.0);
    const double logarithm =
        is_log ? static_cast<double>(share.Logarithm(kExponentialOne / sum)) * share.step : 0;
    for (int64_t i = 0; i < length; ++i) {
      const int64_t distance = row[static_cast<size_t>(i)] - largest;
      const double result =
          is_log ? std::nearbyint(static_cast<double>(distance) * from.scale[0] / below) * below +
                       logarithm
                 : static_cast<double>(entry.table.At(distance + kTop)) / sum;
      results[at(i)] = static_cast<float>(result);
    }
  }
  return results;
}

}  // namespace npuc
