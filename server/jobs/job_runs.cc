// The part of JobService about leases: which job a lease stands for, and what becomes of its run.
#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "server/jobs/job_service.h"
#include "server/jobs/service_error.h"

namespace npuc::jobs {
namespace {

// Whoever wants to end a job that is about to be handed a run looks again. Each look but the last
// waits for who does that.
constexpr int kMaxLooks = 1000;
// A run is passed on so often within one call at most.
constexpr int kMaxTargets = 1000;

absl::Status StaleLease(const Lease& lease) {
  return absl::AbortedError(absl::StrCat("stale lease ", lease.fence, " of job ", lease.job_id));
}

absl::StatusOr<std::optional<JobChange>> CheckRun(const Job& job, uint64_t fence) {
  if (job.state == JobState::kRunning && job.fence == fence) return std::nullopt;
  return StaleLease({.job_id = job.id, .fence = fence});
}

// A job that only a newer daemon can read is left to it.
absl::Status WithoutNewer(const absl::Status& status) {
  return IsRecordTooNew(status) ? absl::OkStatus() : status;
}

bool RunsUnder(const Job& job, const Lease& lease) {
  return job.state == JobState::kRunning && job.fence == lease.fence;
}

}  // namespace

JobService::RunPtr JobService::RunOfJob(absl::string_view job_id) const {
  const MutexLock lock(mutex_);
  const auto found = run_of_job_.find(std::string(job_id));
  return found == run_of_job_.end() ? nullptr : found->second;
}

JobService::RunPtr JobService::RunOfClaim(ClaimId claim) const {
  const MutexLock lock(mutex_);
  const auto found = runs_.find(claim);
  return found == runs_.end() ? nullptr : found->second;
}

bool JobService::IsRunHere(const Job& job) const {
  const Lease lease = {.job_id = job.id, .fence = job.fence};
  const MutexLock lock(mutex_);
  const auto found = run_of_job_.find(job.id);
  return found != run_of_job_.end() && found->second->target_now == lease;
}

bool JobService::IsUngiven(const Job& job) const {
  return job.state == JobState::kRunning && job.owner == options_.owner && !IsRunHere(job);
}

// The job may have a later run by now.
void JobService::LoseTarget(const Run& run) {
  const auto found = run_of_job_.find(run.target_now.job_id);
  if (found != run_of_job_.end() && found->second.get() == &run) run_of_job_.erase(found);
}

void JobService::Aim(const RunPtr& run, const Lease& target) {
  const MutexLock lock(mutex_);
  LoseTarget(*run);
  run->target_now = target;
  if (!target.job_id.empty()) run_of_job_[target.job_id] = run;
}

// From now on nobody finds the run.
void JobService::Unpublish(Run& run) {
  const MutexLock lock(mutex_);
  runs_.erase(run.claim.id);
  run_of_lease_.erase({run.lease.job_id, run.lease.fence});
  LoseTarget(run);
}

absl::StatusOr<std::optional<JobService::Claim>> JobService::TryClaim() {
  while (true) {
    const std::optional<BoardClaim> claim = board_->Claim(options_.owner, SteadyNow());
    if (!claim.has_value()) return std::nullopt;
    const auto run = std::make_shared<Run>();
    run->claim = *claim;
    {
      const MutexLock lock(mutex_);
      runs_[claim->id] = run;
    }
    Aim(run, {.job_id = claim->job_id, .fence = 0});
    const absl::StatusOr<JobPtr> job = Transit(claim->job_id, NoChange);
    if (job.ok() && (*job)->state == JobState::kQueued) {
      return Claim(this, run, *job, {.job_id = (*job)->id, .fence = (*job)->fence + 1});
    }
    if (IsRecordTooNew(job.status())) board_->Avoid(claim->job_id);
    // It ended, another daemon runs it, or only a newer one can: take the next one.
    RETURN_IF_ERROR(WithoutNewer(Unclaim(run, job)));
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

JobService::Claim::Claim(JobService* service, std::shared_ptr<Run> run, JobPtr job,
                         jobs::Lease expected)
    : service_(service),
      run_(std::move(run)),
      job_(std::move(job)),
      expected_(std::move(expected)) {}

JobService::Claim::~Claim() {
  if (run_ == nullptr) return;
  service_->Unclaim(run_, absl::CancelledError("nobody leased it")).IgnoreError();
}

absl::StatusOr<std::optional<JobService::Leased>> JobService::Claim::Lease() {
  const RunPtr run = std::exchange(run_, nullptr);
  absl::StatusOr<JobPtr> job = nullptr;
  {
    // A caller that would end the job waits until it is leased.
    const MutexLock changing(run->change);
    job = service_->Promote(run, run->claim.job_id);
    service_->Pause("leased");
    if (job.ok() && *job != nullptr) {
      const MutexLock lock(service_->mutex_);
      run->lease = run->target;
      service_->run_of_lease_[{run->lease.job_id, run->lease.fence}] = run;
      return Leased{run->lease, *std::move(job)};
    }
  }
  if (job.ok()) job = service_->Transit(run->claim.job_id, NoChange);
  RETURN_IF_ERROR(service_->Unclaim(run, job));
  return std::nullopt;
}

// There will be no lease. A job that ended is done with, which is no error; one that waits goes
// back to its place; and one that another daemon runs is that one's on the board, too.
absl::Status JobService::Unclaim(const RunPtr& run, const absl::StatusOr<JobPtr>& job) {
  const MutexLock changing(run->change);
  run->over = true;
  Unpublish(*run);
  board_->End(run->claim.id, SteadyNow());
  // A lease is stored, or may be: an earlier write can land late. No other daemon can tell that
  // nobody has it.
  const bool is_unsure = store_->is_shared() && !IsRecordTooNew(job.status()) &&
                         (job.ok() ? IsUngiven(**job) : !absl::IsNotFound(job.status()));
  if (is_unsure) {
    const MutexLock lock(mutex_);
    unsure_.insert(run->claim.job_id);
  } else if (job.ok()) {
    PutOnBoard(**job);
  }
  return absl::IsNotFound(job.status()) ? absl::OkStatus() : job.status();
}

// QUEUED -> RUNNING for a run. nullptr where the job does not wait any more, or the claim is over.
absl::StatusOr<JobService::JobPtr> JobService::Promote(const RunPtr& run,
                                                       const std::string& job_id) {
  uint64_t fence = 0;
  const absl::Time until = options_.now() + options_.lease_ttl;
  ASSIGN_OR_RETURN(JobPtr job, Transit(job_id, [&](const Job& now) {
                     std::optional<JobChange> change =
                         LeaseJob(now, options_.owner, until, options_.now());
                     fence = change.has_value() ? change->job.fence : 0;
                     return absl::StatusOr<std::optional<JobChange>>(std::move(change));
                   }));
  if (fence == 0) return nullptr;
  if (!board_->Start(run->claim.id, fence, SteadyNow())) {
    // Another daemon took the claim in between; it may have found the lease, too.
    const absl::Status returned =
        Transit(job_id, [&](const Job& now) {
          return LoseLease(now, fence, LossKind::kHandBack, "its claim was over", options_.retry,
                           {}, options_.now());
        }).status();
    if (!absl::IsAborted(returned)) RETURN_IF_ERROR(returned);
    return nullptr;
  }
  run->target = {.job_id = job_id, .fence = fence};
  Aim(run, run->target);
  const MutexLock lock(mutex_);
  run->stored_until = until;
  return job;
}

absl::StatusOr<std::optional<JobService::Claim>> JobService::WaitAndClaim() {
  while (true) {
    uint64_t seen = 0;
    {
      const MutexLock lock(work_mutex_);
      if (!leasing_) return std::nullopt;
      seen = work_came_;
    }
    ASSIGN_OR_RETURN(std::optional<Claim> claim, TryClaim());
    if (claim.has_value()) return claim;
    const MutexLock lock(work_mutex_);
    while (leasing_ && work_came_ == seen) work_.Wait(work_mutex_);
  }
}

void JobService::StopLeasing() {
  {
    const MutexLock lock(work_mutex_);
    leasing_ = false;
  }
  work_.NotifyAll();
}

// Runs a step of the holder of a lease on the job that the lease stands for.
absl::Status JobService::WithRun(const Lease& lease, const RunStep& step) {
  RunPtr run;
  {
    const MutexLock lock(mutex_);
    const auto found = run_of_lease_.find({lease.job_id, lease.fence});
    if (found != run_of_lease_.end()) run = found->second;
  }
  if (run != nullptr) return StepRun(run, /*renews=*/true, step);
  const absl::Status status =
      Transit(lease.job_id, [&](const Job& job) -> absl::StatusOr<std::optional<JobChange>> {
        // A job that runs does so for a lease that is known.
        if (!IsTerminal(job.state)) return StaleLease(lease);
        return step(job, lease.fence);
      }).status();
  // The job ended otherwise, long ago: its holder must not try for ever.
  return absl::IsNotFound(status) ? StaleLease(lease) : status;
}

absl::Status JobService::StepRun(const RunPtr& run, bool renews, const RunStep& step) {
  Pause("step of a run");
  const MutexLock changing(run->change);
  // Before the step, so that nobody takes the claim over while the store is slow, and after it.
  if (renews && !run->over && !board_->Renew(run->claim.id, SteadyNow())) {
    run->over = true;  // another daemon has taken it
    Unpublish(*run);
  }
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
      if (renews) board_->Renew(run->claim.id, SteadyNow());
      return status;
    }
    AfterChange(run, *now);
    if (status.ok()) return status;
    // The job had ended otherwise, as an earlier write that seemed to fail left it, or by another
    // daemon; the run may go on for a follower.
  }
  return StaleLease(run->lease);
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
  Unpublish(run);
  if (IsShareable(ended)) {
    for (const std::string& id : board_->Close(run.claim.id, SteadyNow())) {
      // A follower that does not get the result waits for a run of its own, which may find it in
      // the cache.
      Transit(id, [&](const Job& job) {
        return absl::StatusOr<std::optional<JobChange>>(ShareResult(job, ended, options_.now()));
      }).IgnoreError();
    }
  }
  board_->End(run.claim.id, SteadyNow());
}

// The job of a run was ended by somebody else: the run goes on for the eldest follower.
void JobService::HandOver(const RunPtr& run) {
  Pause("hand over");
  Aim(run, {});
  while (const std::optional<BoardClaim> next = board_->PassOn(run->claim.id, SteadyNow())) {
    Aim(run, {.job_id = next->job_id, .fence = 0});
    const absl::StatusOr<JobPtr> job = Promote(run, next->job_id);
    if (!job.ok()) break;
    if (*job != nullptr) return;  // the run goes on
  }
  run->over = true;
  Unpublish(*run);
  board_->End(run->claim.id, SteadyNow());
}

// As the store has it, where the board had it otherwise.
void JobService::PutOnBoard(const Job& job) {
  const BoardJob place = ToBoardJob(ToLiveJob(job));
  if (job.state == JobState::kQueued) board_->Accept(place, /*reserved=*/false);
  if (job.state != JobState::kRunning) return;
  board_->Restore(place, job.owner, job.fence, SteadyNow() + (job.lease_until - options_.now()));
}

absl::Status JobService::Append(const Lease& lease, std::vector<EventBody> bodies) {
  return WithRun(lease, [&](const Job& job, uint64_t fence) {
    return AppendToJob(job, fence, bodies, options_.now());
  });
}

absl::Status JobService::Finish(const Lease& lease, std::vector<EventBody> bodies,
                                JobResult result) {
  return WithRun(lease,
                 [&](const Job& job, uint64_t fence) -> absl::StatusOr<std::optional<JobChange>> {
                   return FinishJob(job, fence, bodies, result, options_.now());
                 });
}

absl::Status JobService::Lose(const Lease& lease, LossKind kind, absl::string_view why,
                              std::vector<EventBody> bodies) {
  return WithRun(lease,
                 [&](const Job& job, uint64_t fence) -> absl::StatusOr<std::optional<JobChange>> {
                   return LoseLease(job, fence, kind, why, options_.retry, bodies, options_.now());
                 });
}

bool JobService::IsCurrent(const Lease& lease) const {
  const MutexLock lock(mutex_);
  return run_of_lease_.contains({lease.job_id, lease.fence});
}

bool JobService::Renew(const Lease& lease) {
  ClaimId claim = 0;
  {
    const MutexLock lock(mutex_);
    const auto found = run_of_lease_.find({lease.job_id, lease.fence});
    if (found == run_of_lease_.end()) return false;
    claim = found->second->claim.id;
  }
  return board_->Renew(claim, SteadyNow());
}

// Its holder, which may hang, does not learn from an answer that the lease is over.
void JobService::AbandonIfOver(const RunPtr& run) const {
  {
    const MutexLock changing(run->change);
    if (!run->over) return;
  }
  if (abandon_listener_) abandon_listener_(run->lease);
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
            // Where another daemon runs it, that one finds out.
            was_leased = now.state == JobState::kRunning && now.owner == options_.owner;
            if (was_leased) return std::nullopt;
            return step(now);
          });
      if (was_leased) continue;
      return job;
    }
    const MutexLock changing(run->change);
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
    if (run->over && abandon_listener_) abandon_listener_(run->lease);
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

