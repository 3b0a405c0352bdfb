#ifndef NPUC_SERVER_HTTP_BYTE_RANGE_H_
#define NPUC_SERVER_HTTP_BYTE_RANGE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace npuc::http {

// What a Range header asks of `size` bytes (RFC 9110, section 14).
struct ByteRange {
  enum Kind { kWhole, kPart, kUnsatisfiable };
  Kind kind = kWhole;
  uint64_t begin = 0;
  uint64_t length = 0;  // of a part: at least 1

  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

// One range is served. What is malformed, has another unit, or asks for several ranges gets the
// whole, as the RFC allows.
ByteRange ParseByteRange(absl::string_view header, uint64_t size);

// Whether an If-None-Match header names this tag; weak tags count, "*" names any.
bool EtagMatches(absl::string_view header, absl::string_view etag);

}  // namespace npuc::http

#endif  // NPUC_SERVER_HTTP_BYTE_RANGE_H_
