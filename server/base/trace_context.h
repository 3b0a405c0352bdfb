#ifndef NPUC_SERVER_BASE_TRACE_CONTEXT_H_
#define NPUC_SERVER_BASE_TRACE_CONTEXT_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace npuc::base {

// Where a call stands in a distributed trace (W3C Trace Context,
// https://www.w3.org/TR/trace-context/). Client and server read it by the same function.
struct TraceContext {
  std::string trace_id = {};  // 32 lower-case hexadecimal digits, not all 0; empty: no trace
  std::string span_id = {};   // 16 of them: the caller's span; empty: unknown
  bool sampled = false;       // the caller records its spans

  bool empty() const { return trace_id.empty(); }
  friend bool operator==(const TraceContext&, const TraceContext&) = default;
};

inline constexpr size_t kMaxTraceparentBytes = 256;

// Reads a `traceparent`: "00-TRACE_ID-SPAN_ID-FLAGS". A later version may have more behind a
// further
// '-'. nullopt: it is malformed, and the standard demands to go on as if it were not there.
std::optional<TraceContext> ParseTraceparent(absl::string_view text);

// Writes a `traceparent` of version 00. The context must have both ids.
std::string FormatTraceparent(const TraceContext& context);

}  // namespace npuc::base

#endif  // NPUC_SERVER_BASE_TRACE_CONTEXT_H_
