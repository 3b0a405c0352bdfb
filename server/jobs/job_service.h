#ifndef NPUC_SERVER_JOBS_JOB_SERVICE_H_
#define NPUC_SERVER_JOBS_JOB_SERVICE_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/jobs/change_hub.h"
#include "server/jobs/job_queue.h"
#include "server/jobs/job_store.h"
#include "server/jobs/transitions.h"

namespace npuc {

struct JobServiceOptions {
  std::function<absl::Time()> now;
  std::function<uint64_t()> random;  // for job ids; called by one thread at a time
  RetryLimits retry;
};

// The jobs of a daemon: applies transitions (transitions.h) to the store and then tells queue,
// watchers and runner. Every public call may block on the store.
//
// Locks, in the order in which they may be taken: an entry's `change` (held over a store write; it
// orders the changes of one job), then mutex_ or an entry's `read` (never held over a call out).
//
// Thread-safe once Recover has returned. Errors besides those below are the store's; after a store
// error the job stands as it was.
class JobService {
 public:
  // Both must outlive this.
  JobService(JobServiceOptions options, JobStore* store, JobQueue* queue);

  // Called after a job has ended, without locks, on the thread that ended it. Set before Recover.
  void SetEndListener(std::function<void(const Job&)> listener) {
    end_listener_ = std::move(listener);
  }

  // Reads what had not ended when the daemon stopped. Jobs that were RUNNING go back to their old
  // places. Once, before anything else. `visit` (may be null) sees each job that waits.
  absl::Status Recover(const std::function<void(const Job&)>& visit);

  // Accepts a job; it is stored durably when this returns. A repeated request id gives the job of
  // the first call. ALREADY_EXISTS (REQUEST_ID_REUSED): the same id with another request.
  // RESOURCE_EXHAUSTED (QUEUE_FULL).
  struct Submitted {
    std::shared_ptr<const Job> job;
    bool already_existed = false;
  };
  absl::StatusOr<Submitted> Submit(NewJob request);

  // The job of an earlier Submit with this id and request; nullptr where there is none. Errors as
  // Submit has them.
  absl::StatusOr<std::shared_ptr<const Job>> FindSubmitted(absl::string_view request_id,
                                                           absl::string_view request_sha256) const;

  // Waits for a job, leases it and returns it with its lease; nullopt after StopLeasing. An error
  // of the store leaves the job where it was.
  struct Leased {
    Lease lease;
    std::shared_ptr<const Job> job;
  };
  absl::StatusOr<std::optional<Leased>> WaitAndLease();
  // The same without waiting: nullopt where no job waits.
  absl::StatusOr<std::optional<Leased>> TryLease();
  // Ends WaitAndLease for good.
  void StopLeasing();

  // For who holds a lease. ABORTED: it is stale, stop.
  absl::Status Append(const Lease& lease, std::vector<EventBody> bodies);
  absl::Status Finish(const Lease& lease, std::vector<EventBody> bodies, JobResult result);
  absl::Status Lose(const Lease& lease, LossKind kind, absl::string_view why,
                    std::vector<EventBody> bodies);
  bool IsCurrent(const Lease& lease) const;

  // NOT_FOUND. The job as it is afterwards.
  absl::StatusOr<std::shared_ptr<const Job>> Cancel(absl::string_view job_id,
                                                    absl::string_view reason);

  // Ends what is past its deadline. Called now and then by a timer; cheap where nothing is due.
  absl::Status ExpireDue();

  // NOT_FOUND.
  absl::StatusOr<std::shared_ptr<const Job>> Get(absl::string_view job_id) const;
  absl::StatusOr<JobPage> List(const JobListQuery& query) const { return store_->List(query); }
  absl::StatusOr<std::vector<JobEvent>> ReadEvents(absl::string_view job_id, int64_t from_seq,
                                                   size_t max_count, size_t max_bytes) const {
    return store_->ReadEvents(job_id, from_seq, max_count, max_bytes);
  }
  absl::StatusOr<std::string> ReadConfig(absl::string_view job_id) const {
    return store_->ReadConfig(job_id);
  }

  // Jobs that would run before this one; nullopt where it does not wait.
  std::optional<int64_t> Position(absl::string_view job_id) const {
    return queue_->Position(job_id);
  }

  // Told after each stored change of a job.
  ChangeHub& hub() { return hub_; }

  struct Counts {
    int64_t queued = 0;
    int64_t running = 0;
  };
  Counts GetCounts() const;

 private:
  struct Entry {
    std::mutex change;               // held over a transition and its store write
    mutable std::mutex read;         // guards `job`
    std::shared_ptr<const Job> job;  // null: not stored yet
    std::shared_ptr<const Job> Get() const {
      std::lock_guard<std::mutex> lock(read);
      return job;
    }
  };
  using Step = std::function<absl::StatusOr<std::optional<JobChange>>(const Job& job)>;

  // Runs a transition on a job and stores it, then tells. Returns the job as it is then.
  absl::StatusOr<std::shared_ptr<const Job>> Transit(absl::string_view job_id, const Step& step);
  absl::StatusOr<std::shared_ptr<const Job>> Store(Entry& entry, JobChange change);
  void Tell(const Job* before, const Job& after);
  std::shared_ptr<Entry> FindEntry(absl::string_view job_id) const;
  void AddLive(const std::shared_ptr<Entry>& entry, const Job& job);
  std::pair<std::string, uint64_t> NextIdAndOrder(absl::Time now);
  void Enqueue(const Job& job, bool reserved);
  absl::Status RecoverJob(Job job, const std::function<void(const Job&)>& visit);

  const JobServiceOptions options_;
  JobStore* const store_;
  JobQueue* const queue_;
  std::function<void(const Job&)> end_listener_;
  ChangeHub hub_;

  mutable std::mutex mutex_;
  std::condition_variable work_;  // a job was queued, or leasing stops
  // All below are guarded by mutex_.
  bool leasing_ = true;
  std::map<std::string, std::shared_ptr<Entry>, std::less<>> live_;  // what has not ended
  std::set<std::pair<absl::Time, std::string>> deadlines_;           // of live_
  uint64_t next_order_ = 1;
  int64_t running_ = 0;
  int64_t last_id_ms_ = 0;
  uint64_t last_id_high_ = 0;
  uint64_t last_id_low_ = 0;
};

}  // namespace npuc

#endif  // NPUC_SERVER_JOBS_JOB_SERVICE_H_
