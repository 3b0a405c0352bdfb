#include "server/worker/worker_pool.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <iterator>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cache/posix.h"
#include "compiler_core/base/status.h"
#include "server/worker/packet.h"
#include "server/worker/protocol.h"
#include "server/worker/run.h"
#include "server/worker/zygote.h"

namespace npuc {
namespace {

// How long a run waits before it looks again at its limits and at IsCancelled.
constexpr int kSliceMs = 100;
// How long what a worker tells may wait for more of it, so that not every line wakes a thread. The
// worker's end, a cancel and a full buffer are not waited for.
constexpr int kGatherMs = 4;
// Of one channel's rest at the end, which the kernel's buffers bound.
constexpr int kMaxReads = 1024;
// After the warm parent's death its workers die at once (PR_SET_PDEATHSIG); wait so long to see it.
constexpr int kDeathWaitMs = 2000;
constexpr size_t kReadBytes = 64 << 10;
// A worker that rings more often has something else in mind than its artifacts.
constexpr size_t kMaxLooks = 64;
// So many keepers may be on their way out while other runs begin; a run beyond them waits for its
// own.
constexpr size_t kMaxLeaving = 16;

absl::Time MonotonicNow() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return absl::UnixEpoch() +
         absl::Nanoseconds(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

// Sends a packet with descriptors; waits at most `patience` for room in the queue.
absl::Status SendPacket(int socket, const ControlMessage& message, const std::vector<int>& fds,
                        absl::Duration patience) {
  const absl::Time limit = MonotonicNow() + patience;
  while (true) {
    const int error = SendControl(socket, message, fds, MSG_DONTWAIT);
    if (error == 0) return absl::OkStatus();
    if (error != EAGAIN || MonotonicNow() >= limit) {
      return ErrnoStatus(error, "cannot tell", "warm parent");
    }
    pollfd fd = {socket, POLLOUT, 0};
    RetryOnEintr([&] { return poll(&fd, 1, kSliceMs); });
  }
}

// What the warm parent gets of the daemon's environment: nothing that could hold a secret or change
// output; sanitizers and the loader keep working.
std::vector<char*> WorkerEnvironment() {
  static constexpr absl::string_view kKept[] = {
      "ASAN_OPTIONS=", "LD_LIBRARY_PATH=", "LSAN_OPTIONS=",
      "PATH=",         "TSAN_OPTIONS=",    "UBSAN_OPTIONS="};
  std::vector<char*> kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    for (const absl::string_view name : kKept) {
      if (absl::StartsWith(*entry, name)) kept.push_back(*entry);
    }
  }
  kept.push_back(nullptr);
  return kept;
}

constexpr char kProgramAdvice[] =
    "build or install the npuc-worker of npucd's own build beside npucd";

// Starts the program with its control channel at kZygoteControlFd and nothing else open but
// stdin (/dev/null), stdout and stderr.
absl::StatusOr<pid_t> SpawnProgram(const WorkerPoolOptions& options, int control) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, control, kZygoteControlFd);
  posix_spawn_file_actions_addclosefrom_np(&actions, kZygoteControlFd + 1);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<char*> arguments = {const_cast<char*>(options.program.c_str())};
  for (const std::string& argument : options.arguments) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  std::vector<char*> environment = WorkerEnvironment();
  pid_t pid = -1;
  const int error = posix_spawn(&pid, options.program.c_str(), &actions, &attributes,
                                arguments.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        ErrnoStatus(error, "cannot execute", options.program).message(), "; ", kProgramAdvice));
  }
  return pid;
}

}  // namespace

struct WorkerPool::Impl {
  // A warm parent, alive or dead. Its fields are set once, before others see it, but for `alive`.
  struct Parent {
    pid_t pid = 0;
    UniqueFd handle;  // a pidfd: a signal through it never hits another process
    UniqueFd control;
    SandboxReport sandbox;
    std::thread reader;
    bool alive = true;  // guarded by Impl::mutex
  };

  // A run under way: what the reader thread and Cancel tell the thread in Run. Guarded by
  // Impl::mutex but for `wake`.
  struct ActiveRun {
    uint64_t number = 0;
    std::shared_ptr<Parent> parent;
    UniqueFd wake;  // an eventfd
    int pid = 0;
    bool cancelled = false;
    bool started = false;
    int spawn_error = 0;
    std::optional<RunEnd> end;
    UniqueFd folder;  // of a run in `leaving`: its output, in memory that closing it gives back
  };

