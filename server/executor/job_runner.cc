#include "server/executor/job_runner.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cache/posix.h"
#include "compiler_core/base/status.h"
#include "server/executor/cache_inputs.h"
#include "server/executor/event_pump.h"
#include "server/executor/job_trace.h"
#include "server/executor/result_storing.h"

namespace npuc::executor {
namespace {

namespace fs = std::filesystem;

// How long one write of events may take, waiting for the job's lock included.
constexpr absl::Duration kPumpPatience = absl::Seconds(30);

// A crash is the compiler's bug; a lost run goes on by itself, but something ended it.
log::LogLevel LevelOf(worker::WorkerOutcome::Kind kind) {
  if (kind == worker::WorkerOutcome::Kind::kCrashed) return log::LogLevel::kError;
  const bool is_lost = kind == worker::WorkerOutcome::Kind::kLost ||
                       kind == worker::WorkerOutcome::Kind::kInterrupted;
  return is_lost ? log::LogLevel::kWarning : log::LogLevel::kInfo;
}

void NoteWorker(const absl::StatusOr<worker::WorkerOutcome>& outcome, RunTrace::Part& part) {
  if (!outcome.ok()) return part.Fail(outcome.status().message());
  part.Note("npuc.outcome", std::string(worker::WorkerOutcomeKindName(outcome->kind)));
  part.Note("npuc.start_seconds", absl::ToDoubleSeconds(outcome->start_time));
  part.Note("npuc.processor_seconds", absl::ToDoubleSeconds(outcome->cpu_time));
  part.Note("npuc.peak_memory_bytes", static_cast<int64_t>(outcome->peak_memory_bytes));
  if (outcome->kind != worker::WorkerOutcome::Kind::kSucceeded) part.Fail(outcome->text);
}

// Carries a worker's events to the pump and its artifacts to the cache, keeps the log, and passes a
// cancel on.
class RunEvents : public worker::WorkerEvents {
 public:
  // take_lease: called before each event; false: nobody wants the run any more.
  RunEvents(EventPump* pump, ResultStoring* storing, RunTrace* trace,
            std::function<bool()> take_lease, std::function<bool()> is_cancelled)
      : pump_(pump),
        storing_(storing),
        trace_(trace),
        take_lease_(std::move(take_lease)),
        is_cancelled_(std::move(is_cancelled)) {}

  void OnLog(absl::string_view line) override {
    absl::StrAppend(&log_, line, "\n");
    Tell(jobs::LogEvent{std::string(line)});
  }
  void OnStage(absl::string_view stage, double fraction) override {
    trace_->Stage(stage);
    Tell(jobs::ProgressEvent{std::string(stage), fraction});
  }
  void OnDiagnostic(const Diagnostic& diagnostic) override {
    Tell(jobs::DiagnosticEvent{base::ToJobDiagnostic(diagnostic)});
  }
  void OnArtifact(const worker::WorkerArtifact& artifact) override { storing_->Add(artifact); }
  void OnCompiled(const std::vector<Diagnostic>& diagnostics) override {
    storing_->Begin(log_, base::ToJobDiagnostics(diagnostics));
  }
  bool IsCancelled() override {
    if (!take_lease_()) return true;
    pump_->Tick();
    return is_cancelled_();
  }

  // Bounded by WorkerLimits::log_bytes, which the pool enforces.
  const std::string& log() const { return log_; }

 private:
  void Tell(jobs::EventBody body) {
    if (take_lease_()) pump_->Push(std::move(body));
  }

