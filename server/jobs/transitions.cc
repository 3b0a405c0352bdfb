#include "server/jobs/transitions.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"

namespace npuc::jobs {
namespace {

// A change under construction: numbers events and keeps the record in step with them.
class ChangeBuilder {
 public:
  ChangeBuilder(Job before, absl::Time now) : now_(now) {
    change_.job = std::move(before);
    ++change_.job.revision;
  }

  Job& job() { return change_.job; }
  absl::Time now() const { return now_; }

  void Tell(EventBody body) {
    change_.events.push_back({.seq = ++change_.job.last_seq,
                              .time = now_,
                              .attempt = change_.job.attempts,
                              .body = std::move(body)});
  }

  // What a run tells, bounded in number and size.
  void TellAll(std::vector<EventBody> bodies) {
    for (EventBody& body : bodies) TellOne(std::move(body));
  }

  void EnterState(JobState state, absl::string_view reason,
                  FailureKind failure_kind = FailureKind::kNone) {
    Job& job = change_.job;
    job.state = state;
    job.reason = Printable(reason, kMaxReasonBytes);
    job.failure_kind = failure_kind;
    if (IsTerminal(state)) job.end_time = std::max({now_, job.create_time, job.start_time});
    if (state != JobState::kRunning) {
      job.owner.clear();
      job.lease_until = absl::InfinitePast();
    }
    Tell(StateChangedEvent{.state = state,
                           .reason = job.reason,
                           .failure_kind = failure_kind,
                           .cache_hit = job.cache_hit});
  }

  JobChange Build() && { return std::move(change_); }
  bool has_events() const { return !change_.events.empty(); }

 private:
  void TellOne(EventBody body);

  JobChange change_;
  absl::Time now_;
};

void ChangeBuilder::TellOne(EventBody body) {
  Job& job = change_.job;
  const bool droppable =
      std::holds_alternative<LogEvent>(body) || std::holds_alternative<ProgressEvent>(body);
  if (droppable && job.last_seq >= kMaxEventsPerJob - 1) {
    if (job.last_seq == kMaxEventsPerJob - 1) {
      Tell(LogEvent{absl::StrCat("npuc: more than ", kMaxEventsPerJob,
                                 " events; further log lines and progress are dropped")});
    }
    return;
  }
  if (auto* log = std::get_if<LogEvent>(&body)) {
    log->text = Printable(log->text, kMaxLogLineBytes - 3);  // "..." may follow
  } else if (auto* progress = std::get_if<ProgressEvent>(&body)) {
    // A worker's number may be anything; told ones stay in 0..1 and never fall in an attempt.
    const double fraction = progress->fraction >= 0 ? progress->fraction : 0.0;
    progress->fraction = std::max(job.fraction, std::min(fraction, 1.0));
    job.stage = progress->stage = Printable(progress->stage);
    job.fraction = progress->fraction;
  }
  NPUC_CHECK(!std::holds_alternative<StateChangedEvent>(body));
  Tell(std::move(body));
}

absl::Status CheckLease(const Job& job, uint64_t fence) {
  if (job.state == JobState::kRunning && job.fence == fence) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("stale lease ", fence, " of job ", job.id, ", which is ",
                                         JobStateName(job.state), " at fence ", job.fence));
}

void ForgetAttempt(Job& job) {
  job.stage.clear();
  job.fraction = 0.0;
}

}  // namespace

JobChange CreateJob(NewJob request, std::string job_id, uint64_t accept_order, absl::Time now) {
  Job job;
  job.id = std::move(job_id);
  job.tenant = std::move(request.tenant);
  job.request_id = std::move(request.request_id);
  job.request_sha256 = std::move(request.request_sha256);
  job.spec = std::move(request.spec);
  job.output_file = std::move(request.output_file);
  job.cache_key = std::move(request.cache_key);
  job.accept_order = accept_order;
  job.create_time = now;
  job.deadline = now + job.spec.timeout;
  ChangeBuilder builder(std::move(job), now);
  builder.EnterState(JobState::kQueued, "");
  if (request.cached.has_value()) {
    Job& born = builder.job();
    born.cache_hit = true;
    born.artifacts = std::move(request.cached->artifacts);
    born.diagnostics = std::move(request.cached->diagnostics);
    for (const base::JobDiagnostic& diagnostic : born.diagnostics) {
      builder.Tell(DiagnosticEvent{diagnostic});
    }
    for (const JobArtifact& artifact : born.artifacts) builder.Tell(ArtifactEvent{artifact});
    builder.EnterState(JobState::kSucceeded, "");
  }
  JobChange change = std::move(builder).Build();
  change.config_text = std::move(request.config_text);
  return change;
}

std::optional<JobChange> LeaseJob(const Job& job, absl::string_view owner, absl::Time lease_until,
                                  absl::Time now) {
  if (job.state != JobState::kQueued) return std::nullopt;
  ChangeBuilder builder(job, now);
  Job& next = builder.job();
  ++next.fence;
  ++next.attempts;
  next.owner = std::string(owner);
  next.lease_until = lease_until;
  next.start_time = std::max(now, next.create_time);
  ForgetAttempt(next);
  builder.EnterState(JobState::kRunning, "");
  return std::move(builder).Build();
}

absl::StatusOr<JobChange> ExtendLease(const Job& job, uint64_t fence, absl::Time lease_until) {
  RETURN_IF_ERROR(CheckLease(job, fence));
  JobChange change = TouchJob(job);
  change.job.lease_until = std::max(job.lease_until, lease_until);
  return change;
}

