#ifndef NPUC_SERVER_EXECUTOR_EVENT_PUMP_H_
#define NPUC_SERVER_EXECUTOR_EVENT_PUMP_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/jobs/job.h"

namespace npuc {

// Carries what a run tells to the store without making the run wait for each synced write: events
// gather while a write is under way, and the next write takes all of them. One thread of its own,
// from the first event on.
class EventPump {
 public:
  // Called on the pump's thread, one call at a time. ABORTED: the lease is stale, all further
  // events are dropped. Another error: the same events are tried again after a second.
  using Sink = std::function<absl::Status(std::vector<EventBody> bodies)>;
  static constexpr size_t kMaxPending = 1024;

  // `linger`: how long the first event may wait for company; a run shorter than that costs no
  // write of its own, since what is left goes with its result (Stop).
  EventPump(Sink sink, absl::Duration linger);
  ~EventPump();
  EventPump(const EventPump&) = delete;
  EventPump& operator=(const EventPump&) = delete;

  // Waits while kMaxPending events are pending.
  void Push(EventBody body);

  // Waits for a write under way and returns what was not written, in order. Pushes after it are
  // dropped.
  std::vector<EventBody> Stop();

 private:
  void Loop();

  const Sink sink_;
  const absl::Duration linger_;
  std::mutex mutex_;
  std::condition_variable wake_;     // for the pump: something is pending, or stop
  std::condition_variable space_;    // for pushers
  std::condition_variable written_;  // for Stop: no write is under way
  std::vector<EventBody> pending_;   // guarded by mutex_
  bool stopping_ = false;            // guarded by mutex_
  bool writing_ = false;             // guarded by mutex_
  bool stale_ = false;               // guarded by mutex_
  std::thread thread_;               // as pushers are; joined at the end
};

}  // namespace npuc

#endif  // NPUC_SERVER_EXECUTOR_EVENT_PUMP_H_
