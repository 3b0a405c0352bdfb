// The part of JobService about leases: which job a lease stands for, and who waits for its result.
#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "server/jobs/job_service.h"

namespace npuc {
namespace {

// Whoever wants to end a job that is about to be handed a run looks again. Each look but the last
// waits for who does that.
constexpr int kMaxLooks = 1000;
// A run is passed on so often within one call at most.
constexpr int kMaxTargets = 1000;

absl::Status StaleLease(const Lease& lease) {
  return absl::AbortedError(absl::StrCat("stale lease ", lease.fence, " of job ", lease.job_id));
}

bool RunsUnder(const Job& job, const Lease& lease) {
  return job.state == JobState::kRunning && job.fence == lease.fence;
}

}  // namespace

void JobService::EnqueueLocked(const Live& live, bool reserved) {
  queue_->Push(live.place, reserved);
  if (!live.key.empty()) {
    if (const auto flight = flights_.find(live.key); flight != flights_.end()) {
      queue_->Park(live.place.id);
      flight->second->followers.emplace(live.place.accept_order, live.place.id);
      return;
    }
    waiting_[live.key].emplace(live.place.accept_order, live.place.id);
  }
  work_.notify_one();
}

void JobService::RequeueLocked(const std::string& job_id) {
  const auto found = live_.find(job_id);
  if (found != live_.end()) EnqueueLocked(found->second, /*reserved=*/false);
}

// Gives a job that was popped to a run, and with it the jobs that are equal. False: it has ended.
bool JobService::ClaimLocked(const QueuedJob& next, const RunPtr& run) {
  const auto found = live_.find(next.id);
  if (found == live_.end()) {
    queue_->Done(next.tenant, absl::ZeroDuration());
    return false;
  }
  run->key = found->second.key;
  run->job_id = next.id;
  run->tenant = next.tenant;
  run_of_job_[next.id] = run;
  if (run->key.empty()) return true;
  flights_[run->key] = run;
  const auto equal = waiting_.find(run->key);
  if (equal == waiting_.end()) return true;
  run->followers = std::move(equal->second);
  waiting_.erase(equal);
  run->followers.erase(next.accept_order);
  for (const auto& [order, id] : run->followers) queue_->Park(id);
  return true;
}

// From now on nobody finds the run. Returns who followed it; they are in no place then.
std::vector<std::string> JobService::UnpublishLocked(Run& run) {
  runs_.erase({run.lease.job_id, run.lease.fence});
  run_of_job_.erase(run.job_id);
  if (!run.key.empty()) flights_.erase(run.key);
  std::vector<std::string> followers;
  for (auto& [order, id] : run.followers) followers.push_back(std::move(id));
  run.followers.clear();
  return followers;
}

JobService::RunPtr JobService::RunOfJob(absl::string_view job_id) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = run_of_job_.find(std::string(job_id));
  return found == run_of_job_.end() ? nullptr : found->second;
}

absl::StatusOr<std::optional<JobService::Claim>> JobService::TryClaim() {
  while (true) {
    auto run = std::make_shared<Run>();
    std::optional<QueuedJob> next;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      next = queue_->Pop();
      if (!next.has_value()) return std::nullopt;
      if (!ClaimLocked(*next, run)) continue;
    }
    const absl::StatusOr<JobPtr> job = Transit(next->id, NoChange);
    if (job.ok()) {
      const std::optional<JobChange> change = LeaseJob(**job, options_.now());
      if (change.has_value()) {
        return Claim(this, std::move(run), *std::move(next), *job, {(*job)->id, change->job.fence});
      }
    }
    // It ended between Pop and here: take the next one.
    RETURN_IF_ERROR(Unclaim(run, *next, job.status()));
  }
}

absl::StatusOr<std::optional<JobService::Leased>> JobService::TryLease() {
  while (true) {
    ASSIGN_OR_RETURN(std::optional<Claim> claim, TryClaim());
    if (!claim.has_value()) return std::nullopt;
    ASSIGN_OR_RETURN(std::optional<Leased> leased, claim->Lease());
    if (leased.has_value()) return leased;
  }
}

