#include "server/http/byte_range.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace npuc::http {

ByteRange ParseByteRange(absl::string_view header, uint64_t size) {
  const ByteRange whole;
  if (!absl::ConsumePrefix(&header, "bytes=")) return whole;
  const size_t dash = header.find('-');
  if (dash == absl::string_view::npos) return whole;
  const absl::string_view first_text = absl::StripAsciiWhitespace(header.substr(0, dash));
  const absl::string_view last_text = absl::StripAsciiWhitespace(header.substr(dash + 1));
  const auto is_number = [](absl::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
  };
  uint64_t first = 0;
  uint64_t last = 0;
  if (first_text.empty()) {  // the last N bytes
    if (!is_number(last_text) || !absl::SimpleAtoi(last_text, &last)) return whole;
    if (last == 0 || size == 0) return {.kind = ByteRange::kUnsatisfiable};
    const uint64_t length = std::min(last, size);
    return {ByteRange::kPart, size - length, length};
  }
  if (!is_number(first_text) || !absl::SimpleAtoi(first_text, &first)) return whole;
  if (last_text.empty()) {
    last = UINT64_MAX;
  } else if (!is_number(last_text) || !absl::SimpleAtoi(last_text, &last) || last < first) {
    return whole;
  }
  if (first >= size) return {.kind = ByteRange::kUnsatisfiable};
  last = std::min(last, size - 1);
  return {ByteRange::kPart, first, last - first + 1};
}

bool EtagMatches(absl::string_view header, absl::string_view etag) {
  absl::ConsumePrefix(&etag, "W/");
  for (absl::string_view part : absl::StrSplit(header, ',')) {
    part = absl::StripAsciiWhitespace(part);
    absl::ConsumePrefix(&part, "W/");
    if (part == "*" || part == etag) return true;
  }
  return false;
}

}  // namespace npuc::http
