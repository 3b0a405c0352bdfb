#include <cmath>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/import_state.h"
#include "compiler_core/frontends/mxnet/symbol.h"

namespace npuc::mxnet {
namespace {

absl::Status Mismatch(absl::string_view name, absl::string_view text, absl::string_view wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat("attribute '", name, "' is '", Printable(text, 60), "', which is no ", wanted));
}

// "12", and "12L" of Python 2.
bool ReadInt(absl::string_view text, int64_t* value) {
  if (text.size() > 1) absl::ConsumeSuffix(&text, "L");
  return absl::SimpleAtoi(text, value);
}

}  // namespace

const std::string* NodeView::Find(absl::string_view name) const {
  const auto it = attrs_.find(name);
  return it == attrs_.end() || it->second == "None" ? nullptr : &it->second;
}

absl::StatusOr<std::string> NodeView::String(absl::string_view name) const {
  const std::string* const text = Find(name);
  if (text == nullptr) return absl::NotFoundError(name);
  return *text;
}

absl::StatusOr<bool> NodeView::Bool(absl::string_view name) const {
  const std::string* const text = Find(name);
  if (text == nullptr) return absl::NotFoundError(name);
  const std::string lower = absl::AsciiStrToLower(*text);
  if (lower == "true" || lower == "1") return true;
  if (lower == "false" || lower == "0") return false;
  return Mismatch(name, *text, "True or False");
}

absl::StatusOr<int64_t> NodeView::Int(absl::string_view name) const {
  const std::string* const text = Find(name);
  if (text == nullptr) return absl::NotFoundError(name);
  int64_t value = 0;
  if (!ReadInt(*text, &value)) return Mismatch(name, *text, "integer");
  return value;
}

absl::StatusOr<double> NodeView::Float(absl::string_view name) const {
  const std::string* const text = Find(name);
  if (text == nullptr) return absl::NotFoundError(name);
  double value = 0;
  if (!absl::SimpleAtod(*text, &value) || std::isnan(value)) return Mismatch(name, *text, "number");
  return value;
}

absl::StatusOr<std::vector<std::optional<int64_t>>> NodeView::OptionalInts(
    absl::string_view name) const {
  const std::string* const text = Find(name);
  if (text == nullptr) return absl::NotFoundError(name);
  absl::string_view list = absl::StripAsciiWhitespace(*text);
  const bool is_list = absl::ConsumePrefix(&list, "(")   ? absl::ConsumeSuffix(&list, ")")
                       : absl::ConsumePrefix(&list, "[") ? absl::ConsumeSuffix(&list, "]")
                                                         : !list.empty();
  if (!is_list) return Mismatch(name, *text, "list of integers");
  std::vector<std::optional<int64_t>> values;
  list = absl::StripAsciiWhitespace(list);
  absl::ConsumeSuffix(&list, ",");  // "(3,)"
  if (list.empty()) return values;
  for (absl::string_view part : absl::StrSplit(list, ',')) {
    part = absl::StripAsciiWhitespace(part);
    int64_t value = 0;
    if (values.size() == frontend::kMaxListEntries || (part != "None" && !ReadInt(part, &value))) {
      return Mismatch(name, *text, "list of integers");
    }
    values.push_back(part == "None" ? std::nullopt : std::optional<int64_t>(value));
  }
  return values;
}

absl::StatusOr<std::vector<int64_t>> NodeView::Ints(absl::string_view name) const {
  ASSIGN_OR_RETURN(const std::vector<std::optional<int64_t>> read, OptionalInts(name));
  std::vector<int64_t> values;
  for (const std::optional<int64_t>& value : read) {
    if (!value.has_value()) return Mismatch(name, *Find(name), "list of integers");
    values.push_back(*value);
  }
  return values;
}

}  // namespace npuc::mxnet