JobService::Claim::Claim(JobService* service, std::shared_ptr<Run> run, QueuedJob place, JobPtr job,
                         npuc::Lease expected)
    : service_(service),
      run_(std::move(run)),
      place_(std::move(place)),
      job_(std::move(job)),
      expected_(std::move(expected)) {}

JobService::Claim::~Claim() {
  if (run_ == nullptr) return;
  service_->Unclaim(run_, place_, absl::CancelledError("nobody leased it")).IgnoreError();
}

absl::StatusOr<std::optional<JobService::Leased>> JobService::Claim::Lease() {
  const RunPtr run = std::exchange(run_, nullptr);
  absl::StatusOr<JobPtr> job = nullptr;
  {
    // Who would end the job waits until it is leased.
    const std::lock_guard<std::mutex> changing(run->change);
    job = service_->Promote(run, place_.id);
    service_->Pause("leased");
    if (job.ok() && *job != nullptr) {
      std::lock_guard<std::mutex> lock(service_->mutex_);
      run->lease = run->target;
      run->renewed = run->started;
      service_->runs_[{run->lease.job_id, run->lease.fence}] = run;
      return Leased{run->lease, *std::move(job)};
    }
  }
  RETURN_IF_ERROR(service_->Unclaim(run, place_, job.status()));
  return std::nullopt;
}

// There will be no lease. OK, NOT_FOUND: the job has ended, which is no error. Else it goes back to
// its place, and `why` is returned.
absl::Status JobService::Unclaim(const RunPtr& run, const QueuedJob& place, absl::Status why) {
  const std::lock_guard<std::mutex> changing(run->change);
  run->over = true;
  std::lock_guard<std::mutex> lock(mutex_);
  queue_->Done(place.tenant, absl::ZeroDuration());
  const std::vector<std::string> followers = UnpublishLocked(*run);
  for (const std::string& id : followers) RequeueLocked(id);
  if (why.ok() || absl::IsNotFound(why)) return absl::OkStatus();
  RequeueLocked(place.id);
  return why;
}

// QUEUED -> RUNNING for a run. nullptr where the job has ended.
absl::StatusOr<JobService::JobPtr> JobService::Promote(const RunPtr& run,
                                                       const std::string& job_id) {
  uint64_t fence = 0;
  ASSIGN_OR_RETURN(JobPtr job, Transit(job_id, [&](const Job& now) {
                     std::optional<JobChange> change = LeaseJob(now, options_.now());
                     fence = change.has_value() ? change->job.fence : 0;
                     return absl::StatusOr<std::optional<JobChange>>(std::move(change));
                   }));
  if (fence == 0) return nullptr;
  run->target = {.job_id = job_id, .fence = fence};
  const absl::Time steady = SteadyNow();
  std::lock_guard<std::mutex> lock(mutex_);
  run->started = steady;
  return job;
}

absl::StatusOr<std::optional<JobService::Claim>> JobService::WaitAndClaim() {
  while (true) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      work_.wait(lock, [&] { return !leasing_ || queue_->HasReady(); });
      if (!leasing_) return std::nullopt;
    }
    ASSIGN_OR_RETURN(std::optional<Claim> claim, TryClaim());
    if (claim.has_value()) return claim;
  }
}

void JobService::StopLeasing() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    leasing_ = false;
  }
  work_.notify_all();
}

