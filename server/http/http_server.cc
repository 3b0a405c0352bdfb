#include "server/http/http_server.h"

#include <sys/socket.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "server/auth/client_address.h"
#include "server/http/http_connection.h"

namespace npuc::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Error = boost::system::error_code;

// Connections that wait to be accepted; one more loses its SYN and comes back a second later.
constexpr int kBacklog = 4096;
// Out of descriptors: accepting again at once would only spin.
constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr char kNoPlace[] =
    "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n"
    "Connection: close\r\n\r\n";

absl::Status Listen(const std::string& address, tcp::acceptor& acceptor) {
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port) ||
      port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat("'", Printable(address), "' is not HOST:PORT"));
  }
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  Error error;
  tcp::resolver resolver(acceptor.get_executor());
  const auto found = resolver.resolve(host, absl::StrCat(port), tcp::resolver::passive, error);
  if (!error && found.empty()) error = asio::error::host_not_found;
  for (auto at = found.begin(); at != found.end(); ++at) {
    const tcp::endpoint endpoint = at->endpoint();
    acceptor.close(error);
    acceptor.open(endpoint.protocol(), error);
    // Connections that ended with a server before do not keep the port; a second server cannot
    // share it.
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(kBacklog, error);
    if (!error) return absl::OkStatus();
  }
  return absl::UnavailableError(
      absl::StrCat("cannot listen on ", Printable(address), " (", error.message(), ")"));
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(Options options, std::unique_ptr<TlsContext> tls)
      : shared_(std::move(options), std::move(tls)), acceptor_(io_), pause_(io_) {}

  absl::Status Start() {
    RETURN_IF_ERROR(Listen(shared_.options.listen, acceptor_));
    port_ = acceptor_.local_endpoint().port();
    Accept();
    thread_ = std::thread([this] { Loop(); });
    return absl::OkStatus();
  }

  ~Impl() {
    if (!thread_.joinable()) return;
    std::promise<void> closed;
    asio::post(io_, [this, &closed] {
      stopping_ = true;
      Error ignored;
      acceptor_.close(ignored);
      pause_.cancel();
      const auto connections = shared_.connections;
      for (const auto& connection : connections) connection->Close();
      closed.set_value();
    });
    closed.get_future().wait();
    // Handlers under way find their connections closed; the thread ends once nothing is left.
    shared_.pool.join();
    work_.reset();
    thread_.join();
  }

  int port() const { return port_; }

 private:
  void Loop() {
    while (true) {
      try {
        io_.run();
        return;
      } catch (const std::exception&) {
        // Out of memory in one connection's step: its deadline closes it; the others go on.
      }
    }
  }

  void Accept() {
    acceptor_.async_accept([this](Error error, tcp::socket socket) {
      if (stopping_) return;
      if (!error) {
        Take(std::move(socket));
        return Accept();
      }
      pause_.expires_after(kAcceptPause);
      pause_.async_wait([this](Error) {
        if (!stopping_) Accept();
      });
    });
  }

  void Take(tcp::socket socket) {
    Error error;
    const tcp::endpoint remote = socket.remote_endpoint(error);
    if (error) return;
    const std::string peer = remote.address().to_string(error);
    const std::string place = auth::AddressGroup(peer);
    if (!MakePlace(place)) {
      if (shared_.tls == nullptr) {
        send(socket.native_handle(), kNoPlace, sizeof(kNoPlace) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
      }
      return;
    }
    const std::string endpoint = absl::StrCat(remote.address().is_v6() ? "[" : "", peer,
                                              remote.address().is_v6() ? "]:" : ":", remote.port());
    const auto connection =
        std::make_shared<HttpConnection>(&shared_, std::move(socket), peer, endpoint, place);
    shared_.connections.insert(connection);
    connection->Start();
  }

  // True if there is room for one more connection of `place`; closes the one that waits longest.
  bool MakePlace(const std::string& place) {
    const HttpLimits& limits = shared_.options.limits;
    size_t of_place = 0;
    for (const auto& connection : shared_.connections) of_place += connection->place() == place;
    const bool place_is_full = of_place >= limits.connections_of_address;
    if (!place_is_full && shared_.connections.size() < limits.connections) return true;
    std::shared_ptr<HttpConnection> oldest;
    for (const auto& connection : shared_.connections) {
      if (!connection->waiting_since().has_value()) continue;
      if (place_is_full && connection->place() != place) continue;
      if (oldest == nullptr || *connection->waiting_since() < *oldest->waiting_since()) {
        oldest = connection;
      }
    }
    if (oldest == nullptr) return false;
    oldest->Close();
    return true;
  }

  asio::io_context io_{1};
  HttpShared shared_;
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  bool stopping_ = false;  // of the server's thread
  int port_ = -1;
  std::thread thread_;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(Options options,
                                                              std::unique_ptr<TlsContext> tls) {
  auto impl = std::make_unique<Impl>(std::move(options), std::move(tls));
  RETURN_IF_ERROR(impl->Start());
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

int HttpServer::port() const { return impl_->port(); }

}  // namespace npuc::http
