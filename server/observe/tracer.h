#ifndef NPUC_SERVER_OBSERVE_TRACER_H_
#define NPUC_SERVER_OBSERVE_TRACER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/base/trace_context.h"

namespace npuc::observe {

// A piece of work of a trace, as OpenTelemetry has it.
struct Span {
  // The numbers are OTLP's.
  enum class Kind : uint8_t { kInternal = 1, kServer = 2 };
  using Value = std::variant<std::string, int64_t, double, bool>;

  std::string trace_id = {};
  std::string span_id = {};
  std::string parent_id = {};  // empty: the trace begins here
  std::string name = {};
  Kind kind = Kind::kInternal;
  absl::Time start = absl::InfinitePast();
  absl::Time end = absl::InfinitePast();
  std::vector<std::pair<std::string, Value>> attributes = {};
  bool is_error = false;
  std::string error = {};  // why, where is_error; may be empty
};

// Where the daemon's parts put the spans that they have ended. Thread-safe.
class Tracer {
 public:
  virtual ~Tracer() = default;
  // Decides what the spans of a new job belong to: the client's trace, as far as the client records
  // it; else a new one, or none where this job is not among the sampled.
  virtual base::TraceContext Begin(const base::TraceContext& client) = 0;
  // Never waits; drops the span where there is no room.
  virtual void Record(Span span) = 0;
  // The clock of jobs and spans.
  virtual absl::Time Now() const = 0;
};

// 32 and 16 random hexadecimal digits, not all 0.
std::string NewTraceId();
std::string NewSpanId();

}  // namespace npuc::observe

#endif  // NPUC_SERVER_OBSERVE_TRACER_H_