  EventPump* const pump_;
  ResultStoring* const storing_;
  RunTrace* const trace_;
  const std::function<bool()> take_lease_;
  const std::function<bool()> is_cancelled_;
  std::string log_;
};

}  // namespace

struct JobRunner::Attempt {
  std::optional<jobs::JobService::Claim> claim = {};  // until there is a lease, or can be none
  std::optional<jobs::Lease> lease = {};
  bool lease_failed = false;  // the store did not take it
  std::shared_ptr<const jobs::Job> job = {};
  std::string run_id = {};
  std::string folder = {};
  std::string config_text = {};
  std::vector<ConfigFile> files = {};  // that the config names
  std::optional<cache::CacheKey> key = {};
  worker::WorkerJob worker_job = {};
  std::vector<cache::BlobRef> held = {};
  std::string log = {};                           // what compile.log gets
  std::vector<jobs::EventBody> last_events = {};  // told with the result
  std::optional<ResultStoring> storing = {};
  std::optional<RunTrace> trace = {};  // set as it begins
  absl::Time waits_since = absl::InfinitePast();
};

JobRunner::JobRunner(JobRunnerOptions options, jobs::JobService* jobs, cache::InputStore* inputs,
                     cache::ResultCache* cache, worker::WorkerRunner* workers,
                     const log::Logger* log)
    : options_(std::move(options)),
      jobs_(jobs),
      inputs_(inputs),
      cache_(cache),
      workers_(workers),
      log_(log),
      helpers_(options_.begin_helper) {}

std::string JobRunner::RunId(const std::string& job_id, uint64_t fence) {
  return absl::StrCat(job_id, ".", fence);
}

absl::Status JobRunner::CleanWorkDir() const {
  std::error_code error;
  // remove_all takes links that it meets away and does not follow them.
  if (fs::is_symlink(options_.work_dir, error)) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot clear ", options_.work_dir, ": it is a symbolic link"));
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(options_.work_dir, error)) {
    fs::remove_all(entry.path(), error);
    if (error) break;
  }
  if (!error) return absl::OkStatus();
  return cache::ErrnoStatus(error.value(), "cannot clear", options_.work_dir);
}

void JobRunner::Abandon(const jobs::Lease& lease) {
  workers_->Cancel(RunId(lease.job_id, lease.fence));
}

// Since the job was accepted, or put back by a run that was lost: its last event then.
absl::Time JobRunner::WaitsSince(const jobs::Job& job) const {
  if (job.attempts == 0) return job.create_time;
  const auto events = jobs_->ReadEvents(job.id, job.last_seq, 1, 1);
  if (!events.ok() || events->empty()) return job.create_time;
  return events->front().time;
}

void JobRunner::Run(jobs::JobService::Claim claim) {
  Attempt attempt{.job = claim.job(),
                  .run_id = RunId(claim.expected().job_id, claim.expected().fence)};
  attempt.claim.emplace(std::move(claim));
  attempt.trace.emplace(options_.tracer, *attempt.job, attempt.run_id);
  if (attempt.trace->is_on()) attempt.waits_since = WaitsSince(*attempt.job);
  RunAttempt(attempt);
  if (!attempt.lease_failed) return;
  // Its worker is gone, and the job is back in its place: now the store has time to recover.
  if (options_.pause) options_.pause("lease failed");
  absl::SleepFor(options_.retry_delay);
}

void JobRunner::RunAttempt(Attempt& attempt) {
  if (const absl::Status prepared = Prepare(attempt); !prepared.ok()) {
    if (StaysInPlace(attempt, prepared)) return;
    Fail(attempt, jobs::FailureKind::kInternal, prepared.message());
    return;
  }
  if (FinishFromCache(attempt)) return;
  const absl::Status acquired = AcquireInputs(attempt);
  if (!acquired.ok()) {
    if (StaysInPlace(attempt, acquired)) return;
    Fail(attempt,
         absl::IsNotFound(acquired) ? jobs::FailureKind::kInputLost : jobs::FailureKind::kInternal,
         absl::StrCat("an input can no longer be read: ", acquired.message(),
                      " and submit the job again"));
    return;
  }
  BeginRun(attempt);
  RunWorker(attempt);
  EndRun(attempt);
}

// A store that cannot be reached is not the job's fault: the job waits in its place until it can.
bool JobRunner::StaysInPlace(Attempt& attempt, const absl::Status& status) {
  if (!absl::IsUnavailable(status) || !attempt.claim.has_value()) return false;
  log_->Warning("a job cannot be started now, and stays in its place",
                {{"job", attempt.job->id}, {"error", status.message()}});
  attempt.claim.reset();
  absl::SleepFor(options_.retry_delay);
  return true;
}

// The worker's job, its folder, and the place for its result.
void JobRunner::BeginRun(Attempt& attempt) {
  attempt.folder = absl::StrCat(options_.work_dir, "/", attempt.run_id);
  FillWorkerJob(attempt);
  PreparedArtifacts::Check check;
  if (options_.check_artifact) {
    check = [this, job = attempt.job](absl::string_view name, absl::string_view bytes) {
      return options_.check_artifact(name, job->output_file, bytes);
    };
  }
  attempt.storing.emplace(cache_, &helpers_, *attempt.key, attempt.job->output_file,
                          std::move(check));
}