  explicit Impl(WorkerPoolOptions opts) : options(std::move(opts)) {
    if (!options.now) options.now = MonotonicNow;
  }

  WorkerPoolOptions options;
  SandboxReport sandbox;   // of the first warm parent; set before others see the pool
  std::mutex start_mutex;  // one start of a warm parent at a time; taken before `mutex`
  mutable std::mutex mutex;
  std::condition_variable run_ended;
  std::shared_ptr<Parent> parent;
  std::map<std::string, std::shared_ptr<ActiveRun>> runs;
  // Runs that are over, by number: of their processes there is the keeper alone, ending.
  std::map<uint64_t, std::shared_ptr<ActiveRun>> leaving;
  uint64_t next_number = 1;
  uint64_t started = 0;
  uint64_t parents = 0;
  bool shut_down = false;

  absl::StatusOr<std::shared_ptr<Parent>> EnsureParent();
  absl::StatusOr<std::shared_ptr<Parent>> StartParent();
  absl::StatusOr<SandboxReport> AwaitReady(const Parent& fresh) const;
  absl::Status CheckSandbox(const SandboxReport& found) const;
  static void KillParent(const Parent& parent) {
    // By number: glibc 2.36's <sys/pidfd.h> has no extern "C".
    syscall(SYS_pidfd_send_signal, parent.handle.get(), SIGKILL, nullptr, 0);
  }
  void ReadControl(std::shared_ptr<Parent> from);
  void OnControl(const ControlMessage& message);
  // False: it was told to end.
  bool OnParentDeath(Parent& dead);
  absl::StatusOr<std::shared_ptr<ActiveRun>> Register(const WorkerJob& job);
  void Unregister(const WorkerJob& job);
  bool LetGo(const std::shared_ptr<ActiveRun>& run);
  void CloseLater(const ActiveRun& run, UniqueFd folder);
  void CloseFolder(uint64_t run_number);
  bool ResetIfNeverStarted(ActiveRun& run);
  absl::Status SpawnRun(const WorkerJob& job, ActiveRun& run, RunChannels& channels);
  absl::StatusOr<WorkerOutcome> Follow(const WorkerJob& job, WorkerEvents& events,
                                       const std::shared_ptr<ActiveRun>& run,
                                       RunChannels& channels);
};

namespace {

void Wake(const UniqueFd& event) {
  const uint64_t one = 1;
  // Fails only where it is awake already.
  RetryOnEintr([&] { return write(event.get(), &one, sizeof(one)); });
}

}  // namespace

// --- The warm parent -----------------------------------------------------------------------------

absl::StatusOr<SandboxReport> WorkerPool::Impl::AwaitReady(const Parent& fresh) const {
  // It tries every wall first: 30 ms, and on a crowded host a second.
  const int wait_ms = static_cast<int>(absl::ToInt64Milliseconds(3 * options.answer_timeout));
  const auto receive = [&]() -> std::string {
    pollfd fd = {fresh.control.get(), POLLIN, 0};
    if (RetryOnEintr([&] { return poll(&fd, 1, wait_ms); }) != 1) return "";
    char bytes[kMaxControlBytes];
    const ssize_t n = RetryOnEintr([&] { return recv(fd.fd, bytes, sizeof(bytes), 0); });
    return std::string(bytes, n > 0 ? static_cast<size_t>(n) : 0);
  };
  const std::string greeting = receive();
  if (!greeting.empty()) {
    const absl::Status fits = CheckGreeting(greeting, options.build_id);
    if (!fits.ok()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "'", Printable(options.program), "' does not fit this npucd: ", fits.message(),
          "; install npucd and npuc-worker of one build"));
    }
    auto message = DecodeControl(receive());
    if (message.ok() && message->type == ControlMessage::Type::kReady) {
      return std::move(message->sandbox);
    }
  }
  return absl::UnavailableError(absl::StrCat("workers' warm parent '", Printable(options.program),
                                             "' was started but did not get ready; ",
                                             kProgramAdvice));
}

