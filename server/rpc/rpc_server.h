#ifndef NPUC_SERVER_RPC_RPC_SERVER_H_
#define NPUC_SERVER_RPC_RPC_SERVER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/auth/authenticator.h"
#include "server/executor/lifecycle.h"
#include "server/executor/submission.h"
#include "server/executor/transfers.h"
#include "server/jobs/job_service.h"
#include "server/log/log.h"
#include "server/observe/metrics.h"
#include "server/observe/watchdog.h"

namespace npuc {

// What GetServerInfo tells beside the counts.
struct ServerFacts {
  std::string version;
  std::string compiler_build_id;
  int32_t workers = 0;
  int64_t max_blob_bytes = 0;
  int64_t max_queued_jobs = 0;
  absl::Duration default_timeout;
};

// What the services stand on; all must outlive the server.
struct RpcDependencies {
  const Authenticator* authenticator = nullptr;
  JobService* jobs = nullptr;
  Submission* submission = nullptr;
  Uploads* uploads = nullptr;
  Downloads* downloads = nullptr;
  const Lifecycle* lifecycle = nullptr;
  const Logger* log = nullptr;
  Metrics* metrics = nullptr;    // may be null
  Watchdog* watchdog = nullptr;  // sees a pool whose threads are all stuck; may be null
  ServerFacts facts;
};

// PEM files; all empty: no encryption.
struct TlsFiles {
  std::string certificate;  // the server's, then those between it and its authority
  std::string key;
  std::string client_ca;  // who may sign clients' certificates; empty: none is asked for
};

struct RpcServerOptions {
  std::string listen = "127.0.0.1:0";  // HOST:PORT; port 0 picks one
  TlsFiles tls = {};
  // Lets anybody read the protos: for --insecure alone, since reflection asks for no identity.
  bool reflection = true;
  int blocking_threads = 32;
  size_t max_waiting_calls = 4096;
  absl::Duration heartbeat = absl::Seconds(10);    // of silent watch streams
  absl::Duration max_stream_age = absl::Hours(1);  // watchers are asked to come back by then
  absl::Duration tick = absl::Seconds(1);          // how often queue positions are looked at
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

}  // namespace npuc

#endif  // NPUC_SERVER_RPC_RPC_SERVER_H_
