#ifndef NPUC_COMPILER_CORE_QUANT_METRICS_METRICS_H_
#define NPUC_COMPILER_CORE_QUANT_METRICS_METRICS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace npuc {

// How good a model's outputs are. Written as in QUANT: metric, "NAME" or "NAME:N":
//   cosine  of the angle between all outputs and the float model's; 1 where both are zero
//   mse     mean squared difference from the float model's
//   sqnr    10 log10(energy of the float model's / energy of the difference), in dB
//   topk:N  share of items whose label is among the N greatest scores (N 1 unless given); of equal
//           scores the one of lower index is greater
//   auc     area under the ROC curve of one score an item against labels 0 and 1: the share of
//           (1, 0) pairs in which the 1 has the greater score, ties counted half (Mann-Whitney)
//   wer:N   word error rate: insertions, deletions and substitutions (Levenshtein) over all items
//           by the labels' words. An item's words: the index of the greatest score of each step,
//           repeats as one, N (the blank; the last index unless given) left out. A label's words
//           end at its first negative number.
struct QualityMetric {
  enum class Kind : uint8_t { kCosine, kMse, kSqnr, kTopK, kAuc, kWer };
  Kind kind = Kind::kCosine;
  int64_t number = -1;  // N; -1: not given
  bool operator==(const QualityMetric&) const = default;
};
// Compass's names stand for these: CosDistanceMetric for cosine, TopKMetric for topk:1, WERMetric
// for wer, in any case. INVALID_ARGUMENT naming what is known.
absl::StatusOr<QualityMetric> MetricFromName(absl::string_view name);
std::string NameOf(const QualityMetric& metric);
bool NeedsLabels(const QualityMetric& metric);

// One model's outputs: `items` rows of `shape` (an item's, without the items), and those of the
// float model, as many. Views.
struct Scores {
  int64_t items = 0;
  std::vector<int64_t> shape;
  absl::Span<const float> values;
  absl::Span<const float> wanted;
};
// Labels [items] or, of wer, [items, words].
struct Labels {
  std::vector<int64_t> shape;
  std::vector<int64_t> values;
};

// Labels of a CSV file: a row an item, of integers; shorter rows get -1 behind them. A first line
// of column names is skipped. Where the first column is a name, rows are taken in the order of
// names, in which a folder's files are. INVALID_ARGUMENT with the line.
absl::StatusOr<Labels> LabelsFromCsv(absl::string_view text);

// The figure; sqnr without a difference is infinity. INVALID_ARGUMENT where shapes or labels do not
// suit the metric, with what would; OUT_OF_RANGE where the values are not finite (of a metric with
// labels: not numbers), which has no figure.
absl::StatusOr<double> Measure(const QualityMetric& metric, const Scores& scores,
                               const Labels& labels);

// Edit distance of two word sequences. At most kMaxWords each (CHECKed).
inline constexpr int64_t kMaxWords = 1 << 14;
int64_t EditDistance(absl::Span<const int64_t> a, absl::Span<const int64_t> b);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_METRICS_METRICS_H_
