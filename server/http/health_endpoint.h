#ifndef NPUC_SERVER_HTTP_HEALTH_ENDPOINT_H_
#define NPUC_SERVER_HTTP_HEALTH_ENDPOINT_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace npuc::http {

// The answer to a GET.
struct HttpPage {
  int status = 200;
  std::string content_type = "text/plain";
  std::string body = {};
};

// The HTTP port: pages by path, made anew for each GET. Thread-safe.
class HealthEndpoint {
 public:
  struct Source {
    std::function<HttpPage()> make;
    // True if `make` may wait, as for a lock. Others are called on the one thread that has all of
    // the port's connections, and nothing that waits keeps them from answering.
    bool may_wait = false;
  };
  using Pages = std::map<std::string, Source>;
  // HOST:PORT; port 0 picks one. UNAVAILABLE: the address cannot be had.
  static absl::StatusOr<std::unique_ptr<HealthEndpoint>> Start(const std::string& address,
                                                               const Pages& pages);
  ~HealthEndpoint();
  HealthEndpoint(const HealthEndpoint&) = delete;
  HealthEndpoint& operator=(const HealthEndpoint&) = delete;

  int port() const;

 private:
  struct Impl;
  explicit HealthEndpoint(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace npuc::http

#endif  // NPUC_SERVER_HTTP_HEALTH_ENDPOINT_H_