void JobRunner::EndRun(Attempt& attempt) {
  attempt.storing.reset();
  std::error_code error;
  fs::remove_all(attempt.folder, error);
  if (error) {
    log_->Warning("cannot remove a job folder",
                  {{"job", attempt.job->id}, {"error", error.message()}});
  }
}

// Called before the first event, and before the end of a run is stored: it takes the lease, if the
// run has none yet. False: the job has ended, or is back in its place.
bool JobRunner::TakeLease(Attempt& attempt) {
  if (attempt.claim.has_value()) {
    const auto leased = attempt.claim->Lease();
    attempt.claim.reset();
    if (!leased.ok()) {
      log_->Error("a run's lease cannot be stored",
                  {{"job", attempt.job->id}, {"error", leased.status().message()}});
      attempt.lease_failed = true;
    } else if (leased->has_value()) {
      attempt.lease = (*leased)->lease;
    }
  }
  return attempt.lease.has_value();
}

absl::Status JobRunner::Prepare(Attempt& attempt) {
  ASSIGN_OR_RETURN(attempt.config_text, jobs_->ReadConfig(attempt.job->id));
  Diagnostics diagnostics;
  ASSIGN_OR_RETURN(
      const ParsedConfig config,
      options_.parse_config(attempt.config_text, attempt.job->spec.config_name, diagnostics));
  // Made again and not taken from the job: while the job waited, the daemon may have been replaced
  // by a build whose results have other keys.
  // The tenant may have left or joined the shared scope since then, too.
  const std::string& tenant = attempt.job->tenant;
  ASSIGN_OR_RETURN(
      cache::CacheKey key,
      ResultKey(options_.result_scope == nullptr ? tenant : options_.result_scope(tenant),
                attempt.job->spec, config.options, options_.compiler_build_id));
  attempt.key = std::move(key);
  attempt.files = config.files;
  return absl::OkStatus();
}

bool JobRunner::FinishFromCache(Attempt& attempt) {
  if (attempt.job->spec.no_cache) return false;
  const auto cached = [&] {
    RunTrace::Part part = attempt.trace->Begin("cache lookup");
    auto found = cache_->Lookup(*attempt.key);
    part.Note("npuc.cache.hit", found.ok() && found->has_value());
    return found;
  }();
  if (!cached.ok()) {
    log_->Warning("cache look-up failed",
                  {{"job", attempt.job->id}, {"error", cached.status().message()}});
    return false;
  }
  if (!cached->has_value()) return false;
  auto diagnostics = jobs::DecodeResultMetadata((*cached)->metadata);
  if (!diagnostics.ok()) return false;
  for (const base::JobDiagnostic& diagnostic : *diagnostics) {
    attempt.last_events.push_back(jobs::DiagnosticEvent{diagnostic});
  }
  Finish(attempt, {.succeeded = true,
                   .cache_hit = true,
                   .artifacts = ToJobArtifacts((*cached)->artifacts),
                   .cache_key = attempt.key->ToString(),
                   .diagnostics = *std::move(diagnostics)});
  return true;
}

absl::Status JobRunner::AcquireInputs(Attempt& attempt) {
  const RunTrace::Part part = attempt.trace->Begin("inputs");
  for (const base::InputFile& input : attempt.job->spec.inputs) {
    ASSIGN_OR_RETURN(cache::BlobRef held, inputs_->Acquire(attempt.job->tenant, input.sha256));
    attempt.worker_job.inputs.push_back({.file = input, .path = held.path});
    attempt.held.push_back(std::move(held));
  }
  return absl::OkStatus();
}

void JobRunner::FillWorkerJob(Attempt& attempt) const {
  const jobs::Job& job = *attempt.job;
  worker::WorkerJob& run = attempt.worker_job;
  run.run_id = attempt.run_id;
  run.job_folder = attempt.folder;
  run.config_text = attempt.config_text;
  run.config_name = job.spec.config_name;
  // Not bounded by the job's deadline: the run may go on for an equal job that has more time.
  run.limits = options_.limits;
  // Not the present time: every attempt makes the same bytes.
  run.timestamp_seconds = job.spec.model_info_time_seconds.value_or(
      options_.model_info_time_seconds.value_or(absl::ToUnixSeconds(job.create_time)));
}

