#ifndef NPUC_SERVER_EXECUTOR_JOB_RUNNER_H_
#define NPUC_SERVER_EXECUTOR_JOB_RUNNER_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cache/artifact_cache.h"
#include "cache/blob_store.h"
#include "server/executor/failure_bundles.h"
#include "server/executor/result_storing.h"
#include "server/executor/submission.h"
#include "server/jobs/job_service.h"
#include "server/log/log.h"
#include "server/observe/tracer.h"
#include "server/observe/watchdog.h"
#include "server/worker/worker_pool.h"

namespace npuc::executor {

struct JobRunnerOptions {
  ConfigParser parse_config;
  std::string compiler_build_id;
  std::string work_dir;  // absolute, existing; each run gets a folder in it
  worker::WorkerLimits limits;
  std::function<absl::Time()> now;
  // The time that headers state where the job does not (SOURCE_DATE_EPOCH of the daemon); unset:
  // the job's time of acceptance.
  std::optional<int64_t> model_info_time_seconds = std::nullopt;
  absl::Duration event_linger = absl::Milliseconds(20);
  // How long to wait before a result that the job store or, its disk being full, the cache refused
  // is written again.
  absl::Duration retry_delay = absl::Seconds(1);
  observe::Watchdog* watchdog =
      nullptr;  // sees a pump that does not get its events stored; may be null
  // As JobServiceOptions::pause.
  std::function<void(absl::string_view point)> pause = nullptr;
  ResultScope result_scope = nullptr;  // as Submission's
  // Whether an artifact is whole (CheckArtifact of compiler_core/pipeline): nothing else is stored.
  // Null: nothing is asked.
  std::function<absl::Status(absl::string_view name, absl::string_view output_file,
                             absl::string_view bytes)>
      check_artifact = nullptr;
  // What each thread that makes artifacts ready does first; may be null.
  std::function<void()> begin_helper = nullptr;
  FailureBundles* bundles = nullptr;  // gets what failed by our fault; may be null
  observe::Tracer* tracer = nullptr;  // gets the spans of runs; may be null
};

// Runs one job to its end: looks into the cache, runs a worker, checks and stores what it made,
// ends the job. The lease is stored while the worker gets going. Thread-safe; each call of Run is
// one run.
class JobRunner {
 public:
  // All must outlive this.
  JobRunner(JobRunnerOptions options, jobs::JobService* jobs, cache::InputStore* inputs,
            cache::ResultCache* cache, worker::WorkerRunner* workers, const log::Logger* log);

  // Blocks until the job has ended, or its lease was lost or given back. Never fails: what goes
  // wrong is the job's result. What the host does to a run (no worker could be started, the warm
  // parent died) does not count against the job: it goes back to its place.
  void Run(jobs::JobService::Claim claim);

  // Stops the worker of a run that is of no use any more; for JobService's abandon listener. Quick.
  void Abandon(const jobs::Lease& lease);

  // From now on a run whose worker is cancelled gives its job back to the queue; a result that
  // cannot be stored is not tried again.
  void SetDraining() { draining_.store(true); }

  // Makes the result of a job that SUCCEEDED again, for when the cache has lost it: the same bytes
  // where this is the build that made it and the job was no cache hit. Blocks as long as the
  // compile takes. UNAVAILABLE: another one is being made. Else an error that says why it cannot be
  // had.
  absl::Status Remake(const jobs::Job& job);

  // Deletes what earlier daemons left in work_dir. Before the first Run.
  absl::Status CleanWorkDir() const;

 private:
  struct Attempt;  // one call of Run

  bool StaysInPlace(Attempt& attempt, const absl::Status& status);
  static std::string RunId(const std::string& job_id, uint64_t fence);
  absl::Time WaitsSince(const jobs::Job& job) const;
  absl::Status Prepare(Attempt& attempt);
  bool FinishFromCache(Attempt& attempt);
  bool TakeLease(Attempt& attempt);
  void RunWorker(Attempt& attempt);
  absl::Status AcquireInputs(Attempt& attempt);
  void FillWorkerJob(Attempt& attempt) const;
  absl::Status RunAgain(Attempt& attempt);
  // True: an input is damaged on the disk, and the job has ended for that.
  bool FailForDamagedInput(Attempt& attempt);
  void Conclude(Attempt& attempt, const worker::WorkerOutcome& outcome);
  void ConcludeUnstarted(Attempt& attempt, const absl::Status& status);
  void KeepBundle(const Attempt& attempt, jobs::JobResult& result);
  void RunAttempt(Attempt& attempt);
  void BeginRun(Attempt& attempt);
  void EndRun(Attempt& attempt);
  absl::Status Store(Attempt& attempt, jobs::JobResult& result);
  absl::Status AwaitRoom(Attempt& attempt, jobs::JobResult& result, absl::Status stored);
  void Fail(Attempt& attempt, jobs::FailureKind kind, absl::string_view reason);
  void Finish(Attempt& attempt, const jobs::JobResult& result);
  void GiveBack(Attempt& attempt, jobs::LossKind kind, absl::string_view why);
  void Persist(const Attempt& attempt, const std::function<absl::Status()>& write);

  const JobRunnerOptions options_;
  jobs::JobService* const jobs_;
  cache::InputStore* const inputs_;
  cache::ResultCache* const cache_;
  worker::WorkerRunner* const workers_;
  const log::Logger* const log_;
  std::atomic<bool> draining_ = false;
  std::atomic<bool> remaking_ = false;
  HelperPool helpers_;
};

}  // namespace npuc::executor

#endif  // NPUC_SERVER_EXECUTOR_JOB_RUNNER_H_
