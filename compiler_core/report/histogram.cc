#include "compiler_core/report/histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler_core/base/status.h"

namespace npuc {

double Histogram::Edge(int64_t i) const {
  const int64_t bins = static_cast<int64_t>(counts.size());
  if (i >= bins) return high;
  return low + static_cast<double>(i) * ((high - low) / static_cast<double>(bins));
}

Histogram MakeHistogram(absl::Span<const float> values, int bins) {
  NPUC_CHECK(bins >= 1);
  Histogram result;
  result.counts.assign(static_cast<size_t>(bins), 0);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  float least = kInfinity;
  float most = -kInfinity;
  double sum = 0;
  for (const float value : values) {
    if (!std::isfinite(value)) {
      ++result.not_finite;
      continue;
    }
    least = std::min(least, value);
    most = std::max(most, value);
    sum += value;
    if (value == 0.0f) ++result.zeros;
  }
  result.total = static_cast<int64_t>(values.size()) - result.not_finite;
  if (result.total == 0) return result;
  result.mean = sum / static_cast<double>(result.total);
  result.low = result.min = least;
  result.high = result.max = most;
  if (result.low == result.high) {
    result.low -= 0.5;
    result.high += 0.5;
  }
  const double low = result.low;
  const double bins_per_unit = bins / (result.high - result.low);
  // Nothing is below the first bin or above the last one.
  std::vector<double> edges = {-kInfinity};
  for (int i = 1; i < bins; ++i) edges.push_back(result.Edge(i));
  edges.push_back(kInfinity);
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    int bin = std::min(static_cast<int>((value - low) * bins_per_unit), bins - 1);
    // The product is rounded, the edges decide.
    bin += static_cast<int>(value >= edges[bin + 1]) - static_cast<int>(value < edges[bin]);
    ++result.counts[bin];
  }
  return result;
}

}  // namespace npuc