absl::Status JobRunner::Remake(const jobs::Job& job) {
  if (remaking_.exchange(true)) {
    return absl::UnavailableError("another lost result is being made again");
  }
  const absl::Cleanup end = [this] { remaking_ = false; };
  Attempt attempt{.job = std::make_shared<const jobs::Job>(job), .run_id = RunId(job.id, 0)};
  attempt.trace.emplace(/*tracer=*/nullptr, *attempt.job, attempt.run_id);
  RETURN_IF_ERROR(Prepare(attempt));
  if (attempt.key->ToString() != job.cache_key) {
    return absl::FailedPreconditionError("another build of the compiler made it");
  }
  RETURN_IF_ERROR(AcquireInputs(attempt));
  BeginRun(attempt);
  const absl::Status remade = RunAgain(attempt);
  EndRun(attempt);
  log_->Warning("a result that the cache had lost was made again",
                {{"job", job.id}, {"how", remade.ok() ? "ok" : remade.message()}});
  return remade;
}

absl::Status JobRunner::RunAgain(Attempt& attempt) {
  // The job has had its events.
  EventPump pump([](const std::vector<jobs::EventBody>&) { return absl::OkStatus(); },
                 options_.event_linger);
  RunEvents events(
      &pump, &*attempt.storing, &*attempt.trace, [] { return true; },
      [this] { return draining_.load(); });
  ASSIGN_OR_RETURN(const worker::WorkerOutcome outcome, workers_->Run(attempt.worker_job, events));
  if (outcome.kind != worker::WorkerOutcome::Kind::kSucceeded) {
    return absl::InternalError(absl::StrCat("the compile ended otherwise: ", outcome.text));
  }
  attempt.log = events.log();
  jobs::JobResult result;
  result.diagnostics = base::ToJobDiagnostics(outcome.diagnostics);
  return attempt.storing->Finish(attempt.log, result);
}

void JobRunner::RunWorker(Attempt& attempt) {
  const jobs::Job& job = *attempt.job;
  EventPump pump(
      [&](std::vector<jobs::EventBody> bodies) {
        const observe::Watchdog::Scope scope =
            options_.watchdog != nullptr ? options_.watchdog->Enter("event pump", kPumpPatience)
                                         : observe::Watchdog::Scope();
        return jobs_->Append(*attempt.lease, std::move(bodies));
      },
      options_.event_linger);
  RunEvents events(
      &pump, &*attempt.storing, &*attempt.trace, [&] { return TakeLease(attempt); },
      [&] { return draining_.load() || !jobs_->Renew(*attempt.lease); });
  const absl::StatusOr<worker::WorkerOutcome> outcome = [&] {
    RunTrace::Part part = attempt.trace->BeginWorker();
    auto ended = workers_->Run(attempt.worker_job, events);
    NoteWorker(ended, part);
    return ended;
  }();
  attempt.last_events = pump.Stop();
  attempt.log = events.log();
  if (!outcome.ok()) {
    ConcludeUnstarted(attempt, outcome.status());
    return;
  }
  log_->Write(LevelOf(outcome->kind), "run ended",
              {{"job", job.id},
               {"trace", job.spec.trace.trace_id},
               {"run", attempt.run_id},
               {"outcome", worker::WorkerOutcomeKindName(outcome->kind)},
               {"text", outcome->text},
               {"wall", absl::FormatDuration(outcome->wall_time)},
               {"cpu", absl::FormatDuration(outcome->cpu_time)}});
  Conclude(attempt, *outcome);
}

// Asked where a run ended as none with whole inputs should: the worker refuses other bytes than
// those that were uploaded, and no other run would fare better.
bool JobRunner::FailForDamagedInput(Attempt& attempt) {
  for (const base::InputFile& input : attempt.job->spec.inputs) {
    const absl::Status verified = inputs_->Verify(attempt.job->tenant, input.sha256);
    if (!absl::IsDataLoss(verified) && !absl::IsNotFound(verified)) continue;
    log_->Error("an input of a job is damaged on the disk",
                {{"job", attempt.job->id}, {"error", verified.message()}});
    Fail(attempt, jobs::FailureKind::kInputLost,
         absl::StrCat("'", Printable(input.name), "' was damaged on the server's disk (SHA-256 ",
                      input.sha256, "); upload it and submit the job again"));
    return true;
  }
  return false;
}

