#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/json_tree.h"
#include "compiler_core/base/status.h"
#include "compiler_core/quant/data/numpy_pickle.h"
#include "compiler_core/quant/statistics.h"

namespace npuc {
namespace {

using Kind = JsonNode::Kind;

constexpr StatisticField kStatisticFields[] = {
    {"extrema_min", &TensorStatistics::extrema_min, &FoundStatistics::extrema_min},
    {"extrema_max", &TensorStatistics::extrema_max, &FoundStatistics::extrema_max},
    {"running_min", &TensorStatistics::running_min, &FoundStatistics::running_min},
    {"running_max", &TensorStatistics::running_max, &FoundStatistics::running_max},
    {"running_mean", &TensorStatistics::running_mean, &FoundStatistics::running_mean, true},
    {"running_std", &TensorStatistics::running_std, &FoundStatistics::running_std, true}};
constexpr const char* kHistogramKeys[] = {"histogram_exponent", "histogram_first",
                                          "histogram_counts"};

absl::Status Wrong(absl::string_view tensor, absl::string_view what) {
  return WrongStatistics(tensor, what);
}

const JsonNode* Find(const JsonNode& object, absl::string_view key) {
  const JsonNode* found = nullptr;
  for (size_t i = 0; i < object.keys.size(); ++i) {
    if (object.keys[i].name != key) continue;
    if (found != nullptr) return nullptr;  // given twice
    found = &object.items[i];
  }
  return found;
}

absl::Status ReadHistogram(const std::string& tensor, const JsonNode& object,
                           StreamHistogram& histogram) {
  const JsonNode* exponent = Find(object, "histogram_exponent");
  const JsonNode* first = Find(object, "histogram_first");
  const JsonNode* counts = Find(object, "histogram_counts");
  if (exponent == nullptr || exponent->kind != Kind::kInteger || first == nullptr ||
      first->kind != Kind::kInteger || counts == nullptr || counts->kind != Kind::kArray) {
    return Wrong(tensor,
                 "it needs integers histogram_exponent and histogram_first, and a list "
                 "histogram_counts, once each");
  }
  std::vector<uint64_t> values;
  for (const JsonNode& count : counts->items) {
    if (count.kind != Kind::kInteger || count.integer < 0) {
      return Wrong(tensor,
                   absl::StrCat("line ", count.place.line, ": a count is ", DescribeJson(count)));
    }
    values.push_back(static_cast<uint64_t>(count.integer));
  }
  constexpr int64_t kMostExponent = 1000;
  if (std::abs(exponent->integer) > kMostExponent ||
      std::abs(first->integer) > (int64_t{1} << 40) ||
      !histogram.Restore(static_cast<int>(exponent->integer), first->integer, std::move(values))) {
    return Wrong(tensor, "its histogram is empty, or out of range");
  }
  return absl::OkStatus();
}

absl::Status ReadTensor(const std::string& tensor, const JsonNode& object,
                        TensorStatistics& statistics) {
  if (object.kind != Kind::kObject) {
    return Wrong(tensor,
                 absl::StrCat("an object of statistics is needed, found ", DescribeJson(object)));
  }
  const auto has = [&](absl::string_view key) {
    return std::any_of(object.keys.begin(), object.keys.end(),
                       [&](const JsonNode::Key& k) { return k.name == key; });
  };
  FoundStatistics numbers;
  for (const StatisticField& field : kStatisticFields) {
    if (!has(field.name)) continue;
    const JsonNode* value = Find(object, field.name);
    if (value == nullptr || !value->is_number()) {
      return Wrong(tensor, absl::StrCat("it needs one number ", field.name));
    }
    numbers.*field.found = value->number;
  }
  const JsonNode* batches = Find(object, "batches");
  if (batches == nullptr || batches->kind != Kind::kInteger || batches->integer < 1) {
    return Wrong(tensor, "it needs a count of batches");
  }
  statistics.batches = batches->integer;
  RETURN_IF_ERROR(TakeFound(tensor, numbers, statistics));
  if (std::none_of(std::begin(kHistogramKeys), std::end(kHistogramKeys), has)) {
    return absl::OkStatus();
  }
  return ReadHistogram(tensor, object, statistics.histogram);
}

}  // namespace

absl::Span<const StatisticField> StatisticFields() { return kStatisticFields; }

absl::Status WrongStatistics(absl::string_view tensor, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("tensor '", Printable(tensor), "': ", what));
}

