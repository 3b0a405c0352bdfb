#ifndef NPUC_SERVER_JOBS_JOB_SERVICE_H_
#define NPUC_SERVER_JOBS_JOB_SERVICE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "compiler_core/base/mutex.h"
#include "server/base/work_pool.h"
#include "server/jobs/change_hub.h"
#include "server/jobs/job_board.h"
#include "server/jobs/job_store.h"
#include "server/jobs/transitions.h"

namespace npuc::jobs {

// Repeats of requests that wait for their answer.
inline constexpr size_t kMaxRepeats = 4096;

struct JobServiceOptions {
  // The daemon's name on the board and in the store: unlike that of any other daemon on them, and
  // the same after a restart.
  std::string owner = "npucd";
  std::function<absl::Time()> now;
  // Never falls and does not jump; null: now. For how long things took, how old leases are, and
  // what is left of a job's timeout: a clock that is put right ends no job.
  std::function<absl::Time()> steady_now = nullptr;
  std::function<uint64_t()> random;  // for job ids; called by one thread at a time
  RetryLimits retry;
  // A lease that its holder did not renew for so long is lost, as if its worker had died. The
  // board has the same.
  absl::Duration lease_ttl = absl::Minutes(5);
  // How long an ended job stays, with its events and its request id. Tick forgets older ones.
  absl::Duration retention = absl::Hours(24 * 8);
  // Called where the order of threads matters, with the point's name; tests let it sleep there.
  std::function<void(absl::string_view point)> pause = nullptr;
};

// Why a job waits, and for how long about.
struct JobWait {
  enum class Reason : uint8_t {
    kNextInLine,   // a worker will take it at once, or as soon as one is free
    kJobsAhead,    // others are before it
    kTenantLimit,  // its tenant runs as many jobs as it may
    kEqualJob,     // an equal job is being compiled, whose result it will have
  };
  Reason reason = Reason::kNextInLine;
  int64_t position = 0;  // jobs that would be started before it
  absl::Time estimated_start = absl::InfinitePast();
};

// "NEXT_IN_LINE" ...
absl::string_view JobWaitReasonName(JobWait::Reason reason);

// The jobs of a daemon: applies transitions (transitions.h) to the store and then informs board,
// watchers and runner. Every public call may block on the store.
//
// The board decides between jobs (job_board.h): which job runs next, and which equal jobs follow
// its run and get its result. A lease is the right to one run. Where the job of a run
// is cancelled or expires, the run goes on for a follower: the lease stays good. Nothing that
// becomes of a follower touches others.
//
// An entry is what this daemon remembers of a job that it changes or shows. Where the store is
// shared, others change jobs too: the store's record counts then, and its revision orders changes.
//
// Locks, in the order in which they may be taken: a run's `change` (held over every change of the
// job that it runs for), an entry's `change` (held over a store write; it orders this daemon's
// changes of one job), then mutex_ (never held over the store or a listener), then an entry's
// `read`. The board's own lock may be taken under each of them.
//
// Thread-safe once Recover has returned. Errors besides those below are the store's. After one the
// job stands as it was for all to see, and its next change first finds out what the store has.
class JobService {
 public:
  // Both must outlive this.
  JobService(JobServiceOptions options, JobStore* store, JobBoard* board);
  ~JobService();

  // Called after a job has ended, on the thread that ended it; must not call back. Set before
  // Recover, as the next one.
  void SetEndListener(std::function<void(const Job&)> listener) {
    end_listener_ = std::move(listener);
  }
  // Called when a run is of no use to anybody any more, and its holder has not ended it.
  void SetAbandonListener(std::function<void(const Lease&)> listener) {
    abandon_listener_ = std::move(listener);
  }

  // Takes back the leases that this daemon had when it stopped: their jobs go back to their old
  // places. Fills the board first, where that is needed. Once, before anything else. `visit` (may
  // be null) sees each job that is put on the board.
  absl::Status Recover(const std::function<void(const LiveJob&)>& visit);

  // Accepts a job: `done` gets it once it is stored durably. A repeated request id gives the job of
  // the first call. ALREADY_EXISTS (REQUEST_ID_REUSED): the same id with another request.
  // RESOURCE_EXHAUSTED (QUEUE_FULL, QUOTA_EXCEEDED). UNAVAILABLE: the id's first job is not
  // stored yet.
  //
  // A repeat is found by the write that it makes, so a new request reads nothing from the store.
  // `done` is called once, by the rules of JobStore::Apply, or on the thread that answers repeats.
  struct Submitted {
    std::shared_ptr<const Job> job;
    bool already_existed = false;
  };
  using Done = absl::AnyInvocable<void(absl::StatusOr<Submitted>)>;
  void Submit(NewJob request, Done done);
  // The same, and waits.
  absl::StatusOr<Submitted> SubmitAndWait(NewJob request);

