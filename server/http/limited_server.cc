#include "server/http/limited_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/clock.h"

namespace npuc {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kBacklog = 128;
// How often a waiting connection looks whether the server stops.
constexpr std::chrono::milliseconds kStopLook{200};
constexpr char kRefusal[] =
    "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n"
    "Connection: close\r\n\r\n";

// Set on the accepting thread while it turns a connection away.
thread_local bool refusing = false;
// Set where a request was refused, so that its body may not have been read: what follows on the
// connection is then no request.
thread_local bool body_unread = false;

// The threads that serve connections. A connection that finds none and no room to wait is turned
// away at once.
class ConnectionPool : public httplib::TaskQueue {
 public:
  ConnectionPool(size_t threads, size_t waiting) : max_waiting_(waiting) {
    for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Loop(); });
  }

  void enqueue(std::function<void()> serve) override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (waiting_.size() < max_waiting_ + idle_) {
        waiting_.push_back(std::move(serve));
        wake_.notify_one();
        return;
      }
    }
    refusing = true;
    serve();
    refusing = false;
  }

  void shutdown() override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  void Loop() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      ++idle_;
      wake_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
      --idle_;
      if (waiting_.empty()) return;
      const std::function<void()> serve = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      serve();
      lock.lock();
    }
  }

  const size_t max_waiting_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> waiting_;  // guarded by mutex_
  size_t idle_ = 0;                            // guarded by mutex_
  bool stopping_ = false;                      // guarded by mutex_
  std::vector<std::thread> threads_;
};

bool WaitFor(int fd, short events, Clock::time_point deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd ready{fd, events, 0};
    const int count = poll(&ready, 1, static_cast<int>(std::min<int64_t>(left, 60000)));
    if (count > 0) return true;
    if (count < 0 && errno != EINTR) return false;
  }
}

// One connection's bytes, counted. The socket does not block.
class ConnectionStream : public httplib::Stream {
 public:
  ConnectionStream(int fd, SSL* ssl, const HttpLimits& limits)
      : fd_(fd), ssl_(ssl), limits_(limits) {}

  // The bounds of a request begin anew.
  void BeginRequest() {
    deadline_ = Clock::now() + limits_.request;
    left_ = limits_.header_bytes;
    in_headers_ = true;
    tail_ = {};
  }

  // Whether the next request's first byte came in time.
  bool WaitForRequest(const std::function<bool()>& stopping) {
    const Clock::time_point limit = Clock::now() + limits_.idle;
    while (at_ == filled_ && (ssl_ == nullptr || SSL_pending(ssl_) == 0)) {
      const Clock::time_point now = Clock::now();
      if (stopping() || now >= limit) return false;
      if (WaitFor(fd_, POLLIN, std::min(now + kStopLook, limit))) break;
    }
    return !stopping();
  }

  bool is_readable() const override {
    return at_ < filled_ || WaitFor(fd_, POLLIN, Clock::now() + limits_.request);
  }

  // A client that has closed its side is gone: an event stream then gives its thread back.
  bool is_writable() const override {
    pollfd ready{fd_, POLLOUT | POLLRDHUP, 0};
    return poll(&ready, 1, 0) >= 0 && (ready.revents & (POLLRDHUP | POLLHUP | POLLERR)) == 0;
  }

  ssize_t read(char* out, size_t size) override {
    if (at_ == filled_ && !Fill()) return -1;
    size = std::min(size, filled_ - at_);
    if (size > left_) return -1;
    left_ -= size;
    std::copy_n(buffer_.data() + at_, size, out);
    at_ += size;
    if (in_headers_) LookForEnd({out, size});
    return static_cast<ssize_t>(size);
  }

