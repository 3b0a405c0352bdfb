// Stands between the nodes of a cluster and PostgreSQL, a port for each node, and spoils what
// passes. Commands come by standard input, a line each: the node's number and a mode.
//
//   pass     bytes go both ways
//   cut      all connections are closed, new ones too
//   hole     nothing passes, and nothing is closed
//   oneway   what the node sends arrives, and no answer comes back
//   delay    bytes go both ways, kDelay late
//   answers  what the node sends arrives; at the answer the connection is closed
//
// A connection that has lost bytes is closed where bytes pass again.
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "cache/posix.h"

namespace npuc::fault {
namespace {

using cache::UniqueFd;

using Clock = std::chrono::steady_clock;

enum class Mode { kPass, kCut, kHole, kOneWay, kDelay, kAnswers };

constexpr size_t kMaxBuffer = size_t{1} << 20;
constexpr std::chrono::milliseconds kDelay(300);

struct Node {
  UniqueFd listener;
  Mode mode = Mode::kPass;
};

UniqueFd Listen(int& port) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  const bool listens = bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
                       listen(fd.get(), 64) == 0 &&
                       getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0;
  port = listens ? ntohs(address.sin_port) : 0;
  return fd;
}

UniqueFd Connect(const std::string& path) {
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), std::min(path.size(), sizeof(address.sun_path) - 1));
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return UniqueFd();
  }
  fcntl(fd.get(), F_SETFL, O_NONBLOCK);
  return fd;
}

// False: the peer is gone.
bool Read(int fd, std::string& buffer) {
  char bytes[65536];
  const ssize_t count = read(fd, bytes, sizeof(bytes));
  if (count > 0) buffer.append(bytes, static_cast<size_t>(count));
  return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

// Bytes on their way to one end of a connection.
class Flow {
 public:
  bool is_full() const { return size_ >= kMaxBuffer; }
  // When the next bytes may arrive.
  std::optional<Clock::time_point> due() const {
    if (parts_.empty()) return std::nullopt;
    return parts_.front().due;
  }
  bool is_due(Clock::time_point now) const { return !parts_.empty() && parts_.front().due <= now; }

  // Takes what has come; no bytes overtake others. False: the peer is gone.
  bool Take(int fd, Clock::time_point due) {
    std::string bytes;
    const bool lives = Read(fd, bytes);
    if (bytes.empty()) return lives;
    size_ += bytes.size();
    if (!parts_.empty()) due = std::max(due, parts_.back().due);
    parts_.push_back({due, std::move(bytes)});
    return lives;
  }

  // Sends what may arrive. False: the peer is gone.
  bool Send(int fd, Clock::time_point now) {
    while (is_due(now)) {
      std::string& bytes = parts_.front().bytes;
      const ssize_t count = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count < 0) return errno == EAGAIN || errno == EINTR;
      size_ -= static_cast<size_t>(count);
      bytes.erase(0, static_cast<size_t>(count));
      if (bytes.empty()) parts_.pop_front();
    }
    return true;
  }

 private:
  struct Part {
    Clock::time_point due;
    std::string bytes;
  };

  std::deque<Part> parts_;
  size_t size_ = 0;
};

struct Link {
  size_t node = 0;
  UniqueFd client;
  UniqueFd server;
  Flow to_server = {};
  Flow to_client = {};
  bool over = false;
};

class Proxy {
 public:
  Proxy(std::string target, size_t nodes) : target_(std::move(target)), nodes_(nodes) {}

  // Prints the ports.
  bool Start() {
    for (Node& node : nodes_) {
      int port = 0;
      node.listener = Listen(port);
      if (port == 0) return false;
      std::printf("%d\n", port);
    }
    std::fflush(stdout);
    return true;
  }

  // Until standard input ends.
  void Loop() {
    while (Step()) {
    }
  }