// Runs a step of the holder of a lease on the job that the lease stands for.
absl::Status JobService::WithRun(const Lease& lease, bool renews, const RunStep& step) {
  RunPtr run;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = runs_.find({lease.job_id, lease.fence});
    if (found != runs_.end()) run = found->second;
  }
  if (run == nullptr) {
    const absl::Status status =
        Transit(lease.job_id, [&](const Job& job) -> absl::StatusOr<std::optional<JobChange>> {
          // A job that runs does so for a lease that is known.
          if (!IsTerminal(job.state)) return StaleLease(lease);
          return step(job, lease.fence);
        }).status();
    // The job ended otherwise, long ago: its holder must not try for ever.
    return absl::IsNotFound(status) ? StaleLease(lease) : status;
  }
  Pause("step of a run");
  const std::lock_guard<std::mutex> changing(run->change);
  for (int i = 0; i < kMaxTargets && !run->over; ++i) {
    const Lease target = run->target;
    JobPtr now;
    const absl::Status status =
        Transit(
            target.job_id, [&](const Job& job) { return step(job, target.fence); }, &now)
            .status();
    if (absl::IsNotFound(status)) {
      HandOver(run);
      continue;
    }
    if (now == nullptr) return status;
    if (RunsUnder(*now, target)) {
      if (renews) Renew(lease);
      return status;
    }
    AfterChange(run, *now);
    if (status.ok()) return status;
    // The job had ended otherwise, as an earlier write that seemed to fail left it; the run may
    // go on for a follower.
  }
  return StaleLease(lease);
}

// The job of a run runs no more: sees to the run.
void JobService::AfterChange(const RunPtr& run, const Job& now) {
  if (now.state == JobState::kCancelled || now.state == JobState::kExpired) {
    HandOver(run);
  } else {
    EndRun(*run, now);
  }
}

void JobService::EndRun(Run& run, const Job& ended) {
  run.over = true;
  Pause("end of a run");
  const absl::Time steady = SteadyNow();
  const bool shared = IsShareable(ended);
  std::vector<std::string> followers;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    queue_->Done(run.tenant, steady - run.started);
    followers = UnpublishLocked(run);
    if (!IsTerminal(ended.state)) RequeueLocked(ended.id);
    if (!shared) {
      for (const std::string& id : followers) RequeueLocked(id);
    }
    work_.notify_one();
  }
  if (!shared) return;
  for (const std::string& id : followers) {
    const auto after = Transit(id, [&](const Job& job) {
      return absl::StatusOr<std::optional<JobChange>>(ShareResult(job, ended, options_.now()));
    });
    if (after.ok()) continue;
    // It waits for a run of its own, which may find the result in the cache.
    std::lock_guard<std::mutex> lock(mutex_);
    RequeueLocked(id);
  }
}

// The job of a run was ended by somebody else: the run goes on for the eldest follower.
void JobService::HandOver(const RunPtr& run) {
  Pause("hand over");
  const absl::Time steady = SteadyNow();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    queue_->Done(run->tenant, steady - run->started);
    run_of_job_.erase(run->job_id);
  }
  std::string failed;  // a follower that could not be stored as RUNNING
  while (failed.empty()) {
    std::string next;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (run->followers.empty()) break;
      next = run->followers.begin()->second;
      run->followers.erase(run->followers.begin());
      if (!queue_->Take(next)) continue;
      run->job_id = next;
      run->tenant = live_.at(next).place.tenant;
      run_of_job_[next] = run;
    }
    const absl::StatusOr<JobPtr> job = Promote(run, next);
    if (job.ok() && *job != nullptr) return;
    std::lock_guard<std::mutex> lock(mutex_);
    queue_->Done(run->tenant, absl::ZeroDuration());
    run_of_job_.erase(next);
    if (!job.ok()) failed = next;
  }
  run->over = true;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const std::vector<std::string> followers = UnpublishLocked(*run);
    if (!failed.empty()) RequeueLocked(failed);
    for (const std::string& id : followers) RequeueLocked(id);
    work_.notify_one();
  }
}

absl::Status JobService::Append(const Lease& lease, std::vector<EventBody> bodies) {
  return WithRun(lease, /*renews=*/true, [&](const Job& job, uint64_t fence) {
    return AppendToJob(job, fence, bodies, options_.now());
  });
}

