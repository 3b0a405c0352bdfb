#include "compiler_core/quant/statistics.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace npuc {
namespace {

// Least and greatest value and sums, in lanes of a fixed order so that the loop vectorises.
struct Sums {
  float min;
  float max;
  double sum;
  double squares;
};

Sums SumUp(absl::Span<const float> values) {
  constexpr size_t kLanes = 8;
  float low[kLanes];
  float high[kLanes];
  double sums[kLanes] = {};
  double squares[kLanes] = {};
  std::fill_n(low, kLanes, values[0]);
  std::fill_n(high, kLanes, values[0]);
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (size_t k = 0; k < kLanes; ++k) {
      const float x = values[i + k];
      low[k] = x < low[k] ? x : low[k];
      high[k] = x > high[k] ? x : high[k];
      const double wide = x;
      sums[k] += wide;
      squares[k] += wide * wide;
    }
  }
  for (; i < values.size(); ++i) {
    const float x = values[i];
    low[0] = std::min(low[0], x);
    high[0] = std::max(high[0], x);
    sums[0] += x;
    squares[0] += static_cast<double>(x) * x;
  }
  Sums out{low[0], high[0], 0, 0};
  for (size_t k = 0; k < kLanes; ++k) {
    out.min = std::min(out.min, low[k]);
    out.max = std::max(out.max, high[k]);
    out.sum += sums[k];
    out.squares += squares[k];
  }
  return out;
}

// floor(x) for |x| < 2^31.
int64_t FloorToInt(float x) {
  const int32_t truncated = static_cast<int32_t>(x);
  return truncated - (x < static_cast<float>(truncated) ? 1 : 0);
}

constexpr int kMinExponent = -126;
constexpr int kMaxExponent = 126;

}  // namespace

double StreamHistogram::width() const { return std::ldexp(1.0, exponent_); }

uint64_t StreamHistogram::total() const {
  uint64_t total = 0;
  for (const uint64_t count : counts_) total += count;
  return total;
}

void StreamHistogram::Double() {
  // Bin i goes to floor(i / 2).
  const auto half = [](int64_t i) { return i >= 0 ? i / 2 : -((-i + 1) / 2); };
  const int64_t first = half(first_);
  std::vector<uint64_t> merged;
  for (size_t i = 0; i < counts_.size(); ++i) {
    const auto to = static_cast<size_t>(half(first_ + static_cast<int64_t>(i)) - first);
    if (to >= merged.size()) merged.resize(to + 1);
    merged[to] += counts_[i];
  }
  first_ = first;
  counts_ = std::move(merged);
  ++exponent_;
}

void StreamHistogram::Cover(float min, float max) {
  const auto bin = [&](float x) { return std::floor(static_cast<double>(x) / width()); };
  if (counts_.empty()) {
    // The finest width that may do; widened below.
    const double range = static_cast<double>(max) - min;
    exponent_ = range > 0 ? std::ilogb(range / static_cast<double>(capacity_)) - 1 : -24;
    exponent_ = std::clamp(exponent_, kMinExponent, kMaxExponent);
  }
  while (true) {
    double low = bin(min);
    double high = bin(max);
    if (!counts_.empty()) {
      low = std::min(low, static_cast<double>(first_));
      high = std::max(high, static_cast<double>(first_) + static_cast<double>(counts_.size()) - 1);
    }
    constexpr double kMostIndex = 1 << 30;
    const bool fits = high - low < static_cast<double>(capacity_) &&
                      std::max(std::fabs(low), std::fabs(high)) < kMostIndex;
    if (fits || exponent_ >= kMaxExponent) {
      const auto new_first = static_cast<int64_t>(low);
      std::vector<uint64_t> counts(static_cast<size_t>(high - low) + 1);
      std::copy(counts_.begin(), counts_.end(),
                counts.begin() + (counts_.empty() ? 0 : first_ - new_first));
      first_ = new_first;
      counts_ = std::move(counts);
      return;
    }
    Double();
  }
}

void StreamHistogram::Add(absl::Span<const float> values, float min, float max) {
  if (values.empty()) return;
  const double low_edge = static_cast<double>(first_) * width();
  const double high_edge = low_edge + static_cast<double>(counts_.size()) * width();
  if (counts_.empty() || min < low_edge || max >= high_edge) Cover(min, max);
  const float inverse = std::ldexp(1.0f, -exponent_);  // a power of two: x * inverse is exact
  uint64_t* const counts = counts_.data();
  const int64_t first = first_;
  for (const float x : values) ++counts[FloorToInt(x * inverse) - first];
}

bool StreamHistogram::Restore(int exponent, int64_t first, std::vector<uint64_t> counts) {
  constexpr int64_t kMostIndex = int64_t{1} << 30;
  constexpr int64_t kMostBins = int64_t{1} << 20;
  if (exponent < kMinExponent || exponent > kMaxExponent || counts.empty() ||
      static_cast<int64_t>(counts.size()) > kMostBins || std::abs(first) > kMostIndex) {
    return false;
  }
  uint64_t total = 0;
  for (const uint64_t count : counts) {
    if (count > (uint64_t{1} << 62) - total) return false;
    total += count;
  }
  if (total == 0) return false;
  capacity_ = std::max(capacity_, static_cast<int64_t>(counts.size()));
  exponent_ = exponent;
  first_ = first;
  counts_ = std::move(counts);
  return true;
}

