#include "compiler_core/quant/metrics/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"

namespace npuc {
namespace {

struct KindName {
  absl::string_view name;
  QualityMetric::Kind kind;
  bool takes_number;
};
constexpr KindName kKinds[] = {
    {"cosine", QualityMetric::Kind::kCosine, false}, {"mse", QualityMetric::Kind::kMse, false},
    {"sqnr", QualityMetric::Kind::kSqnr, false},     {"topk", QualityMetric::Kind::kTopK, true},
    {"auc", QualityMetric::Kind::kAuc, false},       {"wer", QualityMetric::Kind::kWer, true}};

// The names of Compass's metric plugins, without case.
constexpr std::pair<absl::string_view, absl::string_view> kPlugins[] = {
    {"cosdistancemetric", "cosine"}, {"topkmetric", "topk:1"}, {"wermetric", "wer"}};

int64_t Product(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

double Likeness(const QualityMetric& metric, const Scores& scores) {
  double dot = 0;
  double energy = 0;
  double wanted_energy = 0;
  double error = 0;
  for (size_t i = 0; i < scores.values.size(); ++i) {
    const double got = scores.values[i];
    const double wanted = scores.wanted[i];
    dot += got * wanted;
    energy += got * got;
    wanted_energy += wanted * wanted;
    error += (got - wanted) * (got - wanted);
  }
  switch (metric.kind) {
    case QualityMetric::Kind::kMse:
      return scores.values.empty() ? 0 : error / static_cast<double>(scores.values.size());
    case QualityMetric::Kind::kSqnr:
      return error > 0 ? 10 * std::log10(wanted_energy / error)
                       : std::numeric_limits<double>::infinity();
    default:
      if (energy == 0 || wanted_energy == 0) return energy == wanted_energy ? 1 : 0;
      return dot / std::sqrt(energy * wanted_energy);
  }
}

// Infinities have an order, so that metrics with labels take them.
absl::Status CheckFinite(const QualityMetric& metric, const Scores& scores,
                         absl::Span<const float> values, absl::string_view whose) {
  int64_t count = 0;
  size_t first = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (NeedsLabels(metric) ? !std::isnan(values[i]) : std::isfinite(values[i])) continue;
    if (count++ == 0) first = i;
  }
  if (count == 0) return absl::OkStatus();
  const int64_t elements = static_cast<int64_t>(values.size()) / scores.items;
  return absl::OutOfRangeError(
      absl::StrCat(NameOf(metric), ": ", count, " of ", values.size(), " values of ", whose,
                   " are not finite, the first in item ", static_cast<int64_t>(first) / elements));
}

absl::Status CheckLabels(const QualityMetric& metric, const Scores& scores, const Labels& labels) {
  if (labels.shape.empty() || labels.shape[0] != scores.items) {
    return absl::InvalidArgumentError(absl::StrCat(NameOf(metric), ": ",
                                                   labels.shape.empty() ? 0 : labels.shape[0],
                                                   " labels for ", scores.items, " items"));
  }
  return absl::OkStatus();
}

absl::StatusOr<double> TopK(const QualityMetric& metric, const Scores& scores,
                            const Labels& labels) {
  const int64_t classes = Product(scores.shape);
  const int64_t k = metric.number < 0 ? 1 : metric.number;
  if (static_cast<int64_t>(labels.values.size()) != scores.items) {
    return absl::InvalidArgumentError(absl::StrCat(NameOf(metric), " takes one label an item"));
  }
  int64_t right = 0;
  for (int64_t i = 0; i < scores.items; ++i) {
    const int64_t label = labels.values[i];
    if (label < 0 || label >= classes) {
      return absl::InvalidArgumentError(absl::StrCat(NameOf(metric), ": label ", label, " of item ",
                                                     i, " is none of the ", classes, " classes"));
    }
    const absl::Span<const float> row = scores.values.subspan(i * classes, classes);
    int64_t better = 0;
    for (int64_t c = 0; c < classes; ++c) {
      if (row[c] > row[label] || (row[c] == row[label] && c < label)) ++better;
    }
    if (better < k) ++right;
  }
  return static_cast<double>(right) / static_cast<double>(scores.items);
}

absl::StatusOr<double> Auc(const QualityMetric& metric, const Scores& scores,
                           const Labels& labels) {
  if (Product(scores.shape) != 1 || static_cast<int64_t>(labels.values.size()) != scores.items) {
    return absl::InvalidArgumentError(
        absl::StrCat(NameOf(metric), " takes one score and one label (0 or 1) an item"));
  }
  std::vector<std::pair<float, int64_t>> rows;
  for (int64_t i = 0; i < scores.items; ++i) {
    if (labels.values[i] != 0 && labels.values[i] != 1) {
      return absl::InvalidArgumentError(absl::StrCat(NameOf(metric), ": label ", labels.values[i],
                                                     " of item ", i, " is neither 0 nor 1"));
    }
    rows.emplace_back(scores.values[i], labels.values[i]);
  }
  std::sort(rows.begin(), rows.end());
  double pairs_won = 0;
  double zeros_before = 0;
  double ones = 0;
  for (size_t i = 0; i < rows.size();) {
    double zeros_here = 0;
    double ones_here = 0;
    size_t end = i;
    for (; end < rows.size() && rows[end].first == rows[i].first; ++end) {
      (rows[end].second == 0 ? zeros_here : ones_here) += 1;
    }
    pairs_won += ones_here * (zeros_before + zeros_here / 2);
    zeros_before += zeros_here;
    ones += ones_here;
    i = end;
  }
  if (ones == 0 || zeros_before == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(NameOf(metric), " needs labels of both kinds, 0 and 1"));
  }
  return pairs_won / (ones * zeros_before);
}

absl::StatusOr<double> WordErrorRate(const QualityMetric& metric, const Scores& scores,
                                     const Labels& labels) {
  const int64_t classes = scores.shape.empty() ? 0 : scores.shape.back();
  const int64_t elements = Product(scores.shape);
  if (classes < 1 || elements / classes > kMaxWords || labels.shape.size() != 2 ||
      labels.shape[1] > kMaxWords) {
    return absl::InvalidArgumentError(
        absl::StrCat(NameOf(metric), " takes scores [steps, words] and labels [items, words], ",
                     kMaxWords, " words at most"));
  }
  const int64_t blank = metric.number < 0 ? classes - 1 : metric.number;
  int64_t errors = 0;
  int64_t words = 0;
  for (int64_t i = 0; i < scores.items; ++i) {
    std::vector<int64_t> heard;
    int64_t before = -1;
    for (int64_t step = 0; step < elements / classes; ++step) {
      const absl::Span<const float> row =
          scores.values.subspan(i * elements + step * classes, classes);
      const int64_t best = std::max_element(row.begin(), row.end()) - row.begin();
      if (best != before && best != blank) heard.push_back(best);
      before = best;
    }
    std::vector<int64_t> said;
    for (int64_t w = 0; w < labels.shape[1]; ++w) {
      const int64_t word = labels.values[i * labels.shape[1] + w];
      if (word < 0) break;
      said.push_back(word);
    }
    errors += EditDistance(said, heard);
    words += static_cast<int64_t>(said.size());
  }
  if (words == 0) {
    return absl::InvalidArgumentError(absl::StrCat(NameOf(metric), ": the labels have no words"));
  }
  return static_cast<double>(errors) / static_cast<double>(words);
}

}  // namespace

