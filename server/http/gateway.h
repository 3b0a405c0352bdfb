#ifndef NPUC_SERVER_HTTP_GATEWAY_H_
#define NPUC_SERVER_HTTP_GATEWAY_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/api/dependencies.h"
#include "server/http/http_server.h"

namespace npuc::http {

struct GatewayOptions {
  std::string listen = "127.0.0.1:0";  // HOST:PORT; port 0 picks one
  api::TlsFiles tls = {};
  // Where the dashboard's built files are; empty, or without them: a page that says so.
  std::string dashboard_dir = {};
  // Whether requests must name this machine in Host: for --insecure, where a page of another site
  // could else reach this port by a name of its own.
  bool loopback_only = true;
  absl::Duration heartbeat = absl::Seconds(10);    // of silent event streams
  absl::Duration max_stream_age = absl::Hours(1);  // watchers are asked to come back by then
  HttpLimits limits = {};
};

// The HTTP/JSON side of the service (proto/HTTP.md) and the dashboard. It calls what gRPC calls
// (server/api). Thread-safe.
class Gateway {
 public:
  // Listens at once. UNAVAILABLE: the address cannot be had. INVALID_ARGUMENT: the TLS files are no
  // good.
  static absl::StatusOr<std::unique_ptr<Gateway>> Start(const GatewayOptions& options,
                                                        api::ApiDependencies dependencies);
  // Ends what is under way.
  ~Gateway();
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;

  int port() const;
  // Ends event streams with UNAVAILABLE (DRAINING).
  void EndStreams();

 private:
  struct Impl;
  explicit Gateway(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace npuc::http

#endif  // NPUC_SERVER_HTTP_GATEWAY_H_