bool StreamHistogram::RestoreBins(double low, double high, absl::Span<const float> counts) {
  constexpr double kMostIndex = 1 << 29;
  constexpr double kMostCounts = 1099511627776.0;  // of all bins together: 2^40
  if (counts.empty()) return false;
  if (!(high > low)) high = low + std::fabs(low / 2) + 1;  // as Compass's optimizer
  const double step = (high - low) / static_cast<double>(counts.size());
  double total = 0;
  for (const float count : counts) {
    if (!(count >= 0)) return false;
    total += count;
  }
  if (!(total > 0) || !std::isfinite(total) || !std::isfinite(step) || !(step > 0)) return false;
  int exponent = std::max(std::ilogb(step), kMinExponent);
  while (std::max(std::fabs(low), std::fabs(high)) >= std::ldexp(kMostIndex, exponent)) ++exponent;
  const double width = std::ldexp(1.0, exponent);
  const auto first = static_cast<int64_t>(std::floor(low / width));
  const auto last = static_cast<int64_t>(std::floor(high / width));
  std::vector<double> mass(static_cast<size_t>(last - first + 1));
  for (size_t i = 0; i < counts.size(); ++i) {
    const double from = low + step * static_cast<double>(i);
    const double to = from + step;
    auto bin = std::clamp(static_cast<int64_t>(std::floor(from / width)), first, last);
    for (; bin <= last && static_cast<double>(bin) * width < to; ++bin) {
      const double part = std::min(to, static_cast<double>(bin + 1) * width) -
                          std::max(from, static_cast<double>(bin) * width);
      mass[static_cast<size_t>(bin - first)] += counts[i] * std::max(part, 0.0) / step;
    }
  }
  std::vector<uint64_t> whole;
  whole.reserve(mass.size());
  for (const double m : mass) {
    whole.push_back(static_cast<uint64_t>(std::nearbyint(m / total * kMostCounts)));
  }
  return Restore(exponent, first, std::move(whole));
}

std::vector<float> StreamHistogram::Bins(double low, double high, int64_t bins) const {
  if (!(high > low)) high = low + std::fabs(low / 2) + 1;
  const double step = (high - low) / static_cast<double>(bins);
  std::vector<double> mass(static_cast<size_t>(bins));
  const auto bin_of = [&](double x) {
    const double bin = std::floor((x - low) / step);
    return static_cast<int64_t>(std::clamp(bin, 0.0, static_cast<double>(bins - 1)));
  };
  for (size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] == 0) continue;
    const double from = this->low(static_cast<int64_t>(i));
    const double to = from + width();
    const int64_t last = bin_of(to);
    for (int64_t bin = bin_of(from); bin <= last; ++bin) {
      // The outermost bins reach to infinity.
      const double begin = bin == 0 ? from : low + step * static_cast<double>(bin);
      const double end = bin == bins - 1 ? to : low + step * static_cast<double>(bin + 1);
      const double part = std::min(to, end) - std::max(from, begin);
      mass[static_cast<size_t>(bin)] +=
          static_cast<double>(counts_[i]) * std::max(part, 0.0) / width();
    }
  }
  return {mass.begin(), mass.end()};
}

bool StatisticsCollector::Add(absl::Span<const float> values) {
  if (values.empty()) return true;
  if (trim_.has_value()) {
    trimmed_.assign(values.begin(), values.end());
    const auto low = static_cast<float>(trim_->min);
    const auto high = static_cast<float>(trim_->max);
    float least = high;
    float greatest = low;
    for (const float x : trimmed_) {
      if (!(x > low && x < high)) continue;
      least = std::min(least, x);
      greatest = std::max(greatest, x);
    }
    if (!trim_->second || least > greatest) {
      least = low;
      greatest = high;
    }
    for (float& x : trimmed_) x = x <= low ? least : (x >= high ? greatest : x);
    values = trimmed_;
  }
  const Sums sums = SumUp(values);
  // A double holds the sum of any floats there can be, so it tells of each one.
  if (!std::isfinite(sums.sum)) return false;
  if (counts_) statistics_.histogram.Add(values, sums.min, sums.max);
  min_ = count_ == 0 ? sums.min : std::min<double>(min_, sums.min);
  max_ = count_ == 0 ? sums.max : std::max<double>(max_, sums.max);
  count_ += static_cast<int64_t>(values.size());
  sum_ += sums.sum;
  squares_ += sums.squares;
  return true;
}

void StatisticsCollector::EndBatch() {
  if (count_ == 0) return;
  const double mean = sum_ / static_cast<double>(count_);
  const double deviation =
      std::sqrt(std::max(squares_ / static_cast<double>(count_) - mean * mean, 0.0));
  TensorStatistics& s = statistics_;
  const bool first = s.batches == 0;
  const auto running = [&](double& old, double value) {
    old = first ? value : old * momentum_ + value * (1 - momentum_);
  };
  running(s.running_min, min_);
  running(s.running_max, max_);
  running(s.running_mean, mean);
  running(s.running_std, deviation);
  s.extrema_min = first ? min_ : std::min(s.extrema_min, min_);
  s.extrema_max = first ? max_ : std::max(s.extrema_max, max_);
  ++s.batches;
  count_ = 0;
  sum_ = squares_ = 0;
}

}  // namespace npuc
