#ifndef NPUC_SERVER_HTTP_HEALTH_ENDPOINT_H_
#define NPUC_SERVER_HTTP_HEALTH_ENDPOINT_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace npuc {

// The HTTP port: GET /healthz answers "200 ok" while `is_serving` says true, else "503 not
// serving". cpp-httplib stays in the .cc. Thread-safe.
class HealthEndpoint {
 public:
  // HOST:PORT; port 0 picks one. UNAVAILABLE: the address cannot be had. `is_serving` is called on
  // the endpoint's threads and must not block.
  static absl::StatusOr<std::unique_ptr<HealthEndpoint>> Start(const std::string& address,
                                                               std::function<bool()> is_serving);
  ~HealthEndpoint();
  HealthEndpoint(const HealthEndpoint&) = delete;
  HealthEndpoint& operator=(const HealthEndpoint&) = delete;

  int port() const;

 private:
  struct Impl;
  explicit HealthEndpoint(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace npuc

#endif  // NPUC_SERVER_HTTP_HEALTH_ENDPOINT_H_