  // The job of an earlier Submit with this tenant, id and request; nullptr where there is none.
  // Errors as Submit has them.
  absl::StatusOr<std::shared_ptr<const Job>> FindSubmitted(absl::string_view tenant,
                                                           absl::string_view request_id,
                                                           absl::string_view request_sha256);

  struct Leased {
    Lease lease;
    std::shared_ptr<const Job> job;
  };
  class Claim;
  // Waits for a job and takes it out of the queue, to be leased; nullopt after StopLeasing.
  absl::StatusOr<std::optional<Claim>> WaitAndClaim();
  // The same without waiting: nullopt where no job may be started.
  absl::StatusOr<std::optional<Claim>> TryClaim();
  // The same, leased.
  absl::StatusOr<std::optional<Leased>> TryLease();
  // Ends WaitAndClaim for good.
  void StopLeasing();

  // For who holds a lease; each renews it. ABORTED: it is stale, stop.
  absl::Status Append(const Lease& lease, std::vector<EventBody> bodies);
  absl::Status Finish(const Lease& lease, std::vector<EventBody> bodies, JobResult result);
  absl::Status Lose(const Lease& lease, LossKind kind, absl::string_view why,
                    std::vector<EventBody> bodies);
  // False: it is stale. Quick.
  bool Renew(const Lease& lease);
  bool IsCurrent(const Lease& lease) const;

  // NOT_FOUND. The job as it is afterwards.
  absl::StatusOr<std::shared_ptr<const Job>> Cancel(absl::string_view job_id,
                                                    absl::string_view reason);

  // Ends what is past its deadline. Cheap where nothing is due.
  absl::Status ExpireDue();
  // To be called every now and then: ExpireDue; takes leases back that were not renewed; finds out
  // what became of submits that the store failed; forgets what is older than the retention.
  absl::Status Tick();

  // NOT_FOUND.
  absl::StatusOr<std::shared_ptr<const Job>> Get(absl::string_view job_id) const;
  absl::StatusOr<JobPage> List(const JobListQuery& query) const;
  absl::StatusOr<std::vector<JobEvent>> ReadEvents(absl::string_view job_id, int64_t from_seq,
                                                   size_t max_count, size_t max_bytes) const;
  absl::StatusOr<std::string> ReadConfig(absl::string_view job_id) const {
    return store_->ReadConfig(job_id);
  }

  // nullopt where it does not wait.
  std::optional<JobWait> Wait(absl::string_view job_id) const;
  // An estimate for a job that was just accepted here; waits for nobody.
  std::optional<JobWait> WaitOfNew(const Job& job) const;
  std::optional<int64_t> Position(absl::string_view job_id) const;

  // Told after each stored change of a job.
  ChangeHub& hub() { return hub_; }

  using Counts = JobBoard::Counts;
  Counts GetCounts() const { return board_->GetCounts(); }

 private:
  using JobPtr = std::shared_ptr<const Job>;

  struct Entry {
    Mutex change;  // held over a transition and its store write
    // A write failed: the store may be ahead of `job`.
    bool uncertain NPUC_GUARDED_BY(change) = false;
    uint64_t writes NPUC_GUARDED_BY(change) = 0;  // of this daemon
    // kComes: its first write is under way. kUnknown: that has failed. kUnread: only the store has
    // it. kRead: `job` has it.
    enum class Content : uint8_t { kComes, kUnknown, kUnread, kRead };
    mutable Mutex read;
    mutable CondVar came;
    Content content NPUC_GUARDED_BY(read) = Content::kComes;
    JobPtr job NPUC_GUARDED_BY(read) = nullptr;  // where kRead

    Entry() = default;
    Entry(Content first, bool is_uncertain) : uncertain(is_uncertain), content(first) {}

    JobPtr Get() const {
      const MutexLock lock(read);
      return job;
    }
    void Set(JobPtr value) {
      const MutexLock lock(read);
      job = std::move(value);
      content = Content::kRead;
      came.NotifyAll();
    }
    void Set(Content value) {
      const MutexLock lock(read);
      content = value;
      came.NotifyAll();
    }
    // Waits for the first write. False: it has failed, and nobody finds this entry any more.
    bool Await() const {
      const MutexLock lock(read);
      while (content == Content::kComes) came.Wait(read);
      return content != Content::kUnknown;
    }
    bool is_stored() const { return content_now() >= Content::kUnread; }
    Content content_now() const {
      const MutexLock lock(read);
      return content;
    }
  };

