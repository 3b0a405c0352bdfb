#ifndef NPUC_SERVER_RPC_WORK_POOL_H_
#define NPUC_SERVER_RPC_WORK_POOL_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "compiler_core/base/mutex.h"

namespace npuc::rpc {

// Threads that do what may block (store reads and synced writes), so that gRPC's own threads never
// do. More threads than cores: some wait for the disk. Thread-safe.
class WorkPool {
 public:
  // At most max_waiting tasks of TryPost wait.
  WorkPool(int threads, size_t max_waiting);
  // Does what was posted, then ends.
  ~WorkPool();
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;

  // False, and `task` is not run, where too many wait: refuse the call.
  bool TryPost(std::function<void()> task);
  // For continuations of calls that were let in, of which there are few for each call.
  void Post(std::function<void()> task);

 private:
  void Loop();

  const size_t max_waiting_;
  Mutex mutex_;
  CondVar wake_;
  std::deque<std::function<void()>> tasks_ NPUC_GUARDED_BY(mutex_);
  bool stopping_ NPUC_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace npuc::rpc

#endif  // NPUC_SERVER_RPC_WORK_POOL_H_
