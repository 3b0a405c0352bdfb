#include "compiler_core/report/histogram.h"

#include <algorithm>
#include <cmath>

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
  double sum = 0;
  for (const float value : values) {
    if (!std::isfinite(value)) {
      ++result.not_finite;
      continue;
    }
    if (result.total == 0) result.min = result.max = value;
    result.min = std::min<double>(result.min, value);
    result.max = std::max<double>(result.max, value);
    sum += value;
    ++result.total;
    if (value == 0.0f) ++result.zeros;
  }
  if (result.total == 0) return result;
  result.mean = sum / static_cast<double>(result.total);
  result.low = result.min;
  result.high = result.max;
  if (result.low == result.high) {
    result.low -= 0.5;
    result.high += 0.5;
  }
  const double bins_per_unit = bins / (result.high - result.low);
  std::vector<double> edges;
  for (int64_t i = 0; i <= bins; ++i) edges.push_back(result.Edge(i));
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    int64_t bin = static_cast<int64_t>((value - result.low) * bins_per_unit);
    bin = std::clamp<int64_t>(bin, 0, bins - 1);
    // The product is rounded, the edges decide.
    if (bin > 0 && value < edges[bin]) --bin;
    if (bin + 1 < bins && value >= edges[bin + 1]) ++bin;
    ++result.counts[bin];
  }
  return result;
}

}  // namespace npuc
