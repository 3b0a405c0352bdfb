#ifndef NPUC_SERVER_RPC_CONNECTION_LISTENER_H_
#define NPUC_SERVER_RPC_CONNECTION_LISTENER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cache/posix.h"
#include "server/api/open_connections.h"

namespace npuc::rpc {

// Accepts TCP connections for a server that cannot count them (gRPC 1.51) and hands each on as a
// descriptor. Where as many are open as may be, a further one is closed at once, which gRPC's
// clients take as UNAVAILABLE and try again. Thread-safe.
class ConnectionListener {
 public:
  struct Counts {
    size_t open = 0;       // handed on and not closed yet, by either side
    uint64_t refused = 0;  // since the start
  };
  // Gets a connected, non-blocking socket; must shut it down (shutdown(2), as gRPC does) when it is
  // done with it, since the count holds a second descriptor. Called on one thread.
  using Take = std::function<void(cache::UniqueFd)>;

  // Binds all addresses that `address` (HOST:PORT, port 0 picks one) has, and listens; connections
  // wait until Start. UNAVAILABLE: no such address, or it is taken.
  static absl::StatusOr<std::unique_ptr<ConnectionListener>> Listen(absl::string_view address,
                                                                    size_t max_connections);
  ~ConnectionListener();  // Stop
  ConnectionListener(const ConnectionListener&) = delete;
  ConnectionListener& operator=(const ConnectionListener&) = delete;

  // Once. `book` has the connections that are open, too, and must outlive this.
  void Start(api::OpenConnections* book, Take take);
  // New connections are refused by the kernel from now on; no Take runs any more.
  void Stop();

  int port() const { return port_; }
  Counts counts() const { return {open_.load(), refused_.load()}; }

 private:
  explicit ConnectionListener(size_t max_connections) : max_connections_(max_connections) {}
  absl::Status Bind(absl::string_view address);
  absl::Status WatchListeners();
  void Loop();
  void AcceptFrom(int listener);
  // False: nothing more to accept for now.
  bool AcceptOne(int listener);
  void Forget(int counted);

  const size_t max_connections_;
  int port_ = 0;
  std::vector<cache::UniqueFd> listeners_;
  cache::UniqueFd epoll_;
  cache::UniqueFd stop_;  // an eventfd
  Take take_;
  std::thread thread_;
  api::OpenConnections* book_ = nullptr;
  // Second descriptors of open connections, and their places in the book; of thread_.
  std::unordered_map<int, std::unique_ptr<api::OpenConnections::Place>> counted_;
  std::atomic<size_t> open_ = 0;
  std::atomic<uint64_t> refused_ = 0;
};

}  // namespace npuc::rpc

#endif  // NPUC_SERVER_RPC_CONNECTION_LISTENER_H_
