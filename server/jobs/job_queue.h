#ifndef NPUC_SERVER_JOBS_JOB_QUEUE_H_
#define NPUC_SERVER_JOBS_JOB_QUEUE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace npuc {

// A waiting job, as far as the order of waiting jobs needs to know it.
struct QueuedJob {
  std::string id;
  int32_t priority = 0;
  uint64_t accept_order = 0;  // unique; a job that comes back brings its old one
};

// Which waiting job runs next. Holds what waits, in memory; the job store holds the truth. Policy
// (fairness between tenants, ageing) is the implementation's. Thread-safe; nothing blocks.
class JobQueue {
 public:
  virtual ~JobQueue() = default;

  // Takes a place for a job about to be accepted. RESOURCE_EXHAUSTED (reason QUEUE_FULL, with a
  // retry delay) where all are taken. Each success is followed by one Push or one Release.
  virtual absl::Status Reserve() = 0;
  virtual void Release() = 0;

  // Puts a job in. `reserved`: it uses a place of Reserve; else it is a job that had been accepted
  // before (recovered, or come back), which the bound does not refuse. A job that is in already is
  // left as it is, and gives its reservation back.
  virtual void Push(QueuedJob job, bool reserved) = 0;

  // Takes the next job out; nullopt where none waits.
  virtual std::optional<QueuedJob> Pop() = 0;

  // False: it was not in.
  virtual bool Remove(absl::string_view id) = 0;

  // How many jobs would run before it; nullopt where it does not wait.
  virtual std::optional<int64_t> Position(absl::string_view id) const = 0;

  virtual int64_t size() const = 0;
};

}  // namespace npuc

#endif  // NPUC_SERVER_JOBS_JOB_QUEUE_H_
