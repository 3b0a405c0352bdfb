#ifndef NPUC_SERVER_EXECUTOR_DISPATCHER_H_
#define NPUC_SERVER_EXECUTOR_DISPATCHER_H_

#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "compiler_core/base/mutex.h"
#include "server/jobs/job_service.h"
#include "server/log/log.h"

namespace npuc::executor {

// The worker slots: that many threads, each of which claims a job and runs it, and a timer thread.
// Thread-safe.
class Dispatcher {
 public:
  using RunFunction = std::function<void(jobs::JobService::Claim)>;

  // `jobs` and `log` must outlive this. Starts at once.
  // await_workers, where given: asked before a job is claimed, waits for a moment where it must; an
  // error: no worker can be started, and jobs stay in the queue.
  // beat, where given: called every 200 ms by the timer, for who watches it.
  Dispatcher(int slots, jobs::JobService* jobs, RunFunction run, const log::Logger* log,
             std::function<absl::Status()> await_workers = nullptr,
             std::function<void()> beat = nullptr);
  // Stops and waits for what runs.
  ~Dispatcher();
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  // Leases nothing any more. Returns whether all slots are idle within `patience`.
  bool Stop(absl::Duration patience);

 private:
  bool AwaitWorkers();
  // False: it stops.
  bool Pause(std::chrono::milliseconds duration);
  void SlotLoop();
  void TimerLoop();

  jobs::JobService* const jobs_;
  const RunFunction run_;
  const log::Logger* const log_;
  const std::function<absl::Status()> await_workers_;
  const std::function<void()> beat_;
  Mutex mutex_;
  CondVar changed_;
  int active_slots_ NPUC_GUARDED_BY(mutex_);
  bool stopping_ NPUC_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace npuc::executor

#endif  // NPUC_SERVER_EXECUTOR_DISPATCHER_H_