absl::Status TakeFound(const std::string& tensor, const FoundStatistics& found,
                       TensorStatistics& statistics) {
  for (const StatisticField& field : kStatisticFields) {
    const std::optional<double> value = found.*field.found;
    if (value.has_value() && !(std::fabs(*value) < 3.4e38)) {
      return Wrong(tensor, absl::StrCat(field.name, " is no finite number"));
    }
    statistics.*field.member = value.value_or(0);
  }
  const bool has_extrema = found.extrema_min.has_value() && found.extrema_max.has_value();
  const bool has_running = found.running_min.has_value() && found.running_max.has_value();
  if (!has_extrema && !has_running) {
    return Wrong(tensor, "it needs extrema_min and extrema_max, or running_min and running_max");
  }
  if (!has_extrema) {
    statistics.extrema_min = statistics.running_min;
    statistics.extrema_max = statistics.running_max;
  } else if (!has_running) {
    statistics.running_min = statistics.extrema_min;
    statistics.running_max = statistics.extrema_max;
  }
  statistics.has_deviation = found.running_mean.has_value() && found.running_std.has_value();
  if (!(statistics.extrema_min <= statistics.extrema_max) || statistics.running_std < 0) {
    return Wrong(tensor, "extrema_min is above extrema_max, or running_std below 0");
  }
  return absl::OkStatus();
}

std::string WriteStatistics(const StatisticsByName& statistics) {
  std::vector<std::string> tensors;
  for (const auto& [name, s] : statistics) {
    std::string members;
    for (const StatisticField& field : kStatisticFields) {
      if (field.of_deviation && !s.has_deviation) continue;
      absl::StrAppend(&members, "        \"", field.name, "\": ", JsonNumber(s.*field.member),
                      ",\n");
    }
    absl::StrAppend(&members, "        \"batches\": ", s.batches);
    if (!s.histogram.empty()) {
      absl::StrAppend(&members, ",\n        \"histogram_exponent\": ", s.histogram.exponent(),
                      ",\n        \"histogram_first\": ", s.histogram.first(),
                      ",\n        \"histogram_counts\": [",
                      absl::StrJoin(s.histogram.counts(), ", "), "]");
    }
    members.push_back('\n');
    tensors.push_back(absl::StrCat("    ", JsonQuoted(name), ": {\n", members, "    }"));
  }
  if (tensors.empty()) return "{}\n";
  return absl::StrCat("{\n", absl::StrJoin(tensors, ",\n"), "\n}\n");
}

absl::StatusOr<StatisticsByName> ReadStatistics(absl::string_view text) {
  if (IsNumpyPickle(text)) return ReadNumpyStatistics(text);
  JsonNode root;
  JsonError error;
  const JsonLimits limits{kMaxStatisticsBytes, 8, int64_t{1} << 24};
  if (!ParseJsonTree(text, limits, root, error)) {
    return absl::InvalidArgumentError(absl::StrCat("line ", error.place.line, ", column ",
                                                   error.place.column, ": ", error.message));
  }
  if (root.kind != Kind::kObject) {
    return absl::InvalidArgumentError("a statistics file is an object of tensors");
  }
  StatisticsByName all;
  for (size_t i = 0; i < root.keys.size(); ++i) {
    const std::string& name = root.keys[i].name;
    const auto [it, inserted] = all.try_emplace(name);
    if (!inserted) return Wrong(name, "it is given twice");
    RETURN_IF_ERROR(ReadTensor(name, root.items[i], it->second));
  }
  return all;
}

}  // namespace npuc
