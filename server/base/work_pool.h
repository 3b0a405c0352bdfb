#ifndef NPUC_SERVER_BASE_WORK_POOL_H_
#define NPUC_SERVER_BASE_WORK_POOL_H_

#include <cstddef>
#include <deque>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "compiler_core/base/mutex.h"

namespace npuc::base {

// Threads that do what may block (store reads and synced writes), so that threads that must not
// block never do. More threads than cores: some wait for the disk. Thread-safe.
class WorkPool {
 public:
  using Task = absl::AnyInvocable<void()>;

  // At most max_waiting tasks of TryPost wait.
  WorkPool(int threads, size_t max_waiting);
  // Does what was posted, then ends.
  ~WorkPool();
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;

  // False, and `task` stays as it is, where too many wait: refuse the call.
  bool TryPost(Task&& task);
  // For continuations of calls that were let in, of which there are few for each call.
  void Post(Task task);

 private:
  bool Push(Task&& task, size_t max_waiting);
  void Loop();
  // True: the caller wakes a thread once it holds no lock. One thread at a time is woken; it takes
  // a task and wakes the next one. A wake for each task made 1.8 context switches a submit under
  // load instead of 0.9, since most threads found that others had taken the tasks.
  bool StartsWake() NPUC_REQUIRES(mutex_);

  const size_t max_waiting_;
  Mutex mutex_;
  CondVar wake_;
  std::deque<Task> tasks_ NPUC_GUARDED_BY(mutex_);
  bool stopping_ NPUC_GUARDED_BY(mutex_) = false;
  int idle_ NPUC_GUARDED_BY(mutex_) = 0;            // threads that wait for a task
  bool is_waking_ NPUC_GUARDED_BY(mutex_) = false;  // one of them is woken and has yet to begin
  std::vector<std::thread> threads_;
};

}  // namespace npuc::base

#endif  // NPUC_SERVER_BASE_WORK_POOL_H_