  // A run that this daemon holds.
  struct Run {
    BoardClaim claim;                      // as it was given
    Mutex change;                          // held over every change of the job that it runs for
    Lease target NPUC_GUARDED_BY(change);  // what the lease stands for now
    bool over NPUC_GUARDED_BY(change) = false;  // nobody finds it any more
    // Under the service's mutex_, which no annotation of this struct can name.
    Lease lease;       // as it was given out; empty until it is
    Lease target_now;  // as `target`; without a fence before that is stored
    absl::Time stored_until = absl::InfinitePast();  // as the job's record has it
  };

  // A job that is being submitted: known, but nobody can change it before it is stored.
  struct NewEntry {
    std::shared_ptr<Entry> entry;
    std::shared_ptr<JobChange> change;
    bool waits = false;  // it has a place in the queue
  };

  // The outcome of a new job's write.
  struct Written {
    absl::StatusOr<Submitted> answer;
    // The refused write, where another job has the request id; then the answer is of no use.
    std::shared_ptr<const JobChange> taken = nullptr;
  };
  using Stored = absl::AnyInvocable<void(Written written)>;

  bool IsHidden(const Entry& entry) const;
  std::optional<JobWait> ToWait(const std::optional<BoardView>& view) const;

  using Step = std::function<absl::StatusOr<std::optional<JobChange>>(const Job& job)>;
  static absl::StatusOr<std::optional<JobChange>> NoChange(const Job&) { return std::nullopt; }
  // The reason when a lease is handed back that was stored, and given to nobody.
  static constexpr char kStoreFailed[] = "the store failed as it was leased";

  void Pause(absl::string_view point) const {
    if (options_.pause) options_.pause(point);
  }
  absl::Time SteadyNow() const {
    return options_.steady_now ? options_.steady_now() : options_.now();
  }

  // job_service.cc: one job at a time. `now`, where given, is set to the job as it stands then,
  // also after an error; it is left alone where that is not known.
  absl::StatusOr<JobPtr> Transit(absl::string_view job_id, const Step& step, JobPtr* now = nullptr);
  absl::StatusOr<JobPtr> TransitLocked(Entry& entry, absl::string_view job_id, const Step& step)
      NPUC_REQUIRES(entry.change);
  absl::StatusOr<JobPtr> Load(Entry& entry, absl::string_view job_id) NPUC_REQUIRES(entry.change);
  absl::StatusOr<JobPtr> Refresh(Entry& entry, absl::string_view job_id)
      NPUC_REQUIRES(entry.change);
  absl::StatusOr<JobPtr> Store(Entry& entry, JobChange change) NPUC_REQUIRES(entry.change);
  std::shared_ptr<Entry> FindEntry(absl::string_view job_id) const;
  std::shared_ptr<Entry> FindOrAddEntry(absl::string_view job_id);
  void ReleaseEntry(const std::shared_ptr<Entry>& entry, absl::string_view job_id)
      NPUC_REQUIRES(entry->change);
  void ForgetJob(absl::string_view job_id);
  BoardJob ToBoardJob(const LiveJob& job) const;
  std::string NextId(absl::Time now);
  absl::Status FillBoard(const std::function<void(const LiveJob&)>& visit);
  absl::Status Reserve(const NewJob& request);
  absl::StatusOr<NewEntry> BeginSubmit(NewJob request);
  absl::StatusOr<JobPtr> EndSubmit(const NewEntry& submit, const absl::Status& written);
  void StoreNew(NewJob request, Stored stored);
  absl::StatusOr<Submitted> AnswerRefused(absl::string_view tenant, absl::string_view request_id,
                                          absl::string_view request_sha256,
                                          const absl::Status& refusal);
  absl::StatusOr<Submitted> AnswerTaken(const Job& refused);
  bool IsUnsure(absl::string_view job_id) const;
  absl::StatusOr<JobPtr> Resolve(absl::string_view job_id);
  absl::Status ResolveUnsure();

