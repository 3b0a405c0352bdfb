#include "compiler_core/base/trim_text.h"

#include <charconv>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace npuc {

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

}  // namespace npuc
