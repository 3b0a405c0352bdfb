#ifndef NPUC_SERVER_EXECUTOR_LIFECYCLE_H_
#define NPUC_SERVER_EXECUTOR_LIFECYCLE_H_

#include <atomic>

#include "absl/status/status.h"
#include "compiler_core/base/status.h"
#include "server/jobs/service_error.h"

namespace npuc::executor {

// What the daemon takes at the moment. Only ever goes forward. Thread-safe.
class Lifecycle {
 public:
  enum class Phase { kStarting, kServing, kDraining };

  void Enter(Phase phase) { phase_.store(phase); }
  Phase phase() const { return phase_.load(); }

  // For calls that read: refused while recovery runs.
  absl::Status CheckReads() const {
    return phase() == Phase::kStarting ? Starting() : absl::OkStatus();
  }

  // For calls that bring work: also refused while draining.
  absl::Status CheckWrites() const {
    if (phase() == Phase::kDraining) return Draining();
    RETURN_IF_ERROR(CheckReads());
    return over_memory_.load() ? OverMemory() : absl::OkStatus();
  }

  // While it is over its memory limit the daemon takes no new work.
  void SetOverMemory(bool over) { over_memory_.store(over); }

  static absl::Status Draining() {
    return jobs::ServiceError(absl::StatusCode::kUnavailable,
                              "the server is stopping; retry, at once with another server",
                              {.reason = "DRAINING", .retry_delay = absl::Seconds(5)});
  }

 private:
  static absl::Status Starting() {
    return jobs::ServiceError(absl::StatusCode::kUnavailable, "the server is starting; retry",
                              {.reason = "STARTING", .retry_delay = absl::Seconds(1)});
  }

  static absl::Status OverMemory() {
    return jobs::ServiceError(absl::StatusCode::kResourceExhausted,
                              "the server is at its memory limit; try again later",
                              {.reason = "SERVER_BUSY", .retry_delay = absl::Seconds(2)});
  }

  std::atomic<Phase> phase_ = Phase::kStarting;
  std::atomic<bool> over_memory_ = false;
};

}  // namespace npuc::executor

#endif  // NPUC_SERVER_EXECUTOR_LIFECYCLE_H_
