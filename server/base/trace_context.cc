#include "server/base/trace_context.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace npuc::base {
namespace {

constexpr size_t kVersionBytes = 2;
constexpr size_t kTraceIdBytes = 32;
constexpr size_t kSpanIdBytes = 16;
constexpr size_t kFlagsBytes = 2;
constexpr size_t kTraceIdAt = kVersionBytes + 1;
constexpr size_t kSpanIdAt = kTraceIdAt + kTraceIdBytes + 1;
constexpr size_t kFlagsAt = kSpanIdAt + kSpanIdBytes + 1;
constexpr size_t kBytes = kFlagsAt + kFlagsBytes;

// Upper case is no form of a digit here.
int DigitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool IsHex(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return DigitOf(c) >= 0; });
}

bool IsZero(absl::string_view text) {
  return text.find_first_not_of('0') == absl::string_view::npos;
}

}  // namespace

std::optional<TraceContext> ParseTraceparent(absl::string_view text) {
  if (text.size() < kBytes || text.size() > kMaxTraceparentBytes) return std::nullopt;
  const absl::string_view version = text.substr(0, kVersionBytes);
  const absl::string_view trace_id = text.substr(kTraceIdAt, kTraceIdBytes);
  const absl::string_view span_id = text.substr(kSpanIdAt, kSpanIdBytes);
  const absl::string_view flags = text.substr(kFlagsAt, kFlagsBytes);
  const bool has_dashes =
      text[kTraceIdAt - 1] == '-' && text[kSpanIdAt - 1] == '-' && text[kFlagsAt - 1] == '-';
  if (!has_dashes || !IsHex(version) || !IsHex(trace_id) || !IsHex(span_id) || !IsHex(flags)) {
    return std::nullopt;
  }
  if (version == "ff" || IsZero(trace_id) || IsZero(span_id)) return std::nullopt;
  const bool is_longer = text.size() > kBytes;
  if (is_longer && (version == "00" || text[kBytes] != '-')) return std::nullopt;
  return TraceContext{.trace_id = std::string(trace_id),
                      .span_id = std::string(span_id),
                      .sampled = (DigitOf(flags[1]) & 1) != 0};
}

std::string FormatTraceparent(const TraceContext& context) {
  return absl::StrCat("00-", context.trace_id, "-", context.span_id,
                      context.sampled ? "-01" : "-00");
}

}  // namespace npuc::base