absl::Status JobService::Finish(const Lease& lease, std::vector<EventBody> bodies,
                                JobResult result) {
  return WithRun(lease, /*renews=*/true,
                 [&](const Job& job, uint64_t fence) -> absl::StatusOr<std::optional<JobChange>> {
                   return FinishJob(job, fence, bodies, result, options_.now());
                 });
}

absl::Status JobService::Lose(const Lease& lease, LossKind kind, absl::string_view why,
                              std::vector<EventBody> bodies) {
  return WithRun(lease, /*renews=*/true,
                 [&](const Job& job, uint64_t fence) -> absl::StatusOr<std::optional<JobChange>> {
                   return LoseLease(job, fence, kind, why, options_.retry, bodies, options_.now());
                 });
}

bool JobService::IsCurrent(const Lease& lease) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return runs_.contains({lease.job_id, lease.fence});
}

bool JobService::Renew(const Lease& lease) {
  const absl::Time steady = SteadyNow();
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = runs_.find({lease.job_id, lease.fence});
  if (found == runs_.end()) return false;
  found->second->renewed = steady;
  return true;
}

// Its holder, which may hang, does not learn from an answer that the lease is over.
void JobService::Abandon(const Lease& lease) const {
  if (abandon_listener_) abandon_listener_(lease);
}

// Ends a job from outside, by a step that does not ask for a lease.
absl::StatusOr<JobService::JobPtr> JobService::EndJob(absl::string_view job_id, const Step& step) {
  for (int looks = 0; looks < kMaxLooks; ++looks) {
    const RunPtr run = RunOfJob(job_id);
    Pause("end from outside");
    if (run == nullptr) {
      bool was_leased = false;
      absl::StatusOr<JobPtr> job =
          Transit(job_id, [&](const Job& now) -> absl::StatusOr<std::optional<JobChange>> {
            was_leased = now.state == JobState::kRunning;
            if (was_leased) return std::nullopt;
            return step(now);
          });
      if (was_leased) continue;
      return job;
    }
    const std::lock_guard<std::mutex> changing(run->change);
    if (run->over) continue;
    // Claimed and not leased yet: the claim's holder finds out.
    if (run->target.job_id.empty()) return Transit(job_id, step);
    if (run->target.job_id != job_id) continue;
    const Lease target = run->target;
    JobPtr now;
    absl::StatusOr<JobPtr> job = Transit(job_id, step, &now);
    if (absl::IsNotFound(job.status())) {
      HandOver(run);
    } else if (now != nullptr && !RunsUnder(*now, target)) {
      AfterChange(run, *now);
    }
    if (run->over) Abandon(run->lease);
    return job;
  }
  return absl::UnavailableError(absl::StrCat("job ", job_id, " changes all the time; try again"));
}

absl::StatusOr<JobService::JobPtr> JobService::Cancel(absl::string_view job_id,
                                                      absl::string_view reason) {
  return EndJob(job_id, [&](const Job& job) -> absl::StatusOr<std::optional<JobChange>> {
    return CancelJob(job, reason, options_.now());
  });
}

absl::Status JobService::TakeBackLeases() {
  const absl::Time steady = SteadyNow();
  std::vector<Lease> lost;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [lease, run] : runs_) {
      if (steady - run->renewed >= options_.lease_ttl) lost.push_back(run->lease);
    }
  }
  absl::Status first_error;
  for (const Lease& lease : lost) {
    const absl::Status status = WithRun(
        lease, /*renews=*/false,
        [&](const Job& job, uint64_t fence) -> absl::StatusOr<std::optional<JobChange>> {
          return LoseLease(job, fence, LossKind::kWorker, "it was not heard of for too long",
                           options_.retry, {}, options_.now());
        });
    // Also where an earlier write that seemed to fail had taken it back already.
    if (!IsCurrent(lease)) Abandon(lease);
    if (!absl::IsAborted(status)) first_error.Update(status);
  }
  return first_error;
}

}  // namespace npuc
