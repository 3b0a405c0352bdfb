#ifndef NPUC_SERVER_RPC_WATCH_STREAM_H_
#define NPUC_SERVER_RPC_WATCH_STREAM_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "compiler_core/base/mutex.h"
#include "grpcpp/support/server_callback.h"
#include "npuc/v1/compile.pb.h"
#include "server/base/work_pool.h"
#include "server/rpc/rpc_server.h"

namespace npuc::rpc {

class WatchStream;

// All watch streams that are open, for the clock that moves them and for the end of all. A stream
// leaves before it is destroyed. Thread-safe.
class WatchStreams {
 public:
  explicit WatchStreams(size_t max_open) : max_open_(max_open) {}

  // Takes a place for one more; false where as many are open as may be.
  bool Enter();
  void Add(WatchStream* stream);
  // Gives its place back.
  void Remove(WatchStream* stream);
  // Gives silent streams the chance to tell a queue position or a heartbeat.
  void Tick(absl::Time now);
  void EndAll();
  // The share of the greatest age that the next stream gets, 0.8 to 1: streams that began together
  // do not all come back together.
  double NextAgeShare();

 private:
  const size_t max_open_;
  Mutex mutex_;
  size_t open_ NPUC_GUARDED_BY(mutex_) = 0;
  std::set<WatchStream*> streams_ NPUC_GUARDED_BY(mutex_);
  bool ended_ NPUC_GUARDED_BY(mutex_) = false;
  uint64_t age_shares_ NPUC_GUARDED_BY(mutex_) = 0;  // given out
};

// What every watch stream uses.
struct WatchContext {
  const RpcDependencies* dependencies;
  base::WorkPool* pool;
  WatchStreams* streams;
  absl::Duration heartbeat;
  absl::Duration max_age;
};

// Starts the reactor of one call; it deletes itself.
grpc::ServerWriteReactor<v1::WatchCompileJobResponse>* StartWatch(
    const WatchContext& context, const grpc::CallbackServerContext& call,
    const v1::WatchCompileJobRequest& request);

}  // namespace npuc::rpc

#endif  // NPUC_SERVER_RPC_WATCH_STREAM_H_
