#ifndef NPUC_SERVER_JOBS_TRANSITIONS_H_
#define NPUC_SERVER_JOBS_TRANSITIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/jobs/job_store.h"

namespace npuc::jobs {

// The job state machine: QUEUED -> RUNNING -> SUCCEEDED | FAILED | CANCELLED | EXPIRED, and
// RUNNING -> QUEUED when a lease is lost. Each transition is one pure function from a job to its
// next revision and events; who calls it stores the result before telling anybody (JobService). A
// transition that has nothing to change returns nullopt, so each may be repeated. A caller whose
// lease is not the job's newest, or whose job is no longer RUNNING, gets ABORTED: its result is
// stale and is dropped.
//
// Times are the caller's; a clock that jumps back never makes a job's times fall.

inline constexpr size_t kMaxLogLineBytes = 4096;
inline constexpr size_t kMaxReasonBytes = 1024;
inline constexpr size_t kMaxJobDiagnostics = 1000;
// Log lines and progress after this many events of a job are dropped; one log line says so.
inline constexpr int64_t kMaxEventsPerJob = 100000;

// The right to run a job. Whoever holds an older one has lost it.
struct Lease {
  std::string job_id = {};
  uint64_t fence = 0;

  friend bool operator==(const Lease&, const Lease&) = default;
};

// What Submit knows of a job; the rest is the state machine's.
struct NewJob {
  std::string tenant = {};
  std::string request_id = {};
  std::string request_sha256 = {};
  std::string config_text = {};
  std::string output_file = {};
  std::string cache_key = {};
  JobSpec spec = {};  // timeout set
  // The result, where the cache has it already: the job is born SUCCEEDED.
  struct Cached {
    std::vector<JobArtifact> artifacts = {};
    std::vector<base::JobDiagnostic> diagnostics = {};
  };
  std::optional<Cached> cached = {};
};

// How a run ended that was not lost.
struct JobResult {
  bool succeeded = false;
  bool cache_hit = false;                   // where succeeded
  std::vector<JobArtifact> artifacts = {};  // where succeeded
  std::string cache_key = {};               // of the artifacts; empty: as the job has it
  std::vector<base::JobDiagnostic> diagnostics =
      {};  // complete; events told some or all of them before
  FailureKind failure_kind = FailureKind::kNone;  // where not succeeded
  std::string reason = {};                        // where not succeeded
};

// Why a lease ended without a result.
enum class LossKind : uint8_t {
  kWorker,    // the worker died, perhaps by the job's doing
  kDaemon,    // the daemon died, found at recovery
  kHandBack,  // the daemon stops in order, or the host kept the job from running; not counted
};

struct RetryLimits {
  int32_t max_worker_losses = 3;   // the third ends the job
  int32_t max_daemon_losses = 10;  // likewise; guards against a job that brings the daemon down
};

JobChange CreateJob(NewJob request, std::string job_id, uint64_t accept_order, absl::Time now);

// QUEUED -> RUNNING, with the next fence, for a daemon, which holds the lease until then if nobody
// hears of it. nullopt where the job is not QUEUED.
std::optional<JobChange> LeaseJob(const Job& job, absl::string_view owner, absl::Time lease_until,
                                  absl::Time now);

// The lease is held until then. ABORTED for a stale fence.
absl::StatusOr<JobChange> ExtendLease(const Job& job, uint64_t fence, absl::Time lease_until);

// Adds what a run tells. ABORTED for a stale fence. State changes are not the run's to tell and
// must not be among the bodies.
absl::StatusOr<std::optional<JobChange>> AppendToJob(const Job& job, uint64_t fence,
                                                     std::vector<EventBody> bodies, absl::Time now);

// RUNNING -> SUCCEEDED | FAILED, after the last things that the run told. ABORTED for a stale
// fence.
absl::StatusOr<JobChange> FinishJob(const Job& job, uint64_t fence, std::vector<EventBody> bodies,
                                    JobResult result, absl::Time now);

// RUNNING -> QUEUED in the old place, or FAILED with WORKER_DIED where the limit is reached.
// ABORTED for a stale fence.
absl::StatusOr<JobChange> LoseLease(const Job& job, uint64_t fence, LossKind kind,
                                    absl::string_view why, const RetryLimits& limits,
                                    std::vector<EventBody> bodies, absl::Time now);

// Whether the end of a job is also that of equal jobs that waited for it: a result is, and a
// failure that every attempt would have.
bool IsShareable(const Job& ended);

// QUEUED -> SUCCEEDED | FAILED as `ended`, an equal job for which IsShareable holds. nullopt where
// the job is not QUEUED.
std::optional<JobChange> ShareResult(const Job& job, const Job& ended, absl::Time now);

// A revision that changes nothing: stored, it makes sure of what was stored before.
JobChange TouchJob(const Job& job);

// -> CANCELLED. nullopt where the job has ended.
std::optional<JobChange> CancelJob(const Job& job, absl::string_view reason, absl::Time now);

// -> EXPIRED. nullopt where the job has ended. That its time is over is for the caller to know.
std::optional<JobChange> ExpireJob(const Job& job, absl::Time now);

}  // namespace npuc::jobs

#endif  // NPUC_SERVER_JOBS_TRANSITIONS_H_
