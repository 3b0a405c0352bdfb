#ifndef NPUC_SERVER_HTTP_LIMITED_SERVER_H_
#define NPUC_SERVER_HTTP_LIMITED_SERVER_H_

#include <httplib.h>

#include <chrono>
#include <cstddef>
#include <memory>

#include "server/http/tls_context.h"

namespace npuc {

// What one client may take. Every bound is of one connection but for the first two.
struct HttpLimits {
  size_t connections = 64;          // served at once; each has a thread
  size_t waiting_connections = 64;  // further ones are refused with 503
  size_t header_bytes = 16 << 10;   // request line and headers; gRPC's bound for metadata
  size_t body_bytes = 4 << 20;      // gRPC's bound for a request
  size_t requests = 1000;           // then the connection is closed
  std::chrono::milliseconds handshake{5000};
  std::chrono::milliseconds request{30000};  // from its first byte to its last
  std::chrono::milliseconds idle{3000};      // between requests
  std::chrono::milliseconds write{10000};    // in which nothing could be sent
};

// cpp-httplib's server with bounds that the library lacks (number of header lines, time of a whole
// request, connections that wait), and TLS with client certificates that are not demanded.
class LimitedServer : public httplib::Server {
 public:
  // `tls` null: no encryption.
  LimitedServer(HttpLimits limits, std::unique_ptr<TlsContext> tls);

  // After a bind: the library's backlog is 5.
  void RaiseBacklog();
  // Whether the connection ends with this answer.
  static bool ClosesAfter(const httplib::Request& request, const httplib::Response& response);
  bool uses_tls() const { return tls_ != nullptr; }

 private:
  bool process_and_close_socket(socket_t sock) override;
  bool Serve(socket_t sock);

  const HttpLimits limits_;
  const std::unique_ptr<TlsContext> tls_;
};

}  // namespace npuc

#endif  // NPUC_SERVER_HTTP_LIMITED_SERVER_H_
