#ifndef NPUC_SERVER_OTLP_OTLP_JSON_H_
#define NPUC_SERVER_OTLP_OTLP_JSON_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/observe/tracer.h"

namespace npuc::otlp {

// This process, as all its spans name it.
struct Resource {
  std::string service_name = "npucd";
  std::string service_version = {};
  std::string instance_id = {};  // the node's name
};

// An ExportTraceServiceRequest in OTLP's JSON
// (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding): ids in hexadecimal, 64-bit
// integers as text, enumerators as numbers. Times are to the microsecond, as jobs have theirs.
// Texts are cut at 4 KiB, so that a span's size has a bound.
std::string EncodeSpans(const Resource& resource, const std::vector<observe::Span>& spans);

// partialSuccess.rejectedSpans of an ExportTraceServiceResponse; 0 where there is none, or the
// answer is no JSON.
int64_t RejectedSpans(absl::string_view body);

}  // namespace npuc::otlp

#endif  // NPUC_SERVER_OTLP_OTLP_JSON_H_
