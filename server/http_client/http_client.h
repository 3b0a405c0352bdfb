#ifndef NPUC_SERVER_HTTP_CLIENT_HTTP_CLIENT_H_
#define NPUC_SERVER_HTTP_CLIENT_HTTP_CLIENT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "compiler_core/base/mutex.h"
#include "server/base/byte_reader.h"

namespace npuc::http_client {

struct Limits {
  absl::Duration connect = absl::Seconds(5);
  absl::Duration stall = absl::Seconds(10);  // without 1 KiB a second
  absl::Duration whole = absl::Seconds(10);  // all of it, the look-up of the host's name, too
  size_t answer_bytes = size_t{256} << 10;   // of the answer's body
};

using Headers = std::vector<std::pair<std::string, std::string>>;

struct Request {
  std::string method = "GET";
  std::string url = {};  // CheckUrl says OK to it
  Headers headers = {};
  uint64_t body_bytes = 0;
  base::ByteReader body = nullptr;  // null: the request has none
  Limits limits = {};
};
// A body that is at hand.
void SetBody(std::string body, Request& request);

struct Answer {
  int status = 0;
  std::string body = {};
  std::map<std::string, std::string> headers = {};  // by their names in lower case
};

// Sends a request and waits for its answer. Thread-safe.
class Client {
 public:
  virtual ~Client() = default;
  // UNAVAILABLE: no connection, it broke, or nobody trusted is at its other end; DEADLINE_EXCEEDED;
  // INVALID_ARGUMENT: the answer is too long, or no HTTP. Errors of the request's body come back as
  // they are; DATA_LOSS: it has fewer bytes.
  virtual absl::StatusOr<Answer> Send(const Request& request) = 0;
};

// By libcurl, on connections that are kept: TLS of at least 1.2, no redirects, no proxy.
class CurlClient : public Client {
 public:
  // `ca_file`: authorities (PEM) that may sign the server's certificate; empty: the system's.
  explicit CurlClient(std::string ca_file);
  ~CurlClient() override;

  absl::StatusOr<Answer> Send(const Request& request) override;

 private:
  struct Handle;
  std::unique_ptr<Handle> Take();

  const std::string ca_file_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Handle>> idle_ NPUC_GUARDED_BY(mutex_);
};

}  // namespace npuc::http_client

#endif  // NPUC_SERVER_HTTP_CLIENT_HTTP_CLIENT_H_
