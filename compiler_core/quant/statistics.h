#ifndef NPUC_COMPILER_CORE_QUANT_STATISTICS_H_
#define NPUC_COMPILER_CORE_QUANT_STATISTICS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/base/quant_options.h"

namespace npuc {

// Counts of values in bins of width 2^exponent, bin i holding [i, i+1) * 2^exponent. The width
// doubles when the values need over 2 * bins bins (pairs are merged, exactly), so that one pass
// suffices and the result depends on the values alone, not on their order.
class StreamHistogram {
 public:
  explicit StreamHistogram(int64_t bins = 2048) : capacity_(2 * bins) {}
  // [min, max] are the values' own; all are finite.
  void Add(absl::Span<const float> values, float min, float max);

  bool empty() const { return counts_.empty(); }
  int exponent() const { return exponent_; }
  int64_t first() const { return first_; }
  int64_t capacity() const { return capacity_; }
  const std::vector<uint64_t>& counts() const { return counts_; }
  double width() const;
  double low(int64_t bin) const { return static_cast<double>(first_ + bin) * width(); }
  uint64_t total() const;
  // From a statistics file. False where it is no histogram.
  bool Restore(int exponent, int64_t first, std::vector<uint64_t> counts);
  // From equal bins over [low, high], each one's count spread evenly over the bins here. Any factor
  // of the counts gives the same. False where they are no histogram.
  bool RestoreBins(double low, double high, absl::Span<const float> counts);
  // The counts in so many equal bins over [low, high]; what lies outside is in the outermost ones.
  std::vector<float> Bins(double low, double high, int64_t bins) const;

 private:
  void Cover(float min, float max);
  void Double();

  int64_t capacity_;
  int exponent_ = 0;
  int64_t first_ = 0;
  std::vector<uint64_t> counts_;
};

// What calibration finds out about one tensor; a statistics file may know less. running_*: of a
// batch, averaged over batches as old * momentum + new * (1 - momentum).
struct TensorStatistics {
  int64_t batches = 0;
  double extrema_min = 0;
  double extrema_max = 0;
  double running_min = 0;
  double running_max = 0;
  double running_mean = 0;
  double running_std = 0;
  bool has_deviation = true;  // whether running_mean and running_std are known
  StreamHistogram histogram;
};

// Gathers TensorStatistics of one tensor; bins 0: without a histogram. Values of a sample come by
// Add; EndBatch closes a batch. Add takes nothing and returns false where a value is not finite, as
// trim_infinity leaves it: no range can hold it.
class StatisticsCollector {
 public:
  StatisticsCollector(int64_t bins, double momentum, std::optional<TrimInfinity> trim)
      : momentum_(momentum), counts_(bins > 0), trim_(trim) {
    statistics_.histogram = StreamHistogram(bins);
  }
  [[nodiscard]] bool Add(absl::Span<const float> values);
  void EndBatch();
  const TensorStatistics& statistics() const { return statistics_; }
  TensorStatistics Take() { return std::move(statistics_); }

 private:
  double momentum_;
  bool counts_;
  std::optional<TrimInfinity> trim_;
  TensorStatistics statistics_;
  std::vector<float> trimmed_;
  // Of the batch.
  int64_t count_ = 0;
  double min_ = 0;
  double max_ = 0;
  double sum_ = 0;
  double squares_ = 0;
};

// Statistics by tensor name, as the statistics file has them: one JSON object, a tensor a member.
// Every number is the shortest decimal that reads back the same.
using StatisticsByName = std::map<std::string, TensorStatistics>;
std::string WriteStatistics(const StatisticsByName& statistics);
// Such a file, or NumPy's dict of nodes of Compass's tools. A tensor has at least a range (extrema
// or running values; one stands for the other), the rest may be missing.
// INVALID_ARGUMENT saying what is wrong, with the tensor.
absl::StatusOr<StatisticsByName> ReadStatistics(absl::string_view file);

// A layer's results in their order.
struct NodeStatistics {
  std::string name;
  std::vector<const TensorStatistics*> results;
};
// Compass's own form: {node: {tensor: {"extrema_min": ...}}} as numpy.save writes it, histograms of
// `bins` bins over [running_min, running_max]. The tensors' names are node_0, node_1 ...
// Source: shared/guides/compass-guide.txt, 2.1; Compass_Optimizer, save_statistic_info.
std::string WriteNumpyStatistics(const std::vector<NodeStatistics>& nodes, int64_t bins);

// The statistics of a tensor in a file, where any may be missing. For the two readers.
struct FoundStatistics {
  std::optional<double> extrema_min, extrema_max, running_min, running_max, running_mean,
      running_std;
};
struct StatisticField {
  const char* name;
  double TensorStatistics::*member;
  std::optional<double> FoundStatistics::*found;
  bool of_deviation = false;
};
absl::Span<const StatisticField> StatisticFields();
// Fills the numbers of `statistics`. INVALID_ARGUMENT without a range, or where it is none.
absl::Status TakeFound(const std::string& tensor, const FoundStatistics& found,
                       TensorStatistics& statistics);
absl::Status WrongStatistics(absl::string_view tensor, absl::string_view what);
absl::StatusOr<StatisticsByName> ReadNumpyStatistics(absl::string_view file);
inline constexpr size_t kMaxStatisticsBytes = 64 << 20;

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_STATISTICS_H_
