#include "server/rpc/connection_listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"

namespace npuc::rpc {
namespace {

// Without a descriptor or memory for it, a connection waits in the backlog; how long until the next
// look.
constexpr int kScarceMs = 50;
constexpr int kAcceptsInARow = 64;  // then others that wait in epoll have their turn

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

absl::StatusOr<Addresses> Resolve(absl::string_view address) {
  const size_t colon = address.rfind(':');
  if (colon == absl::string_view::npos) return absl::UnavailableError("it is not HOST:PORT");
  std::string host(address.substr(0, colon));
  const std::string port(address.substr(colon + 1));
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(host.empty() ? nullptr : host.c_str(), port.c_str(), &hints, &list);
  if (error != 0) return absl::UnavailableError(gai_strerror(error));
  return Addresses(list);
}

int PortOf(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    return ntohs(reinterpret_cast<const sockaddr_in*>(address)->sin_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in6*>(address)->sin6_port);
}

void SetPort(sockaddr* address, int port) {
  const auto network_order = htons(static_cast<uint16_t>(port));
  if (address->sa_family == AF_INET) {
    reinterpret_cast<sockaddr_in*>(address)->sin_port = network_order;
  } else {
    reinterpret_cast<sockaddr_in6*>(address)->sin6_port = network_order;
  }
}

// "127.0.0.1:4711", "[::1]:4711".
std::string EndpointText(const sockaddr_storage& peer) {
  char text[INET6_ADDRSTRLEN] = {};
  const bool is_v6 = peer.ss_family == AF_INET6;
  const void* const address =
      is_v6 ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(&peer)->sin6_addr)
            : &reinterpret_cast<const sockaddr_in*>(&peer)->sin_addr;
  inet_ntop(peer.ss_family, address, text, sizeof(text));
  return absl::StrCat(is_v6 ? "[" : "", text, is_v6 ? "]:" : ":",
                      PortOf(reinterpret_cast<const sockaddr*>(&peer)));
}

// NOT_FOUND: this machine has no such address, or family.
absl::Status CallRefused(absl::string_view what) {
  const bool not_here = errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT;
  return {not_here ? absl::StatusCode::kNotFound : absl::StatusCode::kUnavailable,
          absl::StrCat(what, ": ", strerror(errno))};
}

bool SetFlag(int fd, int level, int name) {
  const int on = 1;
  return setsockopt(fd, level, name, &on, sizeof on) == 0;
}

// Sockets that accept inherits from: without Nagle's delay, as gRPC sets its own.
absl::StatusOr<cache::UniqueFd> ListenOn(const addrinfo& address) {
  cache::UniqueFd fd(socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return CallRefused("socket");
  // REUSEADDR: a restart need not wait for the last one's connections. A second server on the same
  // port is an error all the same.
  if (!SetFlag(fd.get(), SOL_SOCKET, SO_REUSEADDR) ||
      !SetFlag(fd.get(), IPPROTO_TCP, TCP_NODELAY)) {
    return CallRefused("setsockopt");
  }
  if (address.ai_family == AF_INET6 && !SetFlag(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY)) {
    return CallRefused("setsockopt");
  }
  if (bind(fd.get(), address.ai_addr, address.ai_addrlen) != 0) return CallRefused("bind");
  if (listen(fd.get(), SOMAXCONN) != 0) return CallRefused("listen");
  return fd;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ConnectionListener>> ConnectionListener::Listen(
    absl::string_view address, size_t max_connections) {
  auto listener = std::unique_ptr<ConnectionListener>(new ConnectionListener(max_connections));
  absl::Status status = listener->Bind(address);
  if (status.ok()) status = listener->WatchListeners();
  if (!status.ok()) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address, " (", status.message(), ")"));
  }
  return listener;
}

ConnectionListener::~ConnectionListener() { Stop(); }

