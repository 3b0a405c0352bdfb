#include "compiler_core/quant/ranges.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "compiler_core/base/status.h"

namespace npuc {
namespace {

using StrategyKind = QuantStrategy::Kind;

// --- KLD -----------------------------------------------------------------------------------------

// A histogram far away from 0 has more bins before it than in it.
constexpr int64_t kMostKldBins = 1 << 14;

struct AbsoluteHistogram {
  std::vector<double> counts;  // bin i holds [i, i+1) * width
  double width = 0;
};

// Of absolute values: the source's own bins, which never straddle 0.
AbsoluteHistogram TakeAbsolute(const StreamHistogram& source) {
  const auto count = static_cast<int64_t>(source.counts().size());
  const auto magnitude = [](int64_t bin) { return bin >= 0 ? bin : -1 - bin; };
  const int64_t bins =
      std::max(magnitude(source.first()), magnitude(source.first() + count - 1)) + 1;
  const int64_t merged = (bins + kMostKldBins - 1) / kMostKldBins;
  AbsoluteHistogram out;
  out.width = source.width() * static_cast<double>(merged);
  out.counts.resize(static_cast<size_t>((bins + merged - 1) / merged));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t bin = magnitude(source.first() + i) / merged;
    out.counts[static_cast<size_t>(bin)] += static_cast<double>(source.counts()[i]);
  }
  return out;
}

// How far the first `count` bins, with all beyond put into the last one, are from the same in
// `levels` levels that spread their mass evenly over the bins that are not empty. The levels have
// nothing of what is beyond; where the last bin is empty without it, they are infinitely far.
double Divergence(const std::vector<double>& histogram, int64_t count, int64_t levels,
                  double beyond, double total) {
  double divergence = 0;
  double kept = 0;
  for (int64_t level = 0; level < levels; ++level) {
    const int64_t first = (level * count + levels - 1) / levels;
    const int64_t last = ((level + 1) * count + levels - 1) / levels;
    double mass = 0;
    int64_t filled = 0;
    for (int64_t i = first; i < last; ++i) {
      mass += histogram[i];
      if (histogram[i] > 0) ++filled;
    }
    kept += mass;
    if (filled == 0) continue;
    const double even = mass / static_cast<double>(filled);
    for (int64_t i = first; i < last; ++i) {
      if (histogram[i] <= 0) continue;
      const double p = histogram[i] + (i == count - 1 ? beyond : 0);
      divergence += p * std::log(p / even);
    }
  }
  if (kept <= 0 || (beyond > 0 && histogram[count - 1] <= 0)) return HUGE_VAL;
  // Both are taken as distributions: p of sum `total`, the levels of sum `kept`.
  return divergence / total + std::log(kept / total);
}

double KldThreshold(const TensorStatistics& statistics, int bits) {
  const double extreme = std::max(std::fabs(statistics.extrema_min), statistics.extrema_max);
  if (extreme <= 0 || statistics.histogram.empty()) return extreme;
  AbsoluteHistogram absolute = TakeAbsolute(statistics.histogram);
  std::vector<double>& histogram = absolute.counts;
  const auto bins = static_cast<int64_t>(histogram.size());
  if (bins < 4) return extreme;
  // Zero is exact at any scale: what stands there (half of all values behind a ReLU) must not make
  // every wider range look coarse. Source: NVIDIA pytorch-quantization, calib/histogram.py.
  histogram[0] = histogram[1];
  const bool is_unsigned = statistics.extrema_min >= 0;
  const int64_t levels = std::min<int64_t>(int64_t{1} << (is_unsigned ? bits : bits - 1), bins / 2);
  double total = 0;
  for (const double count : histogram) total += count;
  constexpr int64_t kThresholds = 128;
  const int64_t step = std::max<int64_t>((bins - levels) / kThresholds, 1);
  double inside = 0;
  int64_t summed = 0;
  double best = HUGE_VAL;
  int64_t threshold = bins;
  for (int64_t count = levels; count <= bins; count += step) {
    if (count + step > bins) count = bins;  // the last one is all of it
    for (; summed < count; ++summed) inside += histogram[summed];
    const double divergence =
        Divergence(histogram, count, levels, std::max(total - inside, 0.0), total);
    if (divergence > best) continue;  // of equals the widest
    best = divergence;
    threshold = count;
  }
  return std::min(extreme, absolute.width * static_cast<double>(threshold));
}

// --- Percentile ----------------------------------------------------------------------------------

// The value below which `share` of the counted values lie.
double Quantile(const StreamHistogram& histogram, double share) {
  const double wanted = share * static_cast<double>(histogram.total());
  double below = 0;
  for (size_t i = 0; i < histogram.counts().size(); ++i) {
    const auto count = static_cast<double>(histogram.counts()[i]);
    if (below + count >= wanted && count > 0) {
      return histogram.low(static_cast<int64_t>(i)) +
             histogram.width() * std::clamp((wanted - below) / count, 0.0, 1.0);
    }
    below += count;
  }
  return histogram.low(static_cast<int64_t>(histogram.counts().size()));
}

ValueRange PercentileRange(const TensorStatistics& s, double share) {
  if (s.histogram.empty()) return {s.extrema_min, s.extrema_max};
  if (s.extrema_min >= 0) return {s.extrema_min, Quantile(s.histogram, share)};
  const double tail = (1 - share) / 2;
  return {Quantile(s.histogram, tail), Quantile(s.histogram, 1 - tail)};
}

// --- ACIQ ----------------------------------------------------------------------------------------

// t with t * e^t = 3 * 4^bits: the half width over b, the mean absolute deviation, of least error
// 2 b^2 e^(-t) + t^2 b^2 / (3 * 4^bits).
double LaplaceWidth(int bits) {
  const double right = 3 * std::pow(4.0, bits);
  double t = std::log(right);
  for (int i = 0; i < 60; ++i) t -= (t + std::log(t) - std::log(right)) / (1 + 1 / t);
  return t;
}

// The half width over sigma of least error
// (1 + t^2) (1 - erf(t / sqrt 2)) - t sqrt(2 / pi) e^(-t^2 / 2) + t^2 / (3 * 4^bits).
double GaussWidth(int bits) {
  const auto error = [&](double t) {
    constexpr double kPi = 3.14159265358979323846;
    return (1 + t * t) * std::erfc(t / std::sqrt(2.0)) -
           t * std::sqrt(2 / kPi) * std::exp(-t * t / 2) + t * t / (3 * std::pow(4.0, bits));
  };
  double low = 0.5;
  double high = 12;
  constexpr double kGolden = 0.6180339887498949;
  for (int i = 0; i < 100; ++i) {
    const double a = high - (high - low) * kGolden;
    const double b = low + (high - low) * kGolden;
    (error(a) < error(b) ? high : low) = error(a) < error(b) ? b : a;
  }
  return (low + high) / 2;
}

double MeanAbsoluteDeviation(const TensorStatistics& s) {
  double sum = 0;
  double total = 0;
  for (size_t i = 0; i < s.histogram.counts().size(); ++i) {
    const auto count = static_cast<double>(s.histogram.counts()[i]);
    const double middle = s.histogram.low(static_cast<int64_t>(i)) + s.histogram.width() / 2;
    sum += count * std::fabs(middle - s.running_mean);
    total += count;
  }
  return total > 0 ? sum / total : 0;
}

ValueRange Around(double mean, double half_width) { return {mean - half_width, mean + half_width}; }

}  // namespace

