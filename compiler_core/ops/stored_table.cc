#include "compiler_core/ops/stored_table.h"

#include <algorithm>
#include <cmath>

#include "compiler_core/base/fixed_point.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/layer_function.h"
#include "compiler_core/ops/layers.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/ops/quantize.h"

namespace npuc {
namespace {

constexpr int64_t kPlaces = 65536;  // of a 16-bit operand; a table goes one further

// A function at every place and at the one behind the last: its entry there, and the value that the
// entry stands for, in the same unit. NaN: nothing is asked of the result there.
struct Samples {
  std::vector<int64_t> entries;
  std::vector<double> values;
  int64_t first = 0;  // the places that the operand can have
  int64_t last = 0;
};

// The greatest distance of an interpolation with 2^bits + 1 entries; ends above `enough`.
double WorstDistance(const Samples& samples, int bits, double enough) {
  const int shift = 16 - bits;
  const int64_t mask = (int64_t{1} << shift) - 1;
  double worst = 0;
  for (int64_t place = samples.first; place <= samples.last && worst <= enough; ++place) {
    const auto low = static_cast<size_t>(place & ~mask);
    const size_t high = std::min<size_t>(low + static_cast<size_t>(mask) + 1, kPlaces);
    const int64_t result =
        Interpolate(samples.entries[low], samples.entries[high], place & mask, shift);
    const double distance =
        std::fabs(static_cast<double>(result) - samples.values[static_cast<size_t>(place)]);
    if (distance > worst) worst = distance;  // not where it is NaN
  }
  return worst;
}

// With as many entries as `settings` say, or the fewest whose distance is at most `most`.
StoredTable TableOf(const Samples& samples, double most, const LayerQuant& settings,
                    int least_bits) {
  StoredTable table;
  table.needed_bits = kMinLutBits;
  while (table.needed_bits < kMaxLutBits &&
         WorstDistance(samples, table.needed_bits, most) > most) {
    ++table.needed_bits;
  }
  table.index_bits = settings.lut_bits == kChosenLutBits
                         ? std::max(table.needed_bits, least_bits)
                         : std::clamp(settings.lut_bits, kMinLutBits, kMaxLutBits);
  table.worst_steps = WorstDistance(samples, table.index_bits, HUGE_VAL);
  const int64_t step = int64_t{1} << (16 - table.index_bits);
  for (int64_t place = 0; place <= kPlaces; place += step) {
    table.entries.push_back(samples.entries[static_cast<size_t>(place)]);
  }
  return table;
}

int64_t PlaceCount(const QuantParams& from) { return SizeOf(from.dtype) == 1 ? 256 : kPlaces + 1; }

// The logarithm of 16-bit fractions of one, of those below `least` the logarithm of it.
StoredTable LogarithmTable(double least, double step) {
  constexpr int kIndexBits = 12;
  StoredTable table;
  table.index_bits = kIndexBits;
  for (int64_t i = 0; i <= int64_t{1} << kIndexBits; ++i) {
    const double fraction = std::max(std::ldexp(static_cast<double>(i), -kIndexBits), least);
    table.entries.push_back(RoundHalfEven(std::log(fraction) / step));
  }
  return table;
}

Samples SamplesFor(const QuantParams& from) {
  Samples samples;
  samples.first = from.qmin - LowestOf(from.dtype);
  samples.last = from.qmax - LowestOf(from.dtype);
  return samples;
}

}  // namespace

int64_t StoredTable::At(int64_t place) const {
  if (entries.size() == 256) return entries[static_cast<size_t>(place)];
  const int shift = 16 - index_bits;
  const auto index = static_cast<size_t>(place >> shift);
  const int64_t rest = place & ((int64_t{1} << shift) - 1);
  return Interpolate(entries[index], entries[index + 1], rest, shift);
}

bool IsTableFunction(const Graph& graph, const Layer& layer) {
  if (layer.inputs.size() != 1 || layer.outputs.size() != 1) return false;
  const bool is_activation = layer.type == "Activation";
  const IntegerRule rule = TraitsOf(graph.node(layer.root).op).integer;
  if (!is_activation && rule == IntegerRule::kFunction) return true;
  if (!is_activation && rule != IntegerRule::kActivation) return false;
  return !std::all_of(layer.nodes.begin(), layer.nodes.end(),
                      [&graph](NodeId id) { return ClampOf(graph, graph.node(id)).has_value(); });
}

absl::StatusOr<StoredTable> MakeFunctionTable(const Graph& graph, const Layer& layer,
                                              const QuantParams& from, const QuantParams& to,
                                              const LayerQuant& settings, int least_bits) {
  std::vector<float> points;
  for (int64_t place = 0; place < PlaceCount(from); ++place) {
    const int64_t stored = LowestOf(from.dtype) + place - from.zero_point[0];
    points.push_back(static_cast<float>(static_cast<double>(stored) * from.scale[0]));
  }
  ASSIGN_OR_RETURN(const std::vector<double> results, EvaluateFunction(graph, layer, points));
  Samples samples = SamplesFor(from);
  for (const double result : results) {
    samples.entries.push_back(StoredOf(result, to, 0, settings));
    samples.values.push_back(
        std::clamp(result / to.scale[0] + static_cast<double>(to.zero_point[0]),
                   static_cast<double>(to.qmin), static_cast<double>(to.qmax)));
  }
  if (SizeOf(from.dtype) == 1) return StoredTable{.entries = std::move(samples.entries)};
  return TableOf(samples, kMostTableSteps, settings, least_bits);
}

StoredTable MakeExponentialTable(const QuantParams& from, double result_step,
                                 const LayerQuant& settings, int least_bits) {
  constexpr int64_t kMostEntry = int64_t{1} << 31;
  const bool is_wide = SizeOf(from.dtype) > 1;
  Samples samples;
  // The largest number has place 65535, or 255. A row's numbers are at most as far from it as the
  // operand's range is wide.
  const int64_t top = is_wide ? kPlaces - 1 : 255;
  samples.first = top - (from.qmax - from.qmin);
  samples.last = top;
  for (int64_t place = 0; place < PlaceCount(from); ++place) {
    const double value =
        kExponentialOne * std::exp(-static_cast<double>(top - place) * from.scale[0]);
    samples.entries.push_back(std::min(RoundHalfEven(value), kMostEntry));
    samples.values.push_back(std::min(value, static_cast<double>(kMostEntry)));
  }
  if (!is_wide) return StoredTable{.entries = std::move(samples.entries)};
  constexpr double kRoundings = 1;
  // An exponential 2^-12 off moves a share by a quarter of that at most; to halve it would take
  // 256 KiB for logits of 100. Coarser ones than 2^-9 are no curve, and their errors add up.
  constexpr double kLeastStep = 0x1p-11;
  constexpr double kMostStep = 0x1p-8;
  const double step = kExponentialOne * std::clamp(result_step, kLeastStep, kMostStep);
  StoredTable table = TableOf(samples, (kMostTableSteps - kRoundings) * step, settings, least_bits);
  table.worst_steps = table.worst_steps / step + kRoundings;
  return table;
}

int64_t LargestShare::Logarithm(double share) const {
  const auto place = [share](double part) {
    return std::clamp<int64_t>(RoundHalfEven(share / part), 0, kPlaces - 1);
  };
  const int64_t large = of_large.At(place(kPart));
  return of_small.entries.empty() ? large : large + of_small.At(place(kPart * cut));
}

double DistanceStep(const QuantParams& from) {
  const double steps = SizeOf(from.dtype) > 1 ? UINT16_MAX : UINT8_MAX;
  return from.scale[0] * steps / INT16_MAX;
}

LargestShare MakeLargestShare(int64_t row_length) {
  constexpr int64_t kShortRow = 256;  // its share has 8 bits at least
  LargestShare share;
  share.step = 16 * std::log(2.0) / INT16_MAX;
  if (row_length <= kShortRow) {
    share.of_large = LogarithmTable(LargestShare::kPart, share.step);
    return share;
  }
  int bits = 0;
  while ((row_length - 1) >> bits != 0) ++bits;
  share.cut = std::ldexp(1.0, -((bits + 1) / 2));
  share.of_large = LogarithmTable(share.cut, share.step);
  share.of_small = LogarithmTable(LargestShare::kPart, share.step);
  return share;
}

}  // namespace npuc
