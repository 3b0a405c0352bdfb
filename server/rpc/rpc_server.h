#ifndef NPUC_SERVER_RPC_RPC_SERVER_H_
#define NPUC_SERVER_RPC_RPC_SERVER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/api/dependencies.h"
#include "server/log/log.h"

namespace npuc::rpc {

using RpcDependencies = api::ApiDependencies;

struct RpcServerOptions {
  std::string listen = "127.0.0.1:0";  // HOST:PORT; port 0 picks one
  api::TlsFiles tls = {};
  // Lets anybody read the protos: for --insecure alone, since reflection asks for no identity.
  bool reflection = true;
  int blocking_threads = 32;
  size_t max_waiting_calls = 4096;
  size_t max_connections = 4096;                   // of all clients
  size_t max_watch_streams = 20000;                // of all clients
  absl::Duration heartbeat = absl::Seconds(10);    // of silent watch streams
  absl::Duration max_stream_age = absl::Hours(1);  // watchers are asked to come back by then
  absl::Duration tick = absl::Seconds(1);          // how often queue positions are looked at
};

// While it lives, what gRPC writes about itself, such as handshakes that fail, are lines of the log
// and none between its lines. One at a time; the log must outlive it.
class GrpcLog {
 public:
  explicit GrpcLog(const log::Logger* log);
  ~GrpcLog();
  GrpcLog(const GrpcLog&) = delete;
  GrpcLog& operator=(const GrpcLog&) = delete;
};

// The gRPC server: services, health and reflection. No gRPC type shows here. Thread-safe.
class RpcServer {
 public:
  // Listens at once; health says NOT_SERVING until SetServing(true). UNAVAILABLE: the address
  // cannot be had. INVALID_ARGUMENT: the TLS files are no good.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(RpcServerOptions options,
                                                          RpcDependencies dependencies);
  // Shutdown, if that was not called.
  ~RpcServer();
  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;

  int port() const;
  void SetServing(bool serving);
  // Ends watch streams with UNAVAILABLE (DRAINING); their clients reattach elsewhere or later.
  void EndStreams();
  // Refuses new calls, gives those under way until `patience` has passed, then cancels them.
  void Shutdown(absl::Duration patience);

 private:
  struct Impl;
  explicit RpcServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace npuc::rpc

#endif  // NPUC_SERVER_RPC_RPC_SERVER_H_