 private:
  bool Step() {
    std::vector<pollfd> polls = {{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0}};
    for (const Node& node : nodes_) {
      const bool accepts = node.mode != Mode::kHole;
      polls.push_back({.fd = accepts ? node.listener.get() : -1, .events = POLLIN, .revents = 0});
    }
    const Clock::time_point now = Clock::now();
    int timeout_ms = -1;  // until the first bytes may arrive
    const auto wait_for = [&](const Flow& flow) {
      const std::optional<Clock::time_point> due = flow.due();
      if (!due.has_value() || *due <= now) return;
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*due - now);
      const int left_ms = static_cast<int>(left.count());
      timeout_ms = timeout_ms < 0 ? left_ms : std::min(timeout_ms, left_ms);
    };
    for (const Link& link : links_) {
      const Mode mode = nodes_[link.node].mode;
      const bool moves = mode != Mode::kHole;
      const auto events = [&](bool reads, const Flow& in, const Flow& out) {
        return static_cast<short>((reads && !in.is_full() ? POLLIN : 0) |
                                  (out.is_due(now) ? POLLOUT : 0));
      };
      polls.push_back({.fd = moves ? link.client.get() : -1,
                       .events = events(true, link.to_server, link.to_client),
                       .revents = 0});
      polls.push_back({.fd = moves ? link.server.get() : -1,
                       .events = events(mode != Mode::kOneWay, link.to_client, link.to_server),
                       .revents = 0});
      if (!moves) continue;
      wait_for(link.to_server);
      wait_for(link.to_client);
    }
    if (poll(polls.data(), polls.size(), timeout_ms) < 0) return errno == EINTR;
    size_t at = 1 + nodes_.size();
    for (Link& link : links_) {
      if (nodes_[link.node].mode != Mode::kHole) Move(link, polls[at], polls[at + 1]);
      at += 2;
    }
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (polls[1 + i].revents != 0) Accept(i);
    }
    const bool goes_on = polls[0].revents == 0 || Obey();
    links_.remove_if([](const Link& link) { return link.over; });
    return goes_on;
  }

  void Move(Link& link, const pollfd& client, const pollfd& server) {
    constexpr short kReadable = POLLIN | POLLHUP | POLLERR;
    const Mode mode = nodes_[link.node].mode;
    const Clock::time_point now = Clock::now();
    const Clock::time_point due = mode == Mode::kDelay ? now + kDelay : now;
    if ((client.revents & kReadable) != 0 && !link.to_server.Take(client.fd, due)) link.over = true;
    if ((server.revents & kReadable) != 0) {
      // Without an answer to come, one that has gone away is all that is heard of the server.
      const bool lives = mode != Mode::kOneWay && link.to_client.Take(server.fd, due);
      if (!lives || mode == Mode::kAnswers) link.over = true;
      if (mode == Mode::kAnswers) return;
    }
    if (!link.to_server.Send(server.fd, now)) link.over = true;
    if (mode != Mode::kOneWay && !link.to_client.Send(client.fd, now)) link.over = true;
  }

  void Accept(size_t node) {
    UniqueFd client(
        accept4(nodes_[node].listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (client.get() < 0 || nodes_[node].mode == Mode::kCut) return;
    UniqueFd server = Connect(target_);
    if (server.get() < 0) return;  // refused, as PostgreSQL is away
    links_.push_back({.node = node, .client = std::move(client), .server = std::move(server)});
  }

  // False: nobody commands any more.
  bool Obey() {
    if (!Read(STDIN_FILENO, commands_)) return false;
    for (size_t end = commands_.find('\n'); end != std::string::npos; end = commands_.find('\n')) {
      std::istringstream line(commands_.substr(0, end));
      commands_.erase(0, end + 1);
      const std::map<std::string, Mode> modes = {
          {"pass", Mode::kPass},     {"cut", Mode::kCut},     {"hole", Mode::kHole},
          {"oneway", Mode::kOneWay}, {"delay", Mode::kDelay}, {"answers", Mode::kAnswers}};
      size_t node = 0;
      std::string mode;
      line >> node >> mode;
      const auto found = modes.find(mode);
      if (node >= nodes_.size() || found == modes.end()) {
        std::fprintf(stderr, "pg_proxy: no command: %s\n", line.str().c_str());
        return false;
      }
      nodes_[node].mode = found->second;
      for (Link& link : links_) link.over = link.over || (link.node == node && mode == "cut");
    }
    return true;
  }

  const std::string target_;
  std::vector<Node> nodes_;
  std::list<Link> links_;
  std::string commands_;
};

int Main(int argc, char** argv) {
  std::string target;
  size_t nodes = 3;
  CLI::App app("spoils what passes between nodes and PostgreSQL", "pg_proxy");
  app.add_option("--target", target, "PostgreSQL's socket")->required();
  app.add_option("--nodes", nodes, "how many ports")->check(CLI::Range(1, 64));
  CLI11_PARSE(app, argc, argv);
  signal(SIGPIPE, SIG_IGN);
  Proxy proxy(target, nodes);
  if (!proxy.Start()) return 1;
  proxy.Loop();
  return 0;
}

}  // namespace
}  // namespace npuc::fault

int main(int argc, char** argv) { return npuc::fault::Main(argc, argv); }
