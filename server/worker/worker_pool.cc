#include "server/worker/worker_pool.h"

#include <signal.h>

#include <cerrno>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cache/posix.h"
#include "compiler_core/base/mutex.h"
#include "compiler_core/base/status.h"
#include "server/base/steady_clock.h"
#include "server/worker/protocol.h"
#include "server/worker/run.h"
#include "server/worker/run_follower.h"
#include "server/worker/warm_parent.h"

namespace npuc::worker {
namespace {

// So many keepers may be on their way out while other runs begin; a run beyond them waits for its
// own.
constexpr size_t kMaxLeaving = 16;
// How long a run waits for a warm parent that is being started.
constexpr absl::Duration kParentPatience = absl::Seconds(10);
// After the host kept a run from its start, so long nothing is dispatched.
constexpr absl::Duration kTroublePause = absl::Seconds(1);

}  // namespace

struct WorkerPool::Impl {
  // A run that is over but for its keeper, which is ending.
  struct Leaving {
    std::shared_ptr<const ParentProcess> parent;
    cache::UniqueFd folder;  // its output, in memory that closing it gives back
  };

  explicit Impl(WorkerPoolOptions opts) : options(std::move(opts)) {
    if (!options.now) options.now = base::SteadyNow;
  }

  WorkerPoolOptions options;
  mutable Mutex mutex;  // taken before the lock of a run
  CondVar run_ended;
  std::map<std::string, std::shared_ptr<ActiveRun>> runs NPUC_GUARDED_BY(mutex);  // by id
  std::map<uint64_t, Leaving> leaving NPUC_GUARDED_BY(mutex);                     // by number
  uint64_t next_number NPUC_GUARDED_BY(mutex) = 1;
  uint64_t started NPUC_GUARDED_BY(mutex) = 0;
  bool shut_down NPUC_GUARDED_BY(mutex) = false;
  // The host kept the last run from its start: why, and until when that counts.
  absl::Status trouble NPUC_GUARDED_BY(mutex);
  absl::Time trouble_end NPUC_GUARDED_BY(mutex) = absl::InfinitePast();

  // The last, so that its thread ends first.
  std::unique_ptr<WarmParent> parent;