absl::StatusOr<QualityMetric> MetricFromName(absl::string_view name) {
  for (const auto& [plugin, word] : kPlugins) {
    if (absl::EqualsIgnoreCase(plugin, name)) return MetricFromName(word);
  }
  const size_t colon = name.find(':');
  const absl::string_view word = name.substr(0, colon);
  for (const KindName& known : kKinds) {
    if (known.name != word) continue;
    QualityMetric metric;
    metric.kind = known.kind;
    if (colon == absl::string_view::npos) return metric;
    const absl::string_view number = name.substr(colon + 1);
    if (!known.takes_number || !absl::SimpleAtoi(number, &metric.number) || metric.number < 0 ||
        (known.kind == QualityMetric::Kind::kTopK && metric.number == 0)) {
      break;
    }
    return metric;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("metric '", Printable(name),
                   "' is none of cosine, mse, sqnr, topk, topk:N, auc, wer, wer:N"));
}

std::string NameOf(const QualityMetric& metric) {
  for (const KindName& known : kKinds) {
    if (known.kind != metric.kind) continue;
    return metric.number < 0 ? std::string(known.name)
                             : absl::StrCat(known.name, ":", metric.number);
  }
  return "";
}

bool NeedsLabels(const QualityMetric& metric) { return metric.kind >= QualityMetric::Kind::kTopK; }

absl::StatusOr<double> Measure(const QualityMetric& metric, const Scores& scores,
                               const Labels& labels) {
  if (scores.items < 1 ||
      static_cast<int64_t>(scores.values.size()) != scores.items * Product(scores.shape) ||
      (!NeedsLabels(metric) && scores.wanted.size() != scores.values.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat(NameOf(metric), ": ", scores.values.size(), " values beside ",
                     scores.wanted.size(), " of the float model for ", scores.items, " items"));
  }
  RETURN_IF_ERROR(CheckFinite(metric, scores, scores.values, "the output"));
  RETURN_IF_ERROR(CheckFinite(metric, scores, scores.wanted, "the float model's output"));
  if (!NeedsLabels(metric)) return Likeness(metric, scores);
  RETURN_IF_ERROR(CheckLabels(metric, scores, labels));
  if (metric.kind == QualityMetric::Kind::kTopK) return TopK(metric, scores, labels);
  if (metric.kind == QualityMetric::Kind::kAuc) return Auc(metric, scores, labels);
  return WordErrorRate(metric, scores, labels);
}

int64_t EditDistance(absl::Span<const int64_t> a, absl::Span<const int64_t> b) {
  NPUC_CHECK(static_cast<int64_t>(a.size()) <= kMaxWords &&
             static_cast<int64_t>(b.size()) <= kMaxWords);
  std::vector<int64_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), int64_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    int64_t diagonal = row[0];
    row[0] = static_cast<int64_t>(i) + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const int64_t above = row[j + 1];
      row[j + 1] = std::min({above + 1, row[j] + 1, diagonal + (a[i] == b[j] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row.back();
}

}  // namespace npuc
