#ifndef NPUC_SERVER_JOBS_JOB_QUEUE_H_
#define NPUC_SERVER_JOBS_JOB_QUEUE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace npuc::jobs {

// A waiting job, as far as the order of waiting jobs needs to know it.
struct QueuedJob {
  std::string id;
  int32_t priority = 0;
  uint64_t accept_order = 0;  // unique; a job that comes back brings its old one
  std::string tenant = {};
  absl::Time create_time = absl::UnixEpoch();  // when it was accepted; it ages from then on
};

// The standing of a waiting job.
struct QueueView {
  int64_t position = 0;         // jobs that would be started before it, as things are
  bool tenant_limited = false;  // its tenant runs as many jobs as it may
  absl::Duration estimated_wait = absl::ZeroDuration();
};

// Which waiting job runs next. Holds what waits and counts what runs, in memory; the job store
// holds the truth. Policy (fairness between tenants, ageing, bounds) is the implementation's. A job
// is waiting (in order, or parked: it waits and counts, but is not to be started), or running, or
// not here. Thread-safe; nothing blocks.
class JobQueue {
 public:
  virtual ~JobQueue() = default;

  // Takes a place for a job about to be accepted. RESOURCE_EXHAUSTED: with reason QUEUE_FULL and a
  // retry delay where all places are taken, with reason QUOTA_EXCEEDED and the quota where the
  // tenant's are. Each success is followed by one Push or one Release.
  virtual absl::Status Reserve(absl::string_view tenant) = 0;
  virtual void Release(absl::string_view tenant) = 0;

  // Puts a job in order. `reserved`: it uses a place of Reserve; else it is a job that had been
  // accepted before (recovered, or come back), which no bound refuses. A job that is in order
  // already is left as it is, and gives its reservation back; a parked one goes back into order.
  virtual void Push(QueuedJob job, bool reserved) = 0;

  // Takes the next job that may be started; nullopt where there is none. It counts as running.
  virtual std::optional<QueuedJob> Pop() = 0;
  // The same with a certain job, in order or parked, whatever the bounds. False: it did not wait.
  virtual bool Take(absl::string_view id) = 0;
  // A job that Pop or Take gave runs no more, after so long; zero where it never ran.
  virtual void Done(absl::string_view tenant, absl::Duration ran) = 0;

  // Out of order, but still waiting. False: it was not in order.
  virtual bool Park(absl::string_view id) = 0;
  // It waits no more. False: it did not wait.
  virtual bool Remove(absl::string_view id) = 0;

  // nullopt where it is not in order.
  virtual std::optional<QueueView> Look(absl::string_view id) const = 0;

  // All that wait, the parked ones among them.
  virtual int64_t size() const = 0;
  // True where Pop would give a job.
  virtual bool HasReady() const = 0;
};

}  // namespace npuc::jobs

#endif  // NPUC_SERVER_JOBS_JOB_QUEUE_H_
