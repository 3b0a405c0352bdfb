#include "compiler_core/frontends/darknet/layer_options.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace npuc::darknet {
namespace {

constexpr size_t kMaxListed = 256;
constexpr char kCutFix[] = "cut the net in front of the layer with OUTPUT_OPS";

// Darknet stops at what is no digit, so a comment may follow a number.
absl::string_view WithoutComment(absl::string_view value) {
  return value.substr(0, value.find_first_of("#;"));
}

}  // namespace

const Option* LayerOptions::Find(absl::string_view key) {
  const Option* const option = section_.Find(key);
  if (option != nullptr) read_.emplace(key);
  return option;
}

int64_t LayerOptions::Int(absl::string_view key, int64_t fallback, int64_t lo, int64_t hi) {
  const Option* const option = Find(key);
  if (option == nullptr) return fallback;
  int64_t value = 0;
  if (absl::SimpleAtoi(WithoutComment(option->value), &value) && value >= lo && value <= hi) {
    return value;
  }
  Fail(DiagnosticKind::kBadAttribute, key,
       absl::StrCat(key, " is '", Printable(option->value, 40), "'; it must be a whole number in ",
                    lo, "..", hi),
       "correct the number");
  return fallback;
}

double LayerOptions::Float(absl::string_view key, double fallback) {
  const Option* const option = Find(key);
  if (option == nullptr) return fallback;
  double value = 0;
  if (absl::SimpleAtod(WithoutComment(option->value), &value) && std::isfinite(value)) return value;
  Fail(DiagnosticKind::kBadAttribute, key,
       absl::StrCat(key, " is '", Printable(option->value, 40), "'; it must be a number"),
       "correct the number");
  return fallback;
}

std::string LayerOptions::Text(absl::string_view key, absl::string_view fallback) {
  const Option* const option = Find(key);
  return option == nullptr ? std::string(fallback) : option->value;
}

std::vector<int64_t> LayerOptions::Ints(absl::string_view key) {
  const Option* const option = Find(key);
  std::vector<int64_t> values;
  if (option == nullptr) return values;
  for (const absl::string_view part : absl::StrSplit(WithoutComment(option->value), ',')) {
    int64_t value = 0;
    if (absl::SimpleAtoi(part, &value) && std::abs(value) <= kMaxOption &&
        values.size() < kMaxListed) {
      values.push_back(value);
      continue;
    }
    Fail(DiagnosticKind::kBadAttribute, key,
         absl::StrCat(key, " is '", Printable(option->value, 80), "'; it must be at most ",
                      kMaxListed, " whole numbers between commas"),
         "correct the list");
    break;
  }
  return values;
}

void LayerOptions::Refuse(absl::string_view key, absl::string_view why) {
  const Option* const option = Find(key);
  if (option == nullptr) return;
  double value = 1;
  if (absl::SimpleAtod(WithoutComment(option->value), &value) && value == 0) return;
  FailMode(key, absl::StrCat(key, "=", Printable(option->value, 40), " is not supported: ", why));
}

void LayerOptions::Fail(DiagnosticKind kind, absl::string_view key, std::string message,
                        std::string fix) {
  const Option* const option = section_.Find(key);
  diagnostics_.Add({.kind = kind,
                    .message = std::move(message),
                    .file = file_,
                    .line = option == nullptr ? section_.line : option->line,
                    .node = name_,
                    .op = Printable(section_.type, 80),
                    .fix = std::move(fix)});
}

void LayerOptions::FailMode(absl::string_view key, std::string message) {
  Fail(DiagnosticKind::kUnsupportedOperatorMode, key, std::move(message), kCutFix);
}

std::vector<const Option*> LayerOptions::Unread() const {
  std::vector<const Option*> unread;
  for (const Option& option : section_.options) {
    if (!read_.contains(option.key)) unread.push_back(&option);
  }
  return unread;
}

}  // namespace npuc::darknet