// What is missing may be what the mode allows, and never more than at the pool's start.
absl::Status WorkerPool::Impl::CheckSandbox(const SandboxReport& found) const {
  std::vector<std::string> lacking;
  for (const SandboxReport::Missing& missing : found.missing) {
    const MechanismInfo& info = InfoOf(missing.mechanism);
    if ((options.sandbox == SandboxMode::kRequire && info.required) ||
        sandbox.Has(missing.mechanism)) {
      lacking.push_back(absl::StrCat(info.name, " (", missing.why, "): ", info.lost));
    }
  }
  if (lacking.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "this host does not allow the sandbox that is required: ", absl::StrJoin(lacking, "; "),
      "; allow it, or start with --sandbox=best-effort and accept what is lost"));
}

absl::StatusOr<std::shared_ptr<WorkerPool::Impl::Parent>> WorkerPool::Impl::StartParent() {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
    return ErrnoStatus(errno, "cannot make", "control channel");
  }
  auto fresh = std::make_shared<Parent>();
  fresh->control = UniqueFd(pair[0]);
  {
    const UniqueFd theirs(pair[1]);
    ASSIGN_OR_RETURN(fresh->pid, SpawnProgram(options, theirs.get()));
  }
  fresh->handle = UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, fresh->pid, 0)));
  if (!fresh->handle.valid()) {
    const absl::Status status = ErrnoStatus(errno, "cannot open", "pidfd");
    kill(fresh->pid, SIGKILL);
    RetryOnEintr([&] { return waitpid(fresh->pid, nullptr, 0); });
    return status;
  }
  const absl::Status adopted = options.adopt ? options.adopt(fresh->pid) : absl::OkStatus();
  auto found = adopted.ok() ? AwaitReady(*fresh) : adopted;
  const absl::Status fit = found.ok() ? CheckSandbox(*found) : found.status();
  if (!fit.ok()) {
    KillParent(*fresh);
    RetryOnEintr([&] { return waitpid(fresh->pid, nullptr, 0); });
    return fit;
  }
  fresh->sandbox = *std::move(found);
  fresh->reader = std::thread([this, fresh] { ReadControl(fresh); });
  return fresh;
}

absl::StatusOr<std::shared_ptr<WorkerPool::Impl::Parent>> WorkerPool::Impl::EnsureParent() {
  const std::lock_guard<std::mutex> start_lock(start_mutex);
  std::shared_ptr<Parent> old;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (shut_down) return absl::UnavailableError("worker pool: shut down");
    if (parent != nullptr && parent->alive) return parent;
    old = std::exchange(parent, nullptr);
  }
  if (old != nullptr) old->reader.join();  // it has told of the death and ends
  ASSIGN_OR_RETURN(std::shared_ptr<Parent> fresh, StartParent());
  const std::lock_guard<std::mutex> lock(mutex);
  parent = fresh;
  ++parents;
  return fresh;
}

// The reader thread of one warm parent.
void WorkerPool::Impl::ReadControl(std::shared_ptr<Parent> from) {
  char bytes[kMaxControlBytes];
  while (true) {
    const ssize_t n =
        RetryOnEintr([&] { return recv(from->control.get(), bytes, sizeof(bytes), 0); });
    if (n <= 0) break;
    const auto message = DecodeControl(absl::string_view(bytes, static_cast<size_t>(n)));
    if (!message.ok()) break;
    OnControl(*message);
  }
  // Dead, told to end, or out of its mind. In the first two cases it is ending its workers, give it
  // the time; in the last, and then, kill it.
  pollfd fd = {from->handle.get(), POLLIN, 0};
  RetryOnEintr([&] { return poll(&fd, 1, kDeathWaitMs); });
  KillParent(*from);
  int wait_status = 0;
  RetryOnEintr([&] { return waitpid(from->pid, &wait_status, 0); });
  if (!OnParentDeath(*from) || !options.on_parent_lost) return;
  options.on_parent_lost(EndText(wait_status));
}

// Without the lock, and before the run has left.
void WorkerPool::Impl::CloseFolder(uint64_t run_number) {
  UniqueFd folder;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = leaving.find(run_number);
  if (found != leaving.end()) folder = std::move(found->second->folder);
}