  // job_runs.cc: leases and runs.
  using RunPtr = std::shared_ptr<Run>;
  using RunStep =
      std::function<absl::StatusOr<std::optional<JobChange>>(const Job& job, uint64_t fence)>;
  RunPtr RunOfJob(absl::string_view job_id) const;
  RunPtr RunOfClaim(ClaimId claim) const;
  bool IsRunHere(const Job& job) const;
  // It has a lease of this daemon, which nobody got.
  bool IsUngiven(const Job& job) const;
  void Aim(const RunPtr& run, const Lease& target);
  void LoseTarget(const Run& run) NPUC_REQUIRES(mutex_);
  void Unpublish(Run& run);
  absl::Status Unclaim(const RunPtr& run, const absl::StatusOr<JobPtr>& job);
  absl::Status WithRun(const Lease& lease, const RunStep& step);
  absl::Status StepRun(const RunPtr& run, bool renews, const RunStep& step);
  void AfterChange(const RunPtr& run, const Job& now) NPUC_REQUIRES(run->change);
  void EndRun(Run& run, const Job& ended) NPUC_REQUIRES(run.change);
  void HandOver(const RunPtr& run) NPUC_REQUIRES(run->change);
  void PutOnBoard(const Job& job);
  absl::StatusOr<JobPtr> Promote(const RunPtr& run, const std::string& job_id)
      NPUC_REQUIRES(run->change);
  absl::StatusOr<JobPtr> EndJob(absl::string_view job_id, const Step& step);
  void AbandonIfOver(const RunPtr& run) const;
  absl::Status TakeBack(const BoardClaim& claim, bool is_restart);
  absl::Status TakeBackExpired();
  absl::Status FollowOrphans();
  absl::Status ExtendLeases();

  const JobServiceOptions options_;
  JobStore* const store_;
  JobBoard* const board_;
  std::function<void(const Job&)> end_listener_;
  std::function<void(const Lease&)> abandon_listener_;
  ChangeHub hub_;

  Mutex work_mutex_;
  CondVar work_;  // a job may be started, or leasing stops
  bool leasing_ NPUC_GUARDED_BY(work_mutex_) = true;
  uint64_t work_came_ NPUC_GUARDED_BY(work_mutex_) = 0;  // how often
  JobBoard::Unsubscribe unsubscribe_;

  mutable Mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Entry>> entries_ NPUC_GUARDED_BY(mutex_);
  // Jobs of which a failed write may be stored: their first one, or a lease that nobody has.
  std::set<std::string> unsure_ NPUC_GUARDED_BY(mutex_);
  std::map<ClaimId, std::shared_ptr<Run>> runs_ NPUC_GUARDED_BY(mutex_);
  // Leases that were given out.
  std::map<std::pair<std::string, uint64_t>, std::shared_ptr<Run>> run_of_lease_
      NPUC_GUARDED_BY(mutex_);
  // By target.
  std::unordered_map<std::string, std::shared_ptr<Run>> run_of_job_ NPUC_GUARDED_BY(mutex_);
  int64_t last_id_ms_ NPUC_GUARDED_BY(mutex_) = 0;
  uint64_t last_id_high_ NPUC_GUARDED_BY(mutex_) = 0;
  uint64_t last_id_low_ NPUC_GUARDED_BY(mutex_) = 0;
  absl::Time next_prune_ NPUC_GUARDED_BY(mutex_) = absl::InfinitePast();  // steady
  // Answers repeats, which wait for the store. The last member: its thread uses the others.
  base::WorkPool repeats_{1, kMaxRepeats};
};

// A job on its way to its lease: nobody else can run it, but it waits as before for all to see, and
// may be cancelled. What a run needs can be made ready meanwhile, and be of no use then.
class JobService::Claim {
 public:
  Claim(Claim&& other) noexcept = default;
  Claim& operator=(Claim&& other) = delete;
  // Without a lease the job goes back to its place. Before the service ends.
  ~Claim();

  const std::shared_ptr<const Job>& job() const { return job_; }
  // What Lease is going to give, unless another change of the job comes before.
  const jobs::Lease& expected() const { return expected_; }

  // Once. Stores that the job runs; nullopt: it has ended. An error of the store leaves the job
  // where it was.
  absl::StatusOr<std::optional<Leased>> Lease();

 private:
  friend class JobService;
  Claim(JobService* service, std::shared_ptr<Run> run, JobPtr job, jobs::Lease expected);

  JobService* service_;
  std::shared_ptr<Run> run_;  // null: leased, or given back
  JobPtr job_;
  jobs::Lease expected_;
};

}  // namespace npuc::jobs

#endif  // NPUC_SERVER_JOBS_JOB_SERVICE_H_
