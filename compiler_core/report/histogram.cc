#include "compiler_core/report/histogram.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

#include "compiler_core/base/status.h"

namespace npuc {

double Histogram::Edge(int64_t i) const {
  const int64_t bins = static_cast<int64_t>(counts.size());
  if (i >= bins) return high;
  return low + static_cast<double>(i) * ((high - low) / static_cast<double>(bins));
}

namespace {

struct Extent {
  float least = std::numeric_limits<float>::infinity();
  float most = -std::numeric_limits<float>::infinity();
  double sum = 0;  // finite where all values are: no sum of floats is too large for a double
};

// Eight extents side by side, each of every eighth value: no step waits for the one before it.
Extent ExtentOf(absl::Span<const float> values) {
  constexpr size_t kSide = 8;
  std::array<float, kSide> least;
  std::array<float, kSide> most;
  std::array<double, kSide> sum{};
  least.fill(Extent().least);
  most.fill(Extent().most);
  const auto take = [&](size_t side, float value) {
    least[side] = value < least[side] ? value : least[side];
    most[side] = value > most[side] ? value : most[side];
    sum[side] += value;
  };
  size_t i = 0;
  for (; i + kSide <= values.size(); i += kSide) {
    for (size_t side = 0; side < kSide; ++side) take(side, values[i + side]);
  }
  for (; i < values.size(); ++i) take(0, values[i]);
  return {*std::min_element(least.begin(), least.end()),
          *std::max_element(most.begin(), most.end()),
          std::accumulate(sum.begin(), sum.end(), 0.0)};
}

}  // namespace

Histogram MakeHistogram(absl::Span<const float> values, int bins) {
  NPUC_CHECK(bins >= 1);
  const Extent extent = ExtentOf(values);
  if (!std::isfinite(extent.sum)) {
    std::vector<float> finite;
    std::copy_if(values.begin(), values.end(), std::back_inserter(finite),
                 [](float value) { return std::isfinite(value); });
    Histogram result = MakeHistogram(finite, bins);
    result.not_finite = static_cast<int64_t>(values.size() - finite.size());
    return result;
  }
  Histogram result;
  result.counts.assign(static_cast<size_t>(bins), 0);
  result.total = static_cast<int64_t>(values.size());
  if (result.total == 0) return result;
  result.zeros = std::count(values.begin(), values.end(), 0.0f);
  result.mean = extent.sum / static_cast<double>(result.total);
  result.low = result.min = extent.least;
  result.high = result.max = extent.most;
  if (result.low == result.high) {
    const double half = std::max(0.5, std::fabs(result.low) * 0x1p-20);  // of 1e30, 0.5 is nothing
    result.low -= half;
    result.high += half;
  }
  const double low = result.low;
  const double bins_per_unit = bins / (result.high - result.low);
  // Nothing is below the first bin or above the last one.
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<double> edges = {-kInfinity};
  for (int i = 1; i < bins; ++i) edges.push_back(result.Edge(i));
  edges.push_back(kInfinity);
  for (const float value : values) {
    int bin = std::min(static_cast<int>((value - low) * bins_per_unit), bins - 1);
    // The product is rounded, the edges decide.
    bin += static_cast<int>(value >= edges[bin + 1]) - static_cast<int>(value < edges[bin]);
    ++result.counts[bin];
  }
  return result;
}

}  // namespace npuc