void WorkerPool::Impl::OnControl(const ControlMessage& message) {
  if (message.type == ControlMessage::Type::kExited) CloseFolder(message.run);
  const std::lock_guard<std::mutex> lock(mutex);
  if (message.type == ControlMessage::Type::kExited) leaving.erase(message.run);
  for (auto& [id, run] : runs) {
    if (run->number != message.run) continue;
    switch (message.type) {
      case ControlMessage::Type::kStarted:
        run->started = true;
        run->pid = message.pid;
        break;
      case ControlMessage::Type::kSpawnFailed:
        run->spawn_error = message.error == 0 ? EAGAIN : message.error;
        break;
      case ControlMessage::Type::kExited:
        run->end = RunEnd{false, message.wait_status,
                          absl::Microseconds(static_cast<int64_t>(message.cpu_microseconds)),
                          message.peak_memory_bytes};
        run->pid = 0;
        break;
      default:
        break;
    }
    Wake(run->wake);
    return;
  }
}

bool WorkerPool::Impl::OnParentDeath(Parent& dead) {
  const std::lock_guard<std::mutex> lock(mutex);
  dead.alive = false;
  for (auto& [id, run] : runs) {
    if (run->parent.get() != &dead || run->end.has_value()) continue;
    // The leader dies with its parent; its group, if it made one grow, does not by itself.
    if (run->pid > 0) kill(-run->pid, SIGKILL);
    run->end = RunEnd{};
    run->end->parent_died = true;
    Wake(run->wake);
  }
  for (auto it = leaving.begin(); it != leaving.end();) {
    it = it->second->parent.get() == &dead ? leaving.erase(it) : std::next(it);
  }
  return !shut_down;
}

// --- A run ---------------------------------------------------------------------------------------

absl::StatusOr<std::shared_ptr<WorkerPool::Impl::ActiveRun>> WorkerPool::Impl::Register(
    const WorkerJob& job) {
  auto run = std::make_shared<ActiveRun>();
  run->wake = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!run->wake.valid()) return ErrnoStatus(errno, "cannot make", "eventfd");
  const std::lock_guard<std::mutex> lock(mutex);
  if (shut_down) return absl::UnavailableError("worker pool: shut down");
  if (runs.size() >= options.max_runs) {
    return absl::ResourceExhaustedError(
        absl::StrCat("worker pool: ", runs.size(), " runs are under way, the most allowed"));
  }
  run->number = next_number++;
  if (!runs.emplace(job.run_id, run).second) {
    return absl::AlreadyExistsError(
        absl::StrCat("worker pool: run '", Printable(job.run_id), "' is under way"));
  }
  return run;
}

void WorkerPool::Impl::Unregister(const WorkerJob& job) {
  const std::lock_guard<std::mutex> lock(mutex);
  runs.erase(job.run_id);
  run_ended.notify_all();
}

// The run goes on without whoever follows it, until the warm parent tells of its end. False: that
// end is known, or soon must be.
bool WorkerPool::Impl::LetGo(const std::shared_ptr<ActiveRun>& run) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (run->end.has_value() || leaving.size() >= kMaxLeaving) return false;
  leaving.emplace(run->number, run);
  return true;
}

// Giving its memory back takes a tenth of a millisecond, for which the run's result need not wait:
// where its keeper is still to end, the reader thread does it then.
void WorkerPool::Impl::CloseLater(const ActiveRun& run, UniqueFd folder) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = leaving.find(run.number);
  if (found != leaving.end()) found->second->folder = std::move(folder);
}

// Makes a run that no warm parent ever forked as new; false where one did.
bool WorkerPool::Impl::ResetIfNeverStarted(ActiveRun& run) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (run.started) return false;
  run.number = next_number++;
  run.parent = nullptr;
  run.spawn_error = 0;
  run.end.reset();
  return true;
}

absl::Status WorkerPool::Impl::SpawnRun(const WorkerJob& job, ActiveRun& run,
                                        RunChannels& channels) {
  ControlMessage spawn;
  spawn.type = ControlMessage::Type::kSpawn;
  spawn.run = run.number;
  spawn.memory_bytes = job.limits.memory_bytes;
  spawn.output_bytes = job.limits.output_bytes;
  spawn.log_bytes = job.limits.log_bytes;
  spawn.cpu_seconds = job.limits.cpu_seconds;
  spawn.inputs = static_cast<uint32_t>(channels.inputs.size());
  spawn.spares = options.spares;
  // A warm parent that has just died is replaced once; it may take our packet and die, too, but
  // then the run is lost, and says so.
  absl::Status sent;
  for (int attempt = 0; attempt < 2; ++attempt) {
    ASSIGN_OR_RETURN(const std::shared_ptr<Parent> alive, EnsureParent());
    {
      const std::lock_guard<std::mutex> lock(mutex);
      if (!alive->alive) continue;
      run.parent = alive;
    }
    sent = SendPacket(alive->control.get(), spawn, channels.ForChild(), options.answer_timeout);
    if (sent.ok()) {
      channels.CloseChildEnds();
      const std::lock_guard<std::mutex> lock(mutex);
      ++started;
      return sent;
    }
    // It is dead, or hangs with a full queue. Its reader notes the death; wait for that.
    KillParent(*alive);
    pollfd fd = {run.wake.get(), POLLIN, 0};
    RetryOnEintr([&] { return poll(&fd, 1, kDeathWaitMs); });
    const std::lock_guard<std::mutex> lock(mutex);
    run.end.reset();
  }
  return absl::UnavailableError(
      absl::StrCat("workers' warm parent does not take the run: ", sent.message()));
}

