#ifndef NPUC_SERVER_OTLP_HTTP_POST_H_
#define NPUC_SERVER_OTLP_HTTP_POST_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace npuc::otlp {

inline constexpr size_t kMaxAnswerBytes = size_t{64} << 10;

// Where a collector listens.
struct Endpoint {
  std::string host;
  std::string port;
  std::string path;  // of the requests: "/v1/traces" behind the path of the URL

  std::string ToString() const;
  bool is_loopback() const;
};

// Reads "http://HOST[:PORT][/PATH]"; the port is 4318 by default. INVALID_ARGUMENT says what is
// wrong.
absl::StatusOr<Endpoint> ParseEndpoint(absl::string_view url);

using Headers = std::vector<std::pair<std::string, std::string>>;

// Lines "NAME: VALUE"; empty lines and those that begin with '#' are none. INVALID_ARGUMENT names
// the line, never the value, which may be a secret.
absl::StatusOr<Headers> ParseHeaders(absl::string_view text);

struct HttpAnswer {
  int status = 0;
  std::optional<absl::Duration> retry_after = {};  // of Retry-After in seconds
  std::string body = {};                           // empty where it came in chunks
};

// Posts JSON over a connection of its own. All of it takes at most `timeout`, but for the look-up
// of the host's name. UNAVAILABLE: no connection, or it broke; DEADLINE_EXCEEDED; INVALID_ARGUMENT:
// the answer is no HTTP, or is too long.
absl::StatusOr<HttpAnswer> PostJson(const Endpoint& endpoint, const Headers& headers,
                                    absl::string_view body, absl::Duration timeout);

}  // namespace npuc::otlp

#endif  // NPUC_SERVER_OTLP_HTTP_POST_H_
