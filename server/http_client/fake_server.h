#ifndef NPUC_SERVER_HTTP_CLIENT_FAKE_SERVER_H_
#define NPUC_SERVER_HTTP_CLIENT_FAKE_SERVER_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/mutex.h"

namespace npuc::http_client {

// Listens on this machine, reads one request a connection, and answers with the given bytes, in
// turn; the last answer is for all that come later.
class FakeServer {
 public:
  static constexpr char kHangs[] = "(hangs)";  // an answer that never comes

  explicit FakeServer(std::vector<std::string> answers) : answers_(std::move(answers)) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address));
    listen(listener_, 64);
    socklen_t size = sizeof(address);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    if (pipe(stop_) != 0) port_ = 0;
    thread_ = std::thread([this] { Loop(); });
  }
  ~FakeServer() {
    close(stop_[1]);
    thread_.join();
    close(stop_[0]);
    close(listener_);
    for (const int fd : hanging_) close(fd);
  }

  std::string url(absl::string_view path = "/") const {
    return absl::StrCat("http://127.0.0.1:", port_, path);
  }
  std::vector<std::string> requests() const {
    const MutexLock lock(mutex_);
    return requests_;
  }

 private:
  bool Await(int fd) const {
    pollfd wanted[2] = {{.fd = fd, .events = POLLIN, .revents = 0},
                        {.fd = stop_[0], .events = POLLIN, .revents = 0}};
    poll(wanted, 2, -1);
    return wanted[1].revents == 0;
  }

  void Loop() {
    while (Await(listener_)) {
      const int fd = accept(listener_, nullptr, nullptr);
      if (fd >= 0) Serve(fd);
    }
  }

  void Serve(int fd) {
    std::string request;
    size_t wanted = std::string::npos;
    while (request.size() < wanted && Await(fd)) {
      char buffer[65536];
      const ssize_t count = read(fd, buffer, sizeof(buffer));
      if (count <= 0) break;
      request.append(buffer, static_cast<size_t>(count));
      const size_t head = request.find("\r\n\r\n");
      const size_t length = request.find("Content-Length: ");
      uint32_t bytes = 0;
      if (head == std::string::npos) continue;
      // Without a length it has no body.
      if (length == std::string::npos ||
          absl::SimpleAtoi(request.substr(length + 16, request.find("\r\n", length) - length - 16),
                           &bytes)) {
        wanted = head + 4 + bytes;
      }
    }
    const MutexLock lock(mutex_);
    requests_.push_back(std::move(request));
    const std::string answer =
        answers_.empty() ? "" : answers_[std::min(requests_.size(), answers_.size()) - 1];
    if (answer == kHangs) {
      hanging_.push_back(fd);
      return;
    }
    absl::string_view rest = answer;
    while (!rest.empty()) {
      const ssize_t sent = send(fd, rest.data(), rest.size(), MSG_NOSIGNAL);
      if (sent <= 0) break;
      rest.remove_prefix(static_cast<size_t>(sent));
    }
    close(fd);
  }

  const std::vector<std::string> answers_;
  int listener_ = -1;
  int port_ = 0;
  int stop_[2] = {-1, -1};
  std::vector<int> hanging_;  // of the thread
  mutable Mutex mutex_;
  std::vector<std::string> requests_ NPUC_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace npuc::http_client

#endif  // NPUC_SERVER_HTTP_CLIENT_FAKE_SERVER_H_