namespace {

// The thread in Run, while the run's processes live. One object per run.
template <typename Impl>
class Follower {
 public:
  Follower(Impl& pool, const WorkerJob& job, WorkerEvents& events,
           const std::shared_ptr<typename Impl::ActiveRun>& run, RunChannels& channels)
      : pool_(pool),
        job_(job),
        events_(events),
        shared_run_(run),
        run_(*run),
        channels_(channels),
        report_(job, events),
        begin_(pool.options.now()),
        asked_(MonotonicNow()) {}

  absl::StatusOr<WorkerOutcome> Follow() {
    RunEnd end;
    while (!Ended(end)) {
      // The keeper has nothing of the run any more, and nobody waits for its last steps.
      if (reason_ == KillReason::kNone && report_.end_by_keeper().has_value() &&
          pool_.LetGo(shared_run_)) {
        end = *report_.end_by_keeper();
        break;
      }
      Watch();
      WaitAndRead(kSliceMs);
    }
    if (spawn_error_ != 0) {
      // Descriptors, processes or memory: ours, for the moment.
      return absl::ResourceExhaustedError(
          ErrnoStatus(spawn_error_, "cannot fork", "worker").message());
    }
    if (end.parent_died) {
      // Wait for the workers' ends of the channels to close: then they are dead, too.
      const absl::Time limit = MonotonicNow() + absl::Milliseconds(kDeathWaitMs);
      while ((channels_.events.valid() || channels_.print.valid()) && MonotonicNow() < limit) {
        WaitAndRead(kSliceMs);
      }
    }
    Drain();
    report_.OnEndOfBytes();
    WorkerOutcome outcome = report_.Finish(end, reason_, detail_, channels_);
    outcome.wall_time = pool_.options.now() - begin_;
    outcome.start_time = start_time_;
    return outcome;
  }

 private:
  // Takes over what the reader thread has told.
  bool Ended(RunEnd& end) {
    const std::lock_guard<std::mutex> lock(pool_.mutex);
    spawn_error_ = run_.spawn_error;
    if (run_.started && !started_) {
      started_ = true;
      awaiting_ = false;
      // A kill that was asked for before the fork has found nobody.
      if (reason_ != KillReason::kNone) SendKill();
    }
    cancelled_ = run_.cancelled;
    if (run_.end.has_value()) end = *run_.end;
    return run_.end.has_value() || spawn_error_ != 0;
  }

  // Checks limits and wishes.
  void Watch() {
    if (reason_ == KillReason::kNone) {
      if (cancelled_ || events_.IsCancelled()) {
        KillFor(KillReason::kCancel);
      } else if (pool_.options.now() - begin_ >= job_.limits.wall) {
        KillFor(KillReason::kWall);
      } else if (MonotonicNow() >= next_look_) {
        // Whole folder, so not at every message.
        next_look_ = MonotonicNow() + absl::Milliseconds(kSliceMs);
        if (started_ && channels_.WorkerFolder() >= 0 &&
            !report_.OutputWithinLimits(channels_.WorkerFolder())) {
          KillFor(KillReason::kOutput);
        }
      }
    }
    if (awaiting_ && MonotonicNow() - asked_ > pool_.options.answer_timeout) {
      // It does not answer: stopped, or stuck. Its death ends all of its runs, as lost.
      detail_ = "it did not answer in time and was killed";
      awaiting_ = false;
      Impl::KillParent(*run_.parent);
    }
  }

  void KillFor(KillReason reason) {
    reason_ = reason;
    SendKill();
  }

