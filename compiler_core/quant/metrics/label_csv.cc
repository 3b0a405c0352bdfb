#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/quant/metrics/metrics.h"

namespace npuc {
namespace {

constexpr size_t kMostNumbers = size_t{1} << 24;

struct Row {
  absl::string_view name;  // "": the row has none
  std::vector<int64_t> labels;
};

absl::Status Wrong(size_t line, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("line ", line, ": ", what));
}

// Splits one line. `wrong` is a field that should be an integer and is none.
Row ReadRow(absl::string_view line, absl::string_view& wrong) {
  Row row;
  bool is_first = true;
  for (absl::string_view field : absl::StrSplit(line, ',')) {
    field = absl::StripAsciiWhitespace(field);
    int64_t label = 0;
    if (absl::SimpleAtoi(field, &label)) {
      row.labels.push_back(label);
    } else if (is_first) {
      row.name = field;
    } else {
      wrong = field;
    }
    is_first = false;
  }
  if (row.labels.empty() && wrong.empty()) wrong = row.name;
  return row;
}

}  // namespace

absl::StatusOr<Labels> LabelsFromCsv(absl::string_view text) {
  std::vector<Row> rows;
  size_t line_number = 0;
  size_t longest = 1;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++line_number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty()) continue;
    absl::string_view wrong;
    Row row = ReadRow(line, wrong);
    if (!wrong.empty()) {
      if (line_number == 1) continue;  // the columns' names
      return Wrong(line_number, absl::StrCat("'", Printable(wrong, 40), "' is no integer"));
    }
    if (!rows.empty() && rows[0].name.empty() != row.name.empty()) {
      return Wrong(line_number, "some rows begin with a name and others do not");
    }
    longest = std::max(longest, row.labels.size());
    if ((rows.size() + 1) * longest > kMostNumbers) {
      return Wrong(line_number, absl::StrCat("more than ", kMostNumbers, " labels"));
    }
    rows.push_back(std::move(row));
  }
  if (rows.empty())
    return absl::InvalidArgumentError("a CSV file of labels has no row of integers");
  // Items of a folder stand in the order of their names.
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.name < b.name; });
  Labels labels;
  labels.shape = {static_cast<int64_t>(rows.size())};
  if (longest > 1) labels.shape.push_back(static_cast<int64_t>(longest));
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i > 0 && !rows[i].name.empty() && rows[i].name == rows[i - 1].name) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", Printable(rows[i].name, 80), "' has two rows of labels"));
    }
    labels.values.insert(labels.values.end(), rows[i].labels.begin(), rows[i].labels.end());
    labels.values.resize((i + 1) * longest, -1);  // which ends a label's words
  }
  return labels;
}

}  // namespace npuc
