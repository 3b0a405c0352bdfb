#ifndef NPUC_SERVER_HTTP_HTTP_CONNECTION_H_
#define NPUC_SERVER_HTTP_HTTP_CONNECTION_H_

// Included by http_server.cc and http_connection.cc alone: Beast and Asio take seconds to compile.
#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/http/http_message.h"
#include "server/http/http_server.h"
#include "server/http/tls_context.h"

namespace npuc::http {

class HttpConnection;

// State that a server's connections share. Used on the server's thread alone, except the pool.
struct HttpShared {
  HttpShared(HttpServer::Options server_options, std::unique_ptr<TlsContext> server_tls)
      : options(std::move(server_options)),
        tls(std::move(server_tls)),
        pool(options.limits.threads) {}

  const HttpServer::Options options;
  const std::unique_ptr<TlsContext> tls;  // null: no encryption
  size_t bodies_bytes = 0;                // room that requests' bodies have taken
  std::set<std::shared_ptr<HttpConnection>> connections;
  boost::asio::thread_pool pool;  // runs what may wait for the disk
};

// A socket with or without TLS, as Beast and Asio want a stream.
class HttpWire {
 public:
  using executor_type = boost::beast::tcp_stream::executor_type;

  explicit HttpWire(boost::asio::ip::tcp::socket socket) : tcp(std::move(socket)) {}
  executor_type get_executor() { return tcp.get_executor(); }

  template <typename Buffers, typename Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    tls ? tls->async_read_some(buffers, std::forward<Handler>(handler))
        : tcp.async_read_some(buffers, std::forward<Handler>(handler));
  }
  template <typename Buffers, typename Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    tls ? tls->async_write_some(buffers, std::forward<Handler>(handler))
        : tcp.async_write_some(buffers, std::forward<Handler>(handler));
  }

  boost::beast::tcp_stream tcp;
  std::optional<boost::asio::ssl::stream<boost::beast::tcp_stream&>> tls;
};

// One client's connection: head, admission, body, answer, and again. Each function below starts one
// thing and names the function that goes on when it is done; all run on the server's thread. It
// lives while anything of it is under way, or until Close.
class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  using Clock = std::chrono::steady_clock;

  // `peer`: the client's address; `endpoint`: with its port; `place`: what its places are counted
  // under.
  HttpConnection(HttpShared* shared, boost::asio::ip::tcp::socket socket, std::string peer,
                 std::string endpoint, std::string place);

  void Start();
  // At once; gives its place back.
  void Close();

  const std::string& place() const { return place_; }
  // Since when it has kept its place without a request that was let in; nullopt: it has one.
  std::optional<Clock::time_point> waiting_since() const { return waiting_since_; }

 private:
  using Error = boost::beast::error_code;

  void OnHandshake(Error error);
  void AwaitRequest();
  void OnFirstBytes(Error error, size_t count);
  void OnHead(Error error, size_t count);
  void AdmitRequest(const HttpFraming& framing, bool expects_continue);
  void OnContinueSent(Error error, size_t count);
  void ReadBody();
  void OnBody(Error error, size_t count);
  void Run();
  void Respond(HttpResponse response);
  void Refuse(int status, const std::string& why);
  void StartStream();
  void NextPiece();
  void OnPiece(absl::StatusOr<HttpStream::Piece> piece);
  void AwaitWake();
  void OnWake();
  void WriteOut();
  void OnWritten(Error error, size_t count);
  void EndRequest();
  // Ends the connection so that the client still reads the answer: what it goes on sending is
  // dropped for a moment. Closed at once, the kernel would reset the connection.
  void Linger();
  void DropInput();
  void OnDropped(Error error, size_t count);

  HttpShared* const shared_;
  const HttpLimits& limits_;
  const std::string peer_;
  const std::string endpoint_;
  const std::string place_;
  HttpWire wire_;
  std::unique_ptr<api::OpenConnections::Place> entry_;  // ends before the socket
  const HttpWire::executor_type executor_;
  boost::asio::steady_timer timer_;
  bool closed_ = false;
  std::optional<Clock::time_point> waiting_since_;
  std::vector<std::string> certificate_names_;
  boost::beast::flat_buffer buffer_;
  size_t requests_ = 0;

  // The request under way:
  Clock::time_point began_;
  std::optional<boost::beast::http::request_parser<boost::beast::http::string_body>> parser_;
  HttpRequest request_;
  std::function<HttpResponse(const HttpRequest&)> handle_;
  int minor_version_ = 1;
  bool keep_alive_ = false;
  size_t body_room_ = 0;

  // Its answer:
  std::string out_;
  size_t out_at_ = 0;
  std::shared_ptr<HttpStream> stream_;  // null: all is in out_
  bool chunked_ = false;
  bool last_piece_ = false;
  bool awaits_wake_ = false;
  bool woken_ = false;
  bool sees_end_ = false;  // a read is under way that sees the client go
  std::array<char, 4096> dropped_;
  size_t dropped_bytes_ = 0;
};

}  // namespace npuc::http

#endif  // NPUC_SERVER_HTTP_HTTP_CONNECTION_H_