  void SendKill() {
    ControlMessage message;
    message.type = ControlMessage::Type::kKill;
    message.run = run_.number;
    // A failure shows as a missing answer, and is dealt with as one.
    SendPacket(run_.parent->control.get(), message, {}, pool_.options.answer_timeout).IgnoreError();
    awaiting_ = true;
    asked_ = MonotonicNow();
  }

  void WaitAndRead(int wait_ms) {
    // poll passes over negative descriptors.
    const bool gathers = std::exchange(gathers_, false);
    if (gathers) wait_ms = kGatherMs;
    // The end of the events is told in any case.
    pollfd fds[5] = {{channels_.events.get(), static_cast<short>(gathers ? 0 : POLLIN), 0},
                     {gathers ? -1 : channels_.print.get(), POLLIN, 0},
                     {channels_.watch.get(), POLLIN, 0},
                     {run_.wake.get(), POLLIN, 0},
                     {channels_.bell.get(), POLLIN, 0}};
    if (RetryOnEintr([&] { return poll(fds, 5, wait_ms); }) <= 0) return;
    if (fds[2].revents != 0) ReadWatch();
    if ((fds[0].revents & POLLHUP) != 0) {
      EndEvents();
    } else if (fds[0].revents != 0 || fds[4].revents != 0) {
      ReadOnce(channels_.events, true);
    }
    if (fds[1].revents != 0) ReadOnce(channels_.print, false);
    if (fds[3].revents != 0) {
      uint64_t count;
      RetryOnEintr([&] { return read(run_.wake.get(), &count, sizeof(count)); });
    }
    if (fds[4].revents != 0) OnBell();
  }

  void OnBell() {
    char rings[16];
    const ssize_t n =
        RetryOnEintr([&] { return read(channels_.bell.get(), rings, sizeof(rings)); });
    if (n == 0 || ++looks_ == kMaxLooks) channels_.bell.Reset();
    if (n > 0 && reason_ == KillReason::kNone) report_.TakeEarlyArtifacts(channels_);
  }

  // True while there may be more at once.
  bool ReadOnce(UniqueFd& fd, bool is_events) {
    char bytes[kReadBytes];
    const ssize_t n = RetryOnEintr([&] { return read(fd.get(), bytes, sizeof(bytes)); });
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (n <= 0) {
      fd.Reset();
      return false;
    }
    const absl::string_view view(bytes, static_cast<size_t>(n));
    gathers_ = view.size() < kReadBytes;
    if (!is_events) {
      report_.OnPrintBytes(view);
      return true;
    }
    const absl::Status status = report_.OnEventBytes(view);
    if (report_.has_begun() && start_time_ == absl::ZeroDuration()) {
      start_time_ = pool_.options.now() - begin_;
    }
    if (status.ok()) return true;
    detail_ = std::string(status.message());
    fd.Reset();
    KillFor(KillReason::kProtocol);
    return false;
  }

  // What is left in a channel to which nobody writes any more.
  void ReadRest(UniqueFd& fd, bool is_events) {
    for (int i = 0; i < kMaxReads && fd.valid(); ++i) {
      if (!ReadOnce(fd, is_events)) break;
    }
  }

  void EndEvents() {
    ReadRest(channels_.events, true);
    if (channels_.events.valid() || reason_ != KillReason::kNone) return;
    while (!channels_.staging.valid() && channels_.watch.valid() && ReadWatch()) {
    }
    ReadRest(channels_.print, false);  // what was printed came before the result
    report_.OnEndOfEvents(channels_);
  }

  // True while there may be more at once.
  bool ReadWatch() {
    WatchMessage message;
    UniqueFd folder;
    const WatchRead read = ReceiveWatch(channels_.watch.get(), message, folder);
    if (read == WatchRead::kEnd) channels_.watch.Reset();
    if (read != WatchRead::kMessage) return false;
    if (folder.valid()) channels_.staging = std::move(folder);
    report_.OnWatch(message);
    return true;
  }

  // What was in the channels at the end. Bounded by the kernel's buffers: nobody writes any more.
  void Drain() {
    for (int i = 0; i < 16 && channels_.watch.valid(); ++i) {
      if (!ReadWatch()) break;
    }
    ReadRest(channels_.print, false);
    ReadRest(channels_.events, true);
  }