absl::Status ConnectionListener::Bind(absl::string_view address) {
  ASSIGN_OR_RETURN(const Addresses addresses, Resolve(address));
  absl::Status not_here = absl::NotFoundError("it has no address");
  for (addrinfo* one = addresses.get(); one != nullptr; one = one->ai_next) {
    if (one->ai_family != AF_INET && one->ai_family != AF_INET6) continue;
    // With port 0 the second address gets what the first one got.
    if (port_ != 0) SetPort(one->ai_addr, port_);
    auto fd = ListenOn(*one);
    if (absl::IsNotFound(fd.status())) {
      // localhost, say, stands for both families, and many a machine has one of them alone.
      not_here = fd.status();
      continue;
    }
    RETURN_IF_ERROR(fd.status());
    sockaddr_storage bound = {};
    socklen_t size = sizeof bound;
    if (getsockname(fd->get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
      return CallRefused("getsockname");
    }
    port_ = PortOf(reinterpret_cast<sockaddr*>(&bound));
    listeners_.push_back(*std::move(fd));
  }
  return listeners_.empty() ? not_here : absl::OkStatus();
}

absl::Status ConnectionListener::WatchListeners() {
  epoll_ = cache::UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  stop_ = cache::UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_.valid() || !stop_.valid()) return CallRefused("epoll");
  std::vector<int> watched = {stop_.get()};
  for (const cache::UniqueFd& listener : listeners_) watched.push_back(listener.get());
  for (const int fd : watched) {
    epoll_event event = {.events = EPOLLIN, .data = {.fd = fd}};
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return CallRefused("epoll");
  }
  return absl::OkStatus();
}

void ConnectionListener::Start(api::OpenConnections* book, Take take) {
  book_ = book;
  take_ = std::move(take);
  thread_ = std::thread([this] { Loop(); });
}

void ConnectionListener::Stop() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    // An eventfd takes eight bytes or none, and none only at its largest value.
    static_cast<void>(!write(stop_.get(), &one, sizeof one));
    thread_.join();
  }
  listeners_.clear();
  for (auto& [fd, place] : counted_) {
    place.reset();
    close(fd);
  }
  counted_.clear();
  open_ = 0;
}

void ConnectionListener::Loop() {
  epoll_event events[64];
  while (true) {
    const int count = cache::RetryOnEintr([&] { return epoll_wait(epoll_.get(), events, 64, -1); });
    // Ends first: their places may be wanted by those who come.
    for (int i = 0; i < count; ++i) {
      const int fd = events[i].data.fd;
      if (fd == stop_.get()) return;
      if (counted_.count(fd) != 0 && (events[i].events & EPOLLHUP) != 0) Forget(fd);
    }
    for (int i = 0; i < count; ++i) {
      for (const cache::UniqueFd& listener : listeners_) {
        if (listener.get() == events[i].data.fd) AcceptFrom(listener.get());
      }
    }
  }
}

void ConnectionListener::AcceptFrom(int listener) {
  for (int i = 0; i < kAcceptsInARow && AcceptOne(listener); ++i) {
  }
}

bool ConnectionListener::AcceptOne(int listener) {
  sockaddr_storage peer = {};
  socklen_t peer_bytes = sizeof(peer);
  cache::UniqueFd fd(cache::RetryOnEintr([&] {
    return accept4(listener, reinterpret_cast<sockaddr*>(&peer), &peer_bytes,
                   SOCK_NONBLOCK | SOCK_CLOEXEC);
  }));
  if (!fd.valid()) {
    const bool scarce = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
    if (scarce) {
      pollfd stop = {.fd = stop_.get(), .events = POLLIN, .revents = 0};
      poll(&stop, 1, kScarceMs);
    }
    // What is left are errors of the one connection (it went away), and none to accept.
    return errno == ECONNABORTED;
  }
  if (counted_.size() >= max_connections_) {
    ++refused_;
    return true;  // closes it
  }
  cache::UniqueFd counted(fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
  // No event but the end (HUP, which always comes): both directions are shut down.
  epoll_event event = {.events = EPOLLET, .data = {.fd = counted.get()}};
  if (!counted.valid() || epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, counted.get(), &event) != 0) {
    ++refused_;
    return true;
  }
  auto place = book_->Add(api::kGrpc, EndpointText(peer), counted.get());
  counted_.emplace(counted.Release(), std::move(place));
  open_ = counted_.size();
  take_(std::move(fd));
  return true;
}

void ConnectionListener::Forget(int counted) {
  // Explicitly, since the other descriptor may still hold the socket open.
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, counted, nullptr);
  counted_.erase(counted);
  close(counted);
  open_ = counted_.size();
}

}  // namespace npuc::rpc