// Ends a claim of this daemon that has no run here. Its lease is of a daemon that died; or of this
// one, for which a write failed that had stored the lease, so that nobody got it.
absl::Status JobService::TakeBack(const BoardClaim& claim, bool is_restart) {
  const absl::Status status =
      Transit(claim.job_id, [&](const Job& job) -> absl::StatusOr<std::optional<JobChange>> {
        if (!RunsUnder(job, {.job_id = job.id, .fence = claim.fence})) return std::nullopt;
        const auto lose = [&](LossKind kind, absl::string_view why) {
          return LoseLease(job, job.fence, kind, why, options_.retry, {}, options_.now());
        };
        if (is_restart) return lose(LossKind::kDaemon, "the daemon was restarted");
        if (job.owner == options_.owner) return lose(LossKind::kHandBack, kStoreFailed);
        return lose(LossKind::kDaemon,
                    absl::StrCat("daemon ", job.owner, " was not heard of for too long"));
      }).status();
  if (!status.ok() && !absl::IsNotFound(status)) return status;
  board_->End(claim.id, SteadyNow());
  return absl::OkStatus();
}

absl::Status JobService::TakeBackExpired() {
  std::vector<BoardClaim> left;  // without a run here
  absl::Status first_error;
  for (const BoardClaim& claim : board_->Expired(options_.owner, SteadyNow())) {
    if (claim.fence == 0) continue;  // on its way to its lease
    const RunPtr run = RunOfClaim(claim.id);
    if (run == nullptr) {
      left.push_back(claim);
      continue;
    }
    const absl::Status status = StepRun(
        run, /*renews=*/false,
        [&](const Job& job, uint64_t fence) -> absl::StatusOr<std::optional<JobChange>> {
          return LoseLease(job, fence, LossKind::kWorker, "it was not heard of for too long",
                           options_.retry, {}, options_.now());
        });
    AbandonIfOver(run);
    if (!absl::IsAborted(status)) first_error.Update(status);
  }
  for (BoardClaim& claim : board_->TakeExpired(options_.owner, SteadyNow())) {
    left.push_back(std::move(claim));
  }
  for (const BoardClaim& claim : left) {
    first_error.Update(WithoutNewer(TakeBack(claim, /*is_restart=*/false)));
  }
  return first_error;
}

