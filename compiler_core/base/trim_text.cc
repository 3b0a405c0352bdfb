#include "compiler_core/base/trim_text.h"

#include <charconv>
#include <cmath>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace npuc {
namespace {

// Parts between commas that are in no bracket.
std::vector<absl::string_view> SplitAtOuterCommas(absl::string_view list) {
  std::vector<absl::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= list.size(); ++i) {
    const char c = i < list.size() ? list[i] : ',';
    if (c == '(') ++depth;
    if (c == ')') --depth;
    if (i < list.size() && (c != ',' || depth > 0)) continue;
    parts.push_back(absl::StripAsciiWhitespace(list.substr(begin, i - begin)));
    begin = i + 1;
  }
  return parts;
}

// The inside of "[...]"; nullopt where only one of the brackets is there.
std::optional<absl::string_view> WithoutBrackets(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  const bool opens = absl::ConsumePrefix(&text, "[");
  if (opens != absl::ConsumeSuffix(&text, "]")) return std::nullopt;
  return absl::StripAsciiWhitespace(text);
}

std::optional<TrimRule> TrimRuleFromText(absl::string_view text) {
  TrimRule rule;
  const bool by_number = absl::StartsWith(text, "(");
  const size_t colon = by_number ? text.find("):") + 1 : text.find(':');
  if (colon == absl::string_view::npos || colon == 0) return std::nullopt;
  const absl::string_view layers = absl::StripAsciiWhitespace(text.substr(0, colon));
  const std::optional<TrimInfinity> trim = TrimInfinityFromText(text.substr(colon + 1));
  if (!trim.has_value()) return std::nullopt;
  rule.trim = *trim;
  if (!by_number) {
    rule.type = std::string(layers);
    return rule;
  }
  const std::optional<std::vector<LayerIds>> ids = LayerIdsFromText(layers);
  if (!ids.has_value() || ids->size() != 1) return std::nullopt;
  rule.ids = ids->front();
  return rule;
}

}  // namespace

std::optional<TrimInfinity> TrimInfinityFromText(absl::string_view text) {
  TrimInfinity trim;
  if (absl::ConsumeSuffix(&text, ":second")) {
    trim.second = true;
  } else if (!absl::ConsumeSuffix(&text, ":clip")) {
    return std::nullopt;
  }
  text = absl::StripAsciiWhitespace(text);
  if (!absl::ConsumePrefix(&text, "(") || !absl::ConsumeSuffix(&text, ")")) return std::nullopt;
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ',');
  if (parts.size() != 2) return std::nullopt;
  double* const bounds[] = {&trim.min, &trim.max};
  constexpr double kMost = 3e38;  // of f32
  for (int i = 0; i < 2; ++i) {
    const absl::string_view part = absl::StripAsciiWhitespace(parts[i]);
    if (!absl::SimpleAtod(part, bounds[i])) return std::nullopt;
    if (std::isinf(*bounds[i])) *bounds[i] = std::copysign(kMost, *bounds[i]);
    if (!(*bounds[i] >= -kMost && *bounds[i] <= kMost)) return std::nullopt;
  }
  if (!(trim.min < trim.max)) return std::nullopt;
  return trim;
}

std::string TextOf(const TrimInfinity& trim) {
  const auto shortest = [](double value) {
    char buffer[40];
    return std::string(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr);
  };
  return absl::StrCat("(", shortest(trim.min), ", ", shortest(trim.max),
                      trim.second ? "):second" : "):clip");
}

std::optional<std::vector<TrimRule>> TrimRulesFromText(absl::string_view text) {
  if (!absl::StartsWith(absl::StripAsciiWhitespace(text), "[")) return std::nullopt;
  const std::optional<absl::string_view> inside = WithoutBrackets(text);
  if (!inside.has_value()) return std::nullopt;
  std::vector<TrimRule> rules;
  for (const absl::string_view part : SplitAtOuterCommas(*inside)) {
    std::optional<TrimRule> rule = TrimRuleFromText(part);
    if (!rule.has_value() || rules.size() == kMaxLayerRules) return std::nullopt;
    rules.push_back(*std::move(rule));
  }
  return rules;
}

std::optional<std::vector<std::vector<int64_t>>> TuplesFromText(absl::string_view text,
                                                                size_t arity) {
  const std::optional<absl::string_view> inside = WithoutBrackets(text);
  if (!inside.has_value()) return std::nullopt;
  std::vector<std::vector<int64_t>> tuples;
  for (absl::string_view part : SplitAtOuterCommas(*inside)) {
    if (tuples.size() == kMaxLayerRules || !absl::ConsumePrefix(&part, "(") ||
        !absl::ConsumeSuffix(&part, ")")) {
      return std::nullopt;
    }
    std::vector<int64_t> tuple;
    for (const absl::string_view number : absl::StrSplit(part, ',')) {
      int64_t value = 0;
      if (!absl::SimpleAtoi(number, &value) || value < 0) return std::nullopt;
      tuple.push_back(value);
    }
    if (tuple.size() != arity) return std::nullopt;
    tuples.push_back(std::move(tuple));
  }
  return tuples;
}

std::optional<std::vector<LayerIds>> LayerIdsFromText(absl::string_view text) {
  const auto tuples = TuplesFromText(text, 2);
  if (!tuples.has_value()) return std::nullopt;
  std::vector<LayerIds> list;
  for (const std::vector<int64_t>& tuple : *tuples) {
    if (tuple[0] > tuple[1]) return std::nullopt;
    list.push_back({tuple[0], tuple[1]});
  }
  return list;
}

}  // namespace npuc