  void OnMessage(const ControlMessage& message);
  void OnParentDeath(const ParentProcess& dead);
  absl::StatusOr<std::shared_ptr<ActiveRun>> Register(const WorkerJob& job);
  void Unregister(const WorkerJob& job);
  bool LetGo(const ActiveRun& run);
  void CloseLater(const ActiveRun& run, cache::UniqueFd folder);
  cache::UniqueFd TakeFolder(uint64_t run_number);
  absl::StatusOr<std::shared_ptr<const ParentProcess>> SpawnRun(const WorkerJob& job,
                                                                ActiveRun& run,
                                                                RunChannels& channels);
  absl::StatusOr<WorkerOutcome> RunOnce(const WorkerJob& job, WorkerEvents& events, ActiveRun& run);
  void NoteTrouble(const absl::Status& why);
  absl::Status CurrentTrouble() const;
};

// --- What the warm parent tells ------------------------------------------------------------------

void WorkerPool::Impl::OnMessage(const ControlMessage& message) {
  // Closed without the lock, and before the run has left.
  if (message.type == ControlMessage::Type::kExited) TakeFolder(message.run).Reset();
  const MutexLock lock(mutex);
  if (message.type == ControlMessage::Type::kExited) leaving.erase(message.run);
  for (const auto& [id, run] : runs) {
    if (run->number() != message.run) continue;
    run->Change([&](ActiveRun::State& state) {
      switch (message.type) {
        case ControlMessage::Type::kStarted:
          state.started = true;
          state.pid = message.pid;
          break;
        case ControlMessage::Type::kSpawnFailed:
          state.spawn_error = message.error == 0 ? EAGAIN : message.error;
          break;
        case ControlMessage::Type::kExited:
          state.end = RunEnd{false, message.wait_status,
                             absl::Microseconds(static_cast<int64_t>(message.cpu_microseconds)),
                             message.peak_memory_bytes};
          state.pid = 0;
          break;
        default:
          break;
      }
    });
    return;
  }
}

void WorkerPool::Impl::OnParentDeath(const ParentProcess& dead) {
  const MutexLock lock(mutex);
  for (const auto& [id, run] : runs) {
    run->Change([&](ActiveRun::State& state) {
      if (state.parent.get() != &dead || state.end.has_value()) return;
      // The leader dies with its parent; its group, if it made one grow, does not by itself.
      if (state.pid > 0) kill(-state.pid, SIGKILL);
      state.end = RunEnd{.parent_died = true};
    });
  }
  std::erase_if(leaving, [&](const auto& entry) { return entry.second.parent.get() == &dead; });
}

// --- A run ---------------------------------------------------------------------------------------

absl::StatusOr<std::shared_ptr<ActiveRun>> WorkerPool::Impl::Register(const WorkerJob& job) {
  const MutexLock lock(mutex);
  if (shut_down) return absl::UnavailableError("worker pool: shut down");
  if (runs.size() >= options.max_runs) {
    return absl::ResourceExhaustedError(
        absl::StrCat("worker pool: ", runs.size(), " runs are under way, the most allowed"));
  }
  ASSIGN_OR_RETURN(std::shared_ptr<ActiveRun> run, ActiveRun::Make(next_number++));
  if (!runs.emplace(job.run_id, run).second) {
    return absl::AlreadyExistsError(
        absl::StrCat("worker pool: run '", Printable(job.run_id), "' is under way"));
  }
  return run;
}

void WorkerPool::Impl::Unregister(const WorkerJob& job) {
  const MutexLock lock(mutex);
  runs.erase(job.run_id);
  run_ended.NotifyAll();
}

// From now on the warm parent's thread sees to the end of the run's keeper. False: that end is
// known, or soon must be.
bool WorkerPool::Impl::LetGo(const ActiveRun& run) {
  const MutexLock lock(mutex);
  const ActiveRun::State state = run.state();
  if (state.end.has_value() || leaving.size() >= kMaxLeaving) return false;
  leaving.emplace(run.number(), Leaving{.parent = state.parent, .folder = {}});
  return true;
}

// Giving its memory back takes a tenth of a millisecond, for which the run's result need not wait:
// where its keeper is still to end, the warm parent's thread does it then.
void WorkerPool::Impl::CloseLater(const ActiveRun& run, cache::UniqueFd folder) {
  const MutexLock lock(mutex);
  const auto found = leaving.find(run.number());
  if (found != leaving.end()) found->second.folder = std::move(folder);
}

cache::UniqueFd WorkerPool::Impl::TakeFolder(uint64_t run_number) {
  const MutexLock lock(mutex);
  const auto found = leaving.find(run_number);
  return found == leaving.end() ? cache::UniqueFd() : std::move(found->second.folder);
}

absl::StatusOr<std::shared_ptr<const ParentProcess>> WorkerPool::Impl::SpawnRun(
    const WorkerJob& job, ActiveRun& run, RunChannels& channels) {
  ControlMessage spawn;
  spawn.type = ControlMessage::Type::kSpawn;
  spawn.run = run.number();
  spawn.memory_bytes = job.limits.memory_bytes;
  spawn.output_bytes = job.limits.output_bytes;
  spawn.log_bytes = job.limits.log_bytes;
  spawn.cpu_seconds = job.limits.cpu_seconds;
  spawn.inputs = static_cast<uint32_t>(channels.inputs.size());
  spawn.spares = options.spares;
  ASSIGN_OR_RETURN(std::shared_ptr<const ParentProcess> alive, parent->Await(kParentPatience));
  // First the run knows its parent, then it is sent: a death in between is told to the run, or seen
  // in `alive`.
  run.Change([&](ActiveRun::State& state) { state.parent = alive; });
  absl::Status sent = absl::UnavailableError("it has just died");
  if (alive->alive) {
    sent = alive->Send(spawn, channels.ForChild(), options.answer_timeout);
    // It is dead, or hangs with a full queue.
    if (!sent.ok()) alive->Kill();
  }
  if (!sent.ok()) {
    return absl::UnavailableError(
        absl::StrCat("workers' warm parent does not take the run: ", sent.message()));
  }
  channels.CloseChildEnds();
  const MutexLock lock(mutex);
  ++started;
  return alive;
}

absl::StatusOr<WorkerOutcome> WorkerPool::Impl::RunOnce(const WorkerJob& job, WorkerEvents& events,
                                                        ActiveRun& run) {
  absl::StatusOr<RunChannels> channels =
      OpenChannels(job, parent->sandbox().Has(Mechanism::kOutputFolder));
  NoteTrouble(channels.status());
  RETURN_IF_ERROR(channels.status());
  ASSIGN_OR_RETURN(const std::shared_ptr<const ParentProcess> sent_to,
                   SpawnRun(job, run, *channels));
  RunFollower follower(options, job, events, run, *sent_to, *channels, [&] { return LetGo(run); });
  absl::StatusOr<WorkerOutcome> outcome = follower.Follow();
  NoteTrouble(outcome.status());
  CloseLater(run, std::move(channels->staging));
  return outcome;
}

// Of a run that was not begun though there is a warm parent.
void WorkerPool::Impl::NoteTrouble(const absl::Status& why) {
  if (!IsHostTrouble(why)) return;
  const MutexLock lock(mutex);
  trouble = why;
  trouble_end = base::SteadyNow() + kTroublePause;
}

absl::Status WorkerPool::Impl::CurrentTrouble() const {
  const MutexLock lock(mutex);
  return base::SteadyNow() < trouble_end ? trouble : absl::OkStatus();
}

// --- The interface -------------------------------------------------------------------------------

absl::string_view WorkerOutcomeKindName(WorkerOutcome::Kind kind) {
  switch (kind) {
    case WorkerOutcome::Kind::kSucceeded:
      return "succeeded";
    case WorkerOutcome::Kind::kFailed:
      return "failed";
    case WorkerOutcome::Kind::kCancelled:
      return "cancelled";
    case WorkerOutcome::Kind::kLimit:
      return "limit";
    case WorkerOutcome::Kind::kCrashed:
      return "crashed";
    case WorkerOutcome::Kind::kLost:
      return "lost";
    case WorkerOutcome::Kind::kInterrupted:
      return "interrupted";
  }
  return "unknown";
}

WorkerPool::WorkerPool(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

WorkerPool::~WorkerPool() {
  if (impl_->parent == nullptr) return;  // it did not start
  Shutdown();
  const MutexLock lock(impl_->mutex);
  while (!impl_->runs.empty()) impl_->run_ended.Wait(impl_->mutex);
}

absl::StatusOr<std::unique_ptr<WorkerPool>> WorkerPool::Start(WorkerPoolOptions options) {
  std::unique_ptr<WorkerPool> pool(new WorkerPool(std::make_unique<Impl>(std::move(options))));
  Impl* const impl = pool->impl_.get();
  WarmParent::Listener listener{
      .on_message = [impl](const ControlMessage& message) { impl->OnMessage(message); },
      .on_death = [impl](const ParentProcess& dead) { impl->OnParentDeath(dead); }};
  ASSIGN_OR_RETURN(impl->parent, WarmParent::Start(impl->options, std::move(listener)));
  return pool;
}

absl::StatusOr<WorkerOutcome> WorkerPool::Run(const WorkerJob& job, WorkerEvents& events) {
  ASSIGN_OR_RETURN(const std::shared_ptr<ActiveRun> run, impl_->Register(job));
  absl::StatusOr<WorkerOutcome> outcome = impl_->RunOnce(job, events, *run);
  impl_->Unregister(job);
  return outcome;
}

absl::Status WorkerPool::AwaitReady(absl::Duration patience) {
  // Not parent->Health(): while warm parents die again and again, runs go on between their deaths.
  RETURN_IF_ERROR(impl_->CurrentTrouble());
  return impl_->parent->Await(patience).status();
}

absl::Status WorkerPool::Health() const {
  RETURN_IF_ERROR(impl_->parent->Health());
  return impl_->CurrentTrouble();
}

bool WorkerPool::Cancel(absl::string_view run_id) {
  const MutexLock lock(impl_->mutex);
  const auto it = impl_->runs.find(std::string(run_id));
  if (it == impl_->runs.end()) return false;
  it->second->Change([](ActiveRun::State& state) { state.cancelled = true; });
  return true;
}

void WorkerPool::Shutdown() {
  impl_->parent->ShutDown();
  const MutexLock lock(impl_->mutex);
  impl_->shut_down = true;
  for (const auto& [id, run] : impl_->runs) {
    run->Change([](ActiveRun::State& state) { state.cancelled = true; });
  }
}

WorkerPool::Stats WorkerPool::GetStats() const {
  Stats stats;
  stats.parent_restarts = impl_->parent->restarts();
  stats.parent_pid = impl_->parent->pid();
  const MutexLock lock(impl_->mutex);
  stats.running = impl_->runs.size();
  stats.leaving = impl_->leaving.size();
  stats.started = impl_->started;
  return stats;
}

const SandboxReport& WorkerPool::sandbox() const { return impl_->parent->sandbox(); }

int WorkerPool::PidOf(absl::string_view run_id) const {
  const MutexLock lock(impl_->mutex);
  const auto it = impl_->runs.find(std::string(run_id));
  return it == impl_->runs.end() ? 0 : it->second->state().pid;
}

}  // namespace npuc::worker