// Runs whose job another daemon ended go on for a follower, or are over.
absl::Status JobService::FollowOrphans() {
  absl::Status first_error;
  for (const BoardClaim& claim : board_->Orphaned(options_.owner)) {
    const RunPtr run = RunOfClaim(claim.id);
    if (run == nullptr || claim.fence == 0) continue;
    const absl::Status status = StepRun(run, /*renews=*/false, CheckRun);
    AbandonIfOver(run);
    if (!absl::IsAborted(status)) first_error.Update(status);
  }
  return first_error;
}

// The store says until when a lease is held; what was renewed on the board is stored now and then.
absl::Status JobService::ExtendLeases() {
  const absl::Time now = options_.now();
  std::vector<RunPtr> runs;
  {
    const MutexLock lock(mutex_);
    for (const auto& [claim, run] : runs_) {
      const bool is_due = run->stored_until - now < options_.lease_ttl / 2;
      if (!run->lease.job_id.empty() && is_due) runs.push_back(run);
    }
  }
  absl::Status first_error;
  for (const RunPtr& run : runs) {
    const absl::Time until = now + options_.lease_ttl;
    const absl::Status status =
        StepRun(run, /*renews=*/false,
                [&](const Job& job, uint64_t fence) -> absl::StatusOr<std::optional<JobChange>> {
                  return ExtendLease(job, fence, until);
                });
    AbandonIfOver(run);
    if (!absl::IsAborted(status)) first_error.Update(status);
    const MutexLock lock(mutex_);
    if (status.ok()) run->stored_until = until;
  }
  return first_error;
}

}  // namespace npuc::jobs