void JobRunner::ConcludeUnstarted(Attempt& attempt, const absl::Status& status) {
  const bool is_stopping = draining_.load();
  const bool by_host = worker::IsHostTrouble(status);
  if (!is_stopping && !by_host && FailForDamagedInput(attempt)) return;
  const std::string why = is_stopping ? "the daemon is stopping"
                                      : "no worker could be started; the server's log says why";
  if (!is_stopping) {
    log_->Warning("no worker could be started",
                  {{"job", attempt.job->id}, {"error", status.message()}});
  }
  if (!is_stopping && !by_host) {
    Fail(attempt, jobs::FailureKind::kInternal, why);
  } else if (attempt.claim.has_value()) {
    attempt.claim.reset();  // the job has been in its place all the time
  } else {
    GiveBack(attempt, jobs::LossKind::kHandBack, why);
  }
}

void JobRunner::Conclude(Attempt& attempt, const worker::WorkerOutcome& outcome) {
  const bool died = outcome.kind == worker::WorkerOutcome::Kind::kLost ||
                    outcome.kind == worker::WorkerOutcome::Kind::kCrashed;
  if (died && FailForDamagedInput(attempt)) return;
  jobs::JobResult result;
  result.diagnostics = base::ToJobDiagnostics(outcome.diagnostics);
  result.reason = outcome.text;
  switch (outcome.kind) {
    case worker::WorkerOutcome::Kind::kSucceeded: {
      const absl::Status stored = Store(attempt, result);
      if (absl::IsCancelled(stored)) return;
      if (stored.ok()) {
        result.succeeded = true;
        break;
      }
      result.failure_kind = jobs::FailureKind::kInternal;
      result.reason = absl::StrCat("the artifacts could not be stored: ", stored.message());
      break;
    }
    case worker::WorkerOutcome::Kind::kFailed:
      result.failure_kind = outcome.code == absl::StatusCode::kInternal
                                ? jobs::FailureKind::kInternal
                                : jobs::FailureKind::kInvalidInput;
      break;
    case worker::WorkerOutcome::Kind::kLimit:
      result.failure_kind = jobs::FailureKind::kLimitExceeded;
      break;
    case worker::WorkerOutcome::Kind::kCrashed:
      result.failure_kind = jobs::FailureKind::kInternal;
      break;
    case worker::WorkerOutcome::Kind::kCancelled:
      if (draining_.load()) {
        GiveBack(attempt, jobs::LossKind::kHandBack, "the daemon is stopping");
      } else {
        // The job had ended before its worker was stopped; where it has not, the stop was foreign.
        GiveBack(attempt, jobs::LossKind::kWorker, "the worker was stopped from outside");
      }
      return;
    case worker::WorkerOutcome::Kind::kLost:
      GiveBack(attempt, jobs::LossKind::kWorker, outcome.text);
      return;
    case worker::WorkerOutcome::Kind::kInterrupted:
      GiveBack(attempt, jobs::LossKind::kHandBack, outcome.text);
      return;
  }
  if (result.failure_kind == jobs::FailureKind::kInternal) KeepBundle(attempt, result);
  Finish(attempt, result);
}

// Our fault: what shows it again is kept for the operator, and the job says in which stage it was.
void JobRunner::KeepBundle(const Attempt& attempt, jobs::JobResult& result) {
  std::string stage;
  const auto job = jobs_->Get(attempt.job->id);
  if (job.ok()) stage = (*job)->stage;
  for (const jobs::EventBody& event : attempt.last_events) {
    if (const auto* progress = std::get_if<jobs::ProgressEvent>(&event)) stage = progress->stage;
  }
  const std::string where = absl::StrCat("in stage '", Printable(stage), "'");
  if (!stage.empty() && !absl::StrContains(result.reason, where)) {
    absl::StrAppend(&result.reason, "; ", where);
  }
  if (options_.bundles == nullptr) return;
  FailureBundles::Failure failure{.job_id = attempt.job->id,
                                  .tenant = attempt.job->tenant,
                                  .build_id = options_.compiler_build_id,
                                  .stage = stage,
                                  .reason = result.reason,
                                  .timestamp_seconds = attempt.worker_job.timestamp_seconds,
                                  .config_text = attempt.config_text,
                                  .inputs = {},
                                  .log = attempt.log};
  for (const auto& [input, path] : attempt.worker_job.inputs) {
    ConfigFile named{.role = input.role, .path = input.name, .line = 0};
    for (const ConfigFile& file : attempt.files) {
      if (file.role == input.role) named = file;
    }
    failure.inputs.push_back({.named = std::move(named), .blob_path = path});
  }
  const absl::Status status = options_.bundles->Keep(failure);
  if (status.ok()) {
    absl::StrAppend(&result.reason, "; the operator has the bundle ", attempt.job->id,
                    ", which shows it again");
  } else {
    log_->Warning("a failure's bundle cannot be kept",
                  {{"job", attempt.job->id}, {"error", status.message()}});
  }
}

