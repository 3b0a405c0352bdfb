#ifndef NPUC_SERVER_HTTP_HEALTH_ENDPOINT_H_
#define NPUC_SERVER_HTTP_HEALTH_ENDPOINT_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace npuc {

// What a GET is answered with.
struct HttpPage {
  int status = 200;
  std::string content_type = "text/plain";
  std::string body = {};
};

// The HTTP port: pages by path, made anew for each GET. cpp-httplib stays in the .cc. Thread-safe.
class HealthEndpoint {
 public:
  using Pages = std::map<std::string, std::function<HttpPage()>>;
  // HOST:PORT; port 0 picks one. UNAVAILABLE: the address cannot be had. The pages' functions are
  // called on the endpoint's threads and must not block.
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

}  // namespace npuc

#endif  // NPUC_SERVER_HTTP_HEALTH_ENDPOINT_H_