absl::StatusOr<std::optional<JobChange>> AppendToJob(const Job& job, uint64_t fence,
                                                     std::vector<EventBody> bodies,
                                                     absl::Time now) {
  RETURN_IF_ERROR(CheckLease(job, fence));
  ChangeBuilder builder(job, now);
  builder.TellAll(std::move(bodies));
  if (!builder.has_events()) return std::nullopt;
  return std::move(builder).Build();
}

absl::StatusOr<JobChange> FinishJob(const Job& job, uint64_t fence, std::vector<EventBody> bodies,
                                    JobResult result, absl::Time now) {
  RETURN_IF_ERROR(CheckLease(job, fence));
  ChangeBuilder builder(job, now);
  builder.TellAll(std::move(bodies));
  Job& next = builder.job();
  ForgetAttempt(next);
  next.diagnostics = std::move(result.diagnostics);
  if (next.diagnostics.size() > kMaxJobDiagnostics) next.diagnostics.resize(kMaxJobDiagnostics);
  if (!result.succeeded) {
    builder.EnterState(JobState::kFailed, result.reason, result.failure_kind);
    return std::move(builder).Build();
  }
  next.cache_hit = result.cache_hit;
  next.artifacts = std::move(result.artifacts);
  if (!result.cache_key.empty()) next.cache_key = std::move(result.cache_key);
  for (const JobArtifact& artifact : next.artifacts) builder.Tell(ArtifactEvent{artifact});
  builder.EnterState(JobState::kSucceeded, "");
  return std::move(builder).Build();
}

absl::StatusOr<JobChange> LoseLease(const Job& job, uint64_t fence, LossKind kind,
                                    absl::string_view why, const RetryLimits& limits,
                                    std::vector<EventBody> bodies, absl::Time now) {
  RETURN_IF_ERROR(CheckLease(job, fence));
  ChangeBuilder builder(job, now);
  builder.TellAll(std::move(bodies));
  Job& next = builder.job();
  ForgetAttempt(next);
  if (kind == LossKind::kWorker) ++next.worker_losses;
  if (kind == LossKind::kDaemon) ++next.daemon_losses;
  if (next.worker_losses >= limits.max_worker_losses) {
    builder.EnterState(
        JobState::kFailed,
        absl::StrCat("the worker died ", next.worker_losses, " times; the last time: ", why),
        FailureKind::kWorkerDied);
  } else if (next.daemon_losses >= limits.max_daemon_losses) {
    builder.EnterState(JobState::kFailed,
                       absl::StrCat("the daemon died ", next.daemon_losses,
                                    " times while the job ran; the last time: ", why),
                       FailureKind::kWorkerDied);
  } else {
    builder.EnterState(JobState::kQueued, absl::StrCat("attempt ", job.attempts, " lost: ", why));
  }
  return std::move(builder).Build();
}

bool IsShareable(const Job& ended) {
  if (ended.state == JobState::kSucceeded) return true;
  if (ended.state != JobState::kFailed) return false;
  switch (ended.failure_kind) {
    case FailureKind::kInvalidInput:
    case FailureKind::kLimitExceeded:
    case FailureKind::kWorkerDied:
      return true;
    case FailureKind::kNone:
    case FailureKind::kInternal:
    case FailureKind::kInputLost:
      return false;
  }
  return false;
}

std::optional<JobChange> ShareResult(const Job& job, const Job& ended, absl::Time now) {
  NPUC_CHECK(IsShareable(ended));
  if (job.state != JobState::kQueued) return std::nullopt;
  ChangeBuilder builder(job, now);
  Job& next = builder.job();
  next.diagnostics = ended.diagnostics;
  for (const base::JobDiagnostic& diagnostic : next.diagnostics) {
    builder.Tell(DiagnosticEvent{diagnostic});
  }
  if (ended.state == JobState::kFailed) {
    builder.EnterState(JobState::kFailed, ended.reason, ended.failure_kind);
    return std::move(builder).Build();
  }
  next.cache_hit = true;
  next.artifacts = ended.artifacts;
  next.cache_key = ended.cache_key;
  for (const JobArtifact& artifact : next.artifacts) builder.Tell(ArtifactEvent{artifact});
  builder.EnterState(JobState::kSucceeded, "");
  return std::move(builder).Build();
}

JobChange TouchJob(const Job& job) {
  JobChange change{.job = job};
  ++change.job.revision;
  return change;
}

std::optional<JobChange> CancelJob(const Job& job, absl::string_view reason, absl::Time now) {
  if (IsTerminal(job.state)) return std::nullopt;
  ChangeBuilder builder(job, now);
  ForgetAttempt(builder.job());
  builder.EnterState(JobState::kCancelled, reason);
  return std::move(builder).Build();
}

std::optional<JobChange> ExpireJob(const Job& job, absl::Time now) {
  if (IsTerminal(job.state)) return std::nullopt;
  ChangeBuilder builder(job, now);
  builder.job().expired_in = job.state;
  ForgetAttempt(builder.job());
  builder.EnterState(JobState::kExpired,
                     absl::StrCat("its timeout of ", absl::FormatDuration(job.spec.timeout),
                                  " passed while it was ", JobStateName(job.state)));
  return std::move(builder).Build();
}

}  // namespace npuc::jobs