  ssize_t write(const char* bytes, size_t size) override {
    const Clock::time_point limit = Clock::now() + limits_.write;
    while (true) {
      const ssize_t sent =
          ssl_ != nullptr
              ? SSL_write(ssl_, bytes, static_cast<int>(std::min<size_t>(size, size_t{1} << 20)))
              : send(fd_, bytes, size, MSG_NOSIGNAL);
      if (sent > 0) return sent;
      if (!WaitToGoOn(sent, POLLOUT, limit)) return -1;
    }
  }

  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    sockaddr_storage address = {};
    socklen_t length = sizeof(address);
    if (getpeername(fd_, reinterpret_cast<sockaddr*>(&address), &length) == 0) {
      Show(address, ip, port);
    }
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    sockaddr_storage address = {};
    socklen_t length = sizeof(address);
    if (getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length) == 0) {
      Show(address, ip, port);
    }
  }
  socket_t socket() const override { return fd_; }

 private:
  static void Show(const sockaddr_storage& address, std::string& ip, int& port) {
    char text[INET6_ADDRSTRLEN] = {};
    if (address.ss_family == AF_INET) {
      const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
      inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
      port = ntohs(v4.sin_port);
    } else if (address.ss_family == AF_INET6) {
      const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
      inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
      port = ntohs(v6.sin6_port);
    }
    ip = text;
  }

  // After a read or write that gave `result`: waits until it is worth another try.
  bool WaitToGoOn(ssize_t result, short events, Clock::time_point limit) const {
    if (ssl_ != nullptr) {
      const int error = SSL_get_error(ssl_, static_cast<int>(result));
      ERR_clear_error();
      if (error == SSL_ERROR_WANT_READ) return WaitFor(fd_, POLLIN, limit);
      if (error == SSL_ERROR_WANT_WRITE) return WaitFor(fd_, POLLOUT, limit);
      return false;
    }
    if (result < 0 && errno == EINTR) return true;
    return result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) && WaitFor(fd_, events, limit);
  }

  bool Fill() {
    while (true) {
      const ssize_t got = ssl_ != nullptr
                              ? SSL_read(ssl_, buffer_.data(), static_cast<int>(buffer_.size()))
                              : recv(fd_, buffer_.data(), buffer_.size(), 0);
      if (got > 0) {
        at_ = 0;
        filled_ = static_cast<size_t>(got);
        return true;
      }
      if (!WaitToGoOn(got, POLLIN, deadline_)) return false;
    }
  }

  // A line with nothing but its end ends the headers; then the body's bound holds. Bodies in
  // chunks have a few bytes more than their content.
  void LookForEnd(absl::string_view bytes) {
    for (const char byte : bytes) {
      tail_ = {tail_[1], tail_[2], byte};
      if (tail_ != std::array<char, 3>{'\n', '\r', '\n'}) continue;
      in_headers_ = false;
      left_ = limits_.body_bytes + limits_.header_bytes;
      return;
    }
  }

  const int fd_;
  SSL* const ssl_;
  const HttpLimits& limits_;
  Clock::time_point deadline_ = Clock::time_point::max();
  size_t left_ = 0;
  bool in_headers_ = true;
  std::array<char, 3> tail_ = {};
  std::array<char, 4096> buffer_;
  size_t at_ = 0;
  size_t filled_ = 0;
};

bool Handshake(int fd, SSL* ssl, Clock::time_point deadline) {
  while (true) {
    const int result = SSL_accept(ssl);
    if (result == 1) return true;
    const int error = SSL_get_error(ssl, result);
    ERR_clear_error();
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) return false;
    if (!WaitFor(fd, error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, deadline)) return false;
  }
}

}  // namespace

LimitedServer::LimitedServer(HttpLimits limits, std::unique_ptr<TlsContext> tls)
    : limits_(limits), tls_(std::move(tls)) {
  new_task_queue = [this] {
    return new ConnectionPool(limits_.connections, limits_.waiting_connections);
  };
  set_payload_max_length(limits_.body_bytes);
  set_keep_alive_max_count(limits_.requests);
  set_keep_alive_timeout(std::chrono::duration_cast<std::chrono::seconds>(limits_.idle).count());
  set_logger([](const httplib::Request& request, const httplib::Response& response) {
    body_unread = ClosesAfter(request, response);
  });
  // Not the library's default, which lets a second server share the port; but connections that
  // ended with a server before do not keep the port.
  set_socket_options([](socket_t sock) {
    const int on = 1;
    setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  });
}

bool LimitedServer::ClosesAfter(const httplib::Request& request,
                                const httplib::Response& response) {
  return response.status >= 400 && request.method != "GET" && request.method != "HEAD";
}

void LimitedServer::RaiseBacklog() { ::listen(svr_sock_, kBacklog); }

bool LimitedServer::process_and_close_socket(socket_t sock) {
  bool served = false;
  if (!refusing) {
    served = Serve(sock);
  } else if (tls_ == nullptr) {
    send(sock, kRefusal, sizeof(kRefusal) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  shutdown(sock, SHUT_RDWR);
  close(sock);
  return served;
}

bool LimitedServer::Serve(socket_t sock) {
  fcntl(sock, F_SETFL, fcntl(sock, F_GETFL) | O_NONBLOCK);
  std::shared_ptr<SSL_CTX> context;
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl(nullptr, SSL_free);
  if (tls_ != nullptr) {
    context = tls_->Current(absl::Now());
    ssl.reset(SSL_new(context.get()));
    if (ssl == nullptr || SSL_set_fd(ssl.get(), sock) != 1 ||
        !Handshake(sock, ssl.get(), Clock::now() + limits_.handshake)) {
      return false;
    }
    SSL_set_mode(ssl.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  }
  ConnectionStream stream(sock, ssl.get(), limits_);
  for (size_t left = limits_.requests; left > 0; --left) {
    if (!stream.WaitForRequest([this] { return svr_sock_ == INVALID_SOCKET; })) break;
    stream.BeginRequest();
    body_unread = false;
    bool closed = false;
    const bool ok = process_request(stream, left == 1, closed, [&ssl](httplib::Request& request) {
      // Ranges are the handlers' own matter; the library's have no bounds.
      request.ranges.clear();
      request.ssl = ssl.get();
    });
    if (!ok || closed || body_unread) break;
  }
  if (ssl != nullptr) SSL_shutdown(ssl.get());
  return true;
}

}  // namespace npuc
