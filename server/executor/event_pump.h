#ifndef NPUC_SERVER_EXECUTOR_EVENT_PUMP_H_
#define NPUC_SERVER_EXECUTOR_EVENT_PUMP_H_

#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "compiler_core/base/mutex.h"
#include "server/jobs/job.h"

namespace npuc::executor {

// Carries what a run tells to the store without making the run wait for each synced write: events
// gather while a write is under way, and the next write takes all of them. One thread of its own,
// once an event has waited for its time: most runs are over before.
class EventPump {
 public:
  // Called on the pump's thread, one call at a time. ABORTED: the lease is stale, all further
  // events are dropped. Another error: the same events are tried again after a second.
  using Sink = std::function<absl::Status(std::vector<jobs::EventBody> bodies)>;
  static constexpr size_t kMaxPending = 1024;

  // `linger`: how long the first event waits for company; a run shorter than that costs neither a
  // write of its own, since what is left goes with its result (Stop), nor a thread.
  EventPump(Sink sink, absl::Duration linger);
  ~EventPump();
  EventPump(const EventPump&) = delete;
  EventPump& operator=(const EventPump&) = delete;

  // Waits while kMaxPending events are pending.
  void Push(jobs::EventBody body);

  // To be called now and then. Until there was a first write, nothing else sees that time passes.
  void Tick();

  // Waits for a write under way and returns what was not written, in order. Pushes after it are
  // dropped.
  std::vector<jobs::EventBody> Stop();

 private:
  void BeginIfDue() NPUC_REQUIRES(mutex_);
  void Loop();

  const Sink sink_;
  const absl::Duration linger_;
  Mutex mutex_;
  CondVar wake_;     // for the pump: something is pending, or stop
  CondVar space_;    // for pushers
  CondVar written_;  // for Stop: no write is under way
  std::vector<jobs::EventBody> pending_ NPUC_GUARDED_BY(mutex_);
  SteadyTime due_ NPUC_GUARDED_BY(mutex_);  // when the first of these has waited long enough
  bool stopping_ NPUC_GUARDED_BY(mutex_) = false;
  bool writing_ NPUC_GUARDED_BY(mutex_) = false;
  bool stale_ NPUC_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // begun under mutex_, by pushers; joined at the end
};

}  // namespace npuc::executor

#endif  // NPUC_SERVER_EXECUTOR_EVENT_PUMP_H_