std::optional<ValueRange> RangeOf(const QuantStrategy& strategy, const TensorStatistics& s,
                                  int bits, const std::optional<ValueRange>& in_ir) {
  NPUC_CHECK(!IsMeasured(strategy));
  ValueRange range{s.extrema_min, s.extrema_max};
  // Behind a ReLU half of the distribution is missing: one bit more covers the other half.
  const int aciq_bits = s.extrema_min >= 0 ? bits + 1 : bits;
  switch (strategy.kind) {
    case StrategyKind::kMean:
      range = {s.running_min, s.running_max};
      break;
    case StrategyKind::kStd:
      range = Around(s.running_mean, strategy.parameter * s.running_std);
      break;
    case StrategyKind::kKld: {
      const double threshold = KldThreshold(s, bits);
      range = {-threshold, threshold};
      break;
    }
    case StrategyKind::kPercentile:
      range = PercentileRange(s, strategy.parameter);
      break;
    case StrategyKind::kAciqLaplace:
      range = Around(s.running_mean, LaplaceWidth(aciq_bits) * MeanAbsoluteDeviation(s));
      break;
    case StrategyKind::kAciqGauss:
      range = Around(s.running_mean, GaussWidth(aciq_bits) * s.running_std);
      break;
    case StrategyKind::kInIr:
      if (!in_ir.has_value()) return std::nullopt;
      return ValueRange{std::min(in_ir->min, 0.0), std::max(in_ir->max, 0.0)};
    case StrategyKind::kExtrema:
    case StrategyKind::kBestSingle:
    case StrategyKind::kAuto:
      break;
  }
  range.min = std::max(range.min, s.extrema_min);
  range.max = std::min(range.max, s.extrema_max);
  return ValueRange{std::min(range.min, 0.0), std::max(range.max, 0.0)};
}

absl::string_view MissingFor(const QuantStrategy& strategy, const TensorStatistics& statistics) {
  const StrategyKind kind = strategy.kind;
  const bool reads_deviation = kind == StrategyKind::kStd || kind == StrategyKind::kAciqGauss ||
                               kind == StrategyKind::kAciqLaplace;
  if (reads_deviation && !statistics.has_deviation) return "running_mean and running_std";
  if (!IsMeasured(strategy) && ReadsHistogram(strategy) && statistics.histogram.empty()) {
    return "histogram";
  }
  return "";
}

bool ReadsHistogram(const QuantStrategy& strategy) {
  return strategy.kind == StrategyKind::kKld || strategy.kind == StrategyKind::kPercentile ||
         strategy.kind == StrategyKind::kAciqLaplace || IsMeasured(strategy);
}

}  // namespace npuc
