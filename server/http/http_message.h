#ifndef NPUC_SERVER_HTTP_HTTP_MESSAGE_H_
#define NPUC_SERVER_HTTP_HTTP_MESSAGE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace npuc::http {

// Header fields in the order in which they came; a name may come more than once. Names are compared
// without regard to case.
using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// A request as handlers see it.
struct HttpRequest {
  std::string method;
  std::string path;                                // decoded, without the query
  std::multimap<std::string, std::string> params;  // the query, decoded
  HttpHeaders headers;
  std::string body;
  std::string peer;      // the client's address, without its port
  std::string endpoint;  // the same with its port: "127.0.0.1:4711", "[::1]:4711"
  // The names in the client certificate that TLS has verified; empty without one.
  std::vector<std::string> certificate_names;

  // The first value of this name; empty where there is none.
  const std::string& Header(absl::string_view name) const;
  size_t CountHeader(absl::string_view name) const;
};

// A body that is made piece by piece. Next is called by one thread at a time, which may wait for
// the disk, but not for a client or a job.
class HttpStream {
 public:
  virtual ~HttpStream() = default;

  // Empty and not last: nothing yet. Next is called again after `wake`, or after a second. An error
  // cuts the connection, which tells the client that something is missing.
  struct Piece {
    std::string bytes;
    bool last = false;
  };
  virtual absl::StatusOr<Piece> Next() = 0;
  // The number of bytes to come; nullopt: not known, so the connection ends with the stream, and
  // the stream with the connection.
  virtual std::optional<uint64_t> size() const = 0;
  // Called once, before Next. `wake` may be called on any thread until the stream is destroyed.
  virtual void SetWake(std::function<void()> wake) = 0;
};

struct HttpResponse {
  int status = 200;
  HttpHeaders headers = {};
  std::string body = {};
  std::unique_ptr<HttpStream> stream = nullptr;  // null: the body is `body`
  bool close = false;                            // the connection ends with this answer

  bool HasHeader(absl::string_view name) const;
  void AddHeader(absl::string_view name, absl::string_view value);
  void SetBody(std::string bytes, absl::string_view content_type);
};

// Where a request's body ends, as its head has it.
struct HttpFraming {
  bool chunked = false;
  uint64_t content_length = 0;  // of a body that is not in chunks

  bool has_body() const { return chunked || content_length > 0; }
};

// Where the body ends, by RFC 9112 section 6.3 and without mercy: whatever two programs could read
// in two ways is an error (INVALID_ARGUMENT), after which nothing on the connection has a meaning.
// `minor_version`: 0 or 1, of HTTP/1.
absl::StatusOr<HttpFraming> CheckHead(const std::string& method, const HttpHeaders& headers,
                                      int minor_version);

// Splits a request's target into path and query. INVALID_ARGUMENT: it is not of the form
// "/path?query", or a %XX is none.
absl::Status ParseTarget(absl::string_view target, HttpRequest* request);

// "Not Found" for 404.
absl::string_view HttpReason(int status);

}  // namespace npuc::http

#endif  // NPUC_SERVER_HTTP_HTTP_MESSAGE_H_
