#ifndef NPUC_SERVER_HTTP_HTTP_SERVER_H_
#define NPUC_SERVER_HTTP_HTTP_SERVER_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "server/api/open_connections.h"
#include "server/http/http_message.h"

namespace npuc::http {

class TlsContext;

// Bounds on what clients may take. A time bounds a whole step, never a single read.
struct HttpLimits {
  // Connections at once. Where there are as many, a further one takes the place of the one that has
  // kept a place for longest without a request that was let in; else it is refused with 503.
  size_t connections = 512;
  size_t connections_of_address = 256;
  size_t header_bytes = 16 << 10;  // request line and headers; gRPC's bound for metadata
  size_t bodies_bytes = 64 << 20;  // of all requests whose bodies are read or being answered
  size_t requests = 1000;          // then the connection is closed
  size_t threads = 16;             // on which requests are answered; connections need none
  std::chrono::milliseconds handshake{5000};
  std::chrono::milliseconds head{10000};     // a request's head, from its first byte
  std::chrono::milliseconds request{30000};  // a request from its first byte to its last
  std::chrono::milliseconds idle{30000};     // between requests
  std::chrono::milliseconds piece{20000};    // in which a client takes 64 KiB of an answer
};

// The decision about a request once its head is known.
struct HttpAdmission {
  // It is answered at once; its body, if any, is not read.
  std::optional<HttpResponse> answer = std::nullopt;
  // Otherwise: the body may have so many bytes, is read, and this answers, on a thread that may
  // wait.
  size_t max_body_bytes = 0;
  std::function<HttpResponse(const HttpRequest& request)> handle = nullptr;
};

// HTTP/1.1 by Boost.Beast and Asio (README.md says why), which no other file includes. One thread
// has all connections and their deadlines. Thread-safe.
class HttpServer {
 public:
  struct Options {
    std::string listen;  // HOST:PORT; an IPv6 host in brackets; port 0 is any free one
    HttpLimits limits = {};
    // Decides by a request's head. Called on the server's one thread: must not wait for anything.
    std::function<HttpAdmission(const HttpRequest& head)> admit;
    // Answers what the server refuses before there is a request to admit: status 400 (`why` says
    // what is wrong), 413, 417, 431, 500 or 503. Same thread as admit.
    std::function<HttpResponse(int status, const std::string& why)> refuse;
    api::OpenConnections* connections = nullptr;  // has those that are open; may be null
  };

  // Listens at once. `tls` null: no encryption. INVALID_ARGUMENT: the address is not of that form;
  // UNAVAILABLE: it cannot be had, and why.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(Options options,
                                                           std::unique_ptr<TlsContext> tls);
  // Closes all connections; waits for handlers under way.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace npuc::http

#endif  // NPUC_SERVER_HTTP_HTTP_SERVER_H_