  Impl& pool_;
  const WorkerJob& job_;
  WorkerEvents& events_;
  const std::shared_ptr<typename Impl::ActiveRun> shared_run_;
  typename Impl::ActiveRun& run_;
  RunChannels& channels_;
  RunReport report_;
  const absl::Time begin_;
  absl::Duration start_time_ = absl::ZeroDuration();
  absl::Time next_look_ = MonotonicNow() + absl::Milliseconds(kSliceMs);
  KillReason reason_ = KillReason::kNone;
  std::string detail_;
  bool started_ = false;
  bool cancelled_ = false;
  int spawn_error_ = 0;
  bool gathers_ = false;  // what came last is read; the next may gather
  size_t looks_ = 0;      // for artifacts, as the bell rang
  bool awaiting_ = true;  // an answer of the warm parent, since asked_
  absl::Time asked_;
};

}  // namespace

absl::StatusOr<WorkerOutcome> WorkerPool::Impl::Follow(const WorkerJob& job, WorkerEvents& events,
                                                       const std::shared_ptr<ActiveRun>& run,
                                                       RunChannels& channels) {
  RETURN_IF_ERROR(SpawnRun(job, *run, channels));
  absl::StatusOr<WorkerOutcome> outcome =
      Follower<Impl>(*this, job, events, run, channels).Follow();
  CloseLater(*run, std::move(channels.staging));
  return outcome;
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
  }
  return "unknown";
}

WorkerPool::WorkerPool(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

WorkerPool::~WorkerPool() {
  Shutdown();
  std::shared_ptr<Impl::Parent> last;
  {
    std::unique_lock<std::mutex> lock(impl_->mutex);
    impl_->run_ended.wait(lock, [&] { return impl_->runs.empty(); });
    last = std::exchange(impl_->parent, nullptr);
  }
  if (last == nullptr) return;
  // The end of its control channel ends it; the reader thread reaps it.
  shutdown(last->control.get(), SHUT_RDWR);
  last->reader.join();
}

absl::StatusOr<std::unique_ptr<WorkerPool>> WorkerPool::Start(WorkerPoolOptions options) {
  std::unique_ptr<WorkerPool> pool(new WorkerPool(std::make_unique<Impl>(std::move(options))));
  ASSIGN_OR_RETURN(const auto parent, pool->impl_->EnsureParent());
  pool->impl_->sandbox = parent->sandbox;
  return pool;
}

absl::StatusOr<WorkerOutcome> WorkerPool::Run(const WorkerJob& job, WorkerEvents& events) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Impl::ActiveRun> run, impl_->Register(job));
  const auto run_once = [&]() -> absl::StatusOr<WorkerOutcome> {
    ASSIGN_OR_RETURN(RunChannels channels,
                     OpenChannels(job, impl_->sandbox.Has(Mechanism::kOutputFolder)));
    return impl_->Follow(job, events, run, channels);
  };
  absl::StatusOr<WorkerOutcome> outcome = run_once();
  // The warm parent took the packet and died before it forked: nothing of the run has happened.
  if (outcome.ok() && outcome->retryable() && impl_->ResetIfNeverStarted(*run) &&
      (rmdir(job.job_folder.c_str()) == 0 || errno == ENOENT)) {
    outcome = run_once();
  }
  impl_->Unregister(job);
  return outcome;
}

bool WorkerPool::Cancel(absl::string_view run_id) {
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  const auto it = impl_->runs.find(std::string(run_id));
  if (it == impl_->runs.end()) return false;
  it->second->cancelled = true;
  Wake(it->second->wake);
  return true;
}

void WorkerPool::Shutdown() {
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  impl_->shut_down = true;
  for (auto& [id, run] : impl_->runs) {
    run->cancelled = true;
    Wake(run->wake);
  }
}

WorkerPool::Stats WorkerPool::GetStats() const {
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  Stats stats;
  stats.running = impl_->runs.size();
  stats.leaving = impl_->leaving.size();
  stats.started = impl_->started;
  stats.parent_restarts = impl_->parents == 0 ? 0 : impl_->parents - 1;
  stats.parent_pid = impl_->parent != nullptr && impl_->parent->alive ? impl_->parent->pid : 0;
  return stats;
}

const SandboxReport& WorkerPool::sandbox() const { return impl_->sandbox; }

int WorkerPool::PidOf(absl::string_view run_id) const {
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  const auto it = impl_->runs.find(std::string(run_id));
  return it == impl_->runs.end() ? 0 : it->second->pid;
}

}  // namespace npuc