absl::Status JobRunner::Store(Attempt& attempt, jobs::JobResult& result) {
  RunTrace::Part part = attempt.trace->Begin("store");
  absl::Status stored = AwaitRoom(attempt, result, attempt.storing->Finish(attempt.log, result));
  if (!stored.ok()) part.Fail(stored.message());
  int64_t bytes = 0;
  for (const jobs::JobArtifact& artifact : result.artifacts) {
    bytes += static_cast<int64_t>(artifact.size_bytes);
  }
  part.Note("npuc.bytes", bytes);
  return stored;
}

// A full disk is the operator's and not the job's: while the cache has no room the run keeps its
// result, and with it its slot, so that nothing is compiled that could not be stored either.
// CANCELLED: the job has ended otherwise, or is back in the queue.
absl::Status JobRunner::AwaitRoom(Attempt& attempt, jobs::JobResult& result, absl::Status stored) {
  if (!absl::IsUnavailable(stored)) return stored;
  if (!TakeLease(attempt)) return absl::CancelledError("of no use any more");
  log_->Error("a result waits for room on the disk",
              {{"job", attempt.job->id}, {"error", stored.message()}});
  std::vector<jobs::EventBody> bodies = attempt.last_events;
  bodies.emplace_back(
      jobs::LogEvent{"npuc: compiled; the result waits for room on the server's disk"});
  // For who watches, if the job store has room.
  if (jobs_->Append(*attempt.lease, std::move(bodies)).ok()) attempt.last_events.clear();
  while (absl::IsUnavailable(stored)) {
    if (draining_.load()) {
      GiveBack(attempt, jobs::LossKind::kHandBack, "the daemon is stopping");
      return absl::CancelledError("given back");
    }
    if (!jobs_->Renew(*attempt.lease)) return absl::CancelledError("of no use any more");
    if (options_.pause) options_.pause("no room");
    absl::SleepFor(options_.retry_delay);
    stored = attempt.storing->Finish(attempt.log, result);
  }
  log_->Info("the disk has room for a result again", {{"job", attempt.job->id}});
  return stored;
}

void JobRunner::Fail(Attempt& attempt, jobs::FailureKind kind, absl::string_view reason) {
  Finish(attempt, {.failure_kind = kind, .reason = std::string(reason)});
}

void JobRunner::Finish(Attempt& attempt, const jobs::JobResult& result) {
  if (!TakeLease(attempt)) return;
  attempt.trace->Record(attempt.waits_since, result.reason);
  if (options_.pause) options_.pause("finish");
  Persist(attempt, [&] { return jobs_->Finish(*attempt.lease, attempt.last_events, result); });
}

void JobRunner::GiveBack(Attempt& attempt, jobs::LossKind kind, absl::string_view why) {
  if (!TakeLease(attempt)) return;
  attempt.trace->Record(attempt.waits_since, why);
  Persist(attempt, [&] { return jobs_->Lose(*attempt.lease, kind, why, attempt.last_events); });
}

void JobRunner::Persist(const Attempt& attempt, const std::function<absl::Status()>& write) {
  while (true) {
    const absl::Status status = write();
    // ABORTED: the job ended otherwise (cancelled, expired), and this result is stale.
    if (status.ok() || absl::IsAborted(status)) return;
    log_->Error("the end of a run cannot be stored",
                {{"job", attempt.job->id}, {"error", status.message()}});
    if (draining_.load()) return;  // recovery at the next start puts the job back
    absl::SleepFor(options_.retry_delay);
  }
}

}  // namespace npuc::executor
