#include "server/worker/warm_parent.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/status.h"
#include "server/base/steady_clock.h"
#include "server/worker/packet.h"
#include "server/worker/run.h"
#include "server/worker/zygote.h"

namespace npuc::worker {
namespace {

constexpr int kSendSliceMs = 100;
// A process that has closed its channel is ending its workers; it is killed after this long.
constexpr int kEndWaitMs = 2000;
// At most one start in this time.
constexpr absl::Duration kStartPause = absl::Seconds(1);
// Health tells of so many processes in a row, each of which lived for less than kShortLife.
constexpr int kManyShortLives = 3;
constexpr absl::Duration kShortLife = absl::Seconds(10);
// Above the descriptors that a process of the program gets.
constexpr int kFirstOwnFd = 16;

constexpr char kProgramAdvice[] =
    "build or install the npuc-worker of npucd's own build beside npucd";

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

absl::Status CannotExecute(const std::string& path, int error) {
  char buffer[128];
  return absl::FailedPreconditionError(
      absl::StrCat("cannot execute '", Printable(path),
                   "': ", strerror_r(error, buffer, sizeof(buffer)), "; ", kProgramAdvice));
}

absl::StatusOr<cache::UniqueFd> OpenProgram(const std::string& path) {
  const cache::UniqueFd fd(
      cache::RetryOnEintr([&] { return open(path.c_str(), O_PATH | O_CLOEXEC); }));
  if (!fd.valid()) return CannotExecute(path, errno);
  cache::UniqueFd moved(fcntl(fd.get(), F_DUPFD_CLOEXEC, kFirstOwnFd));
  if (!moved.valid()) return cache::ErrnoStatus(errno, "cannot open", path);
  return moved;
}

bool IsSameFile(int a, int b) {
  struct stat of_a, of_b;
  return fstat(a, &of_a) == 0 && fstat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
         of_a.st_ino == of_b.st_ino;
}

// Starts the program with its control channel at kZygoteControlFd, itself at kZygoteProgramFd, and
// nothing else open but stdin (/dev/null), stdout and stderr.
absl::StatusOr<pid_t> SpawnProgram(const WorkerPoolOptions& options, int program, int control) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, control, kZygoteControlFd);
  posix_spawn_file_actions_adddup2(&actions, program, kZygoteProgramFd);
  posix_spawn_file_actions_addclosefrom_np(&actions, kZygoteProgramFd + 1);
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
  const std::string by_descriptor = absl::StrCat("/proc/self/fd/", kZygoteProgramFd);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, by_descriptor.c_str(), &actions, &attributes,
                                arguments.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return CannotExecute(options.program, error);
  return pid;
}

}  // namespace

// --- A process -----------------------------------------------------------------------------------

void ParentProcess::Kill() const {
  // By number: glibc 2.36's <sys/pidfd.h> has no extern "C".
  syscall(SYS_pidfd_send_signal, handle.get(), SIGKILL, nullptr, 0);
}

absl::Status ParentProcess::Send(const ControlMessage& message, const std::vector<int>& fds,
                                 absl::Duration patience) const {
  const absl::Time limit = base::SteadyNow() + patience;
  while (true) {
    const int error = SendControl(control.get(), message, fds, MSG_DONTWAIT);
    if (error == 0) return absl::OkStatus();
    if (error != EAGAIN || base::SteadyNow() >= limit) {
      return cache::ErrnoStatus(error, "cannot tell", "warm parent");
    }
    pollfd fd = {control.get(), POLLOUT, 0};
    cache::RetryOnEintr([&] { return poll(&fd, 1, kSendSliceMs); });
  }
}

// --- A start -------------------------------------------------------------------------------------

absl::StatusOr<SandboxReport> WarmParent::AwaitReady(const ParentProcess& fresh) const {
  // It tries every wall first: 30 ms, and on a crowded host a second.
  const int wait_ms = static_cast<int>(absl::ToInt64Milliseconds(3 * options_.answer_timeout));
  const auto receive = [&]() -> std::string {
    pollfd fd = {fresh.control.get(), POLLIN, 0};
    if (cache::RetryOnEintr([&] { return poll(&fd, 1, wait_ms); }) != 1) return "";
    char bytes[kMaxControlBytes];
    const ssize_t n = cache::RetryOnEintr([&] { return recv(fd.fd, bytes, sizeof(bytes), 0); });
    return std::string(bytes, n > 0 ? static_cast<size_t>(n) : 0);
  };
  const std::string greeting = receive();
  if (!greeting.empty()) {
    const absl::Status fits = CheckGreeting(greeting, options_.build_id);
    if (!fits.ok()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "'", Printable(options_.program), "' does not fit this npucd: ", fits.message(),
          "; install npucd and npuc-worker of one build"));
    }
    auto message = DecodeControl(receive());
    if (message.ok() && message->type == ControlMessage::Type::kReady) {
      return std::move(message->sandbox);
    }
  }
  return absl::UnavailableError(absl::StrCat("workers' warm parent '", Printable(options_.program),
                                             "' was started but did not get ready; ",
                                             kProgramAdvice));
}

// What is missing may be what the mode allows, and never more than at the first start.
absl::Status WarmParent::CheckSandbox(const SandboxReport& found) const {
  std::vector<std::string> lacking;
  for (const SandboxReport::Missing& missing : found.missing) {
    const MechanismInfo& info = InfoOf(missing.mechanism);
    if ((options_.sandbox == SandboxMode::kRequire && info.required) ||
        (has_sandbox_ && sandbox_.Has(missing.mechanism))) {
      lacking.push_back(absl::StrCat(info.name, " (", missing.why, "): ", info.lost));
    }
  }
  if (lacking.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "this host does not allow the sandbox that is required: ", absl::StrJoin(lacking, "; "),
      "; allow it, or start with --sandbox=best-effort and accept what is lost"));
}

absl::StatusOr<WarmParent::Process> WarmParent::StartFrom(int program) const {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
    return cache::ErrnoStatus(errno, "cannot make", "control channel");
  }
  auto fresh = std::make_shared<ParentProcess>();
  fresh->control = cache::UniqueFd(pair[0]);
  {
    const cache::UniqueFd theirs(pair[1]);
    ASSIGN_OR_RETURN(fresh->pid, SpawnProgram(options_, program, theirs.get()));
  }
  fresh->handle = cache::UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, fresh->pid, 0)));
  if (!fresh->handle.valid()) {
    const absl::Status status = cache::ErrnoStatus(errno, "cannot open", "pidfd");
    kill(fresh->pid, SIGKILL);
    cache::RetryOnEintr([&] { return waitpid(fresh->pid, nullptr, 0); });
    return status;
  }
  const absl::Status adopted = options_.adopt ? options_.adopt(fresh->pid) : absl::OkStatus();
  auto found = adopted.ok() ? AwaitReady(*fresh) : adopted;
  const absl::Status fit = found.ok() ? CheckSandbox(*found) : found.status();
  if (!fit.ok()) {
    fresh->Kill();
    cache::RetryOnEintr([&] { return waitpid(fresh->pid, nullptr, 0); });
    return fit;
  }
  fresh->sandbox = *std::move(found);
  return fresh;
}

absl::StatusOr<WarmParent::Process> WarmParent::StartProcess() {
  absl::StatusOr<Process> started = StartFrom(program_.get());
  if (started.ok()) return started;
  // The operator may have put a good file in the place of one that is spoilt.
  absl::StatusOr<cache::UniqueFd> at_path = OpenProgram(options_.program);
  if (!at_path.ok() || IsSameFile(program_.get(), at_path->get())) return started;
  absl::StatusOr<Process> mended = StartFrom(at_path->get());
  if (!mended.ok()) return started;
  program_ = *std::move(at_path);
  return mended;
}

// --- Its life ------------------------------------------------------------------------------------

WarmParent::WarmParent(const WorkerPoolOptions& options, Listener listener, cache::UniqueFd program)
    : options_(options),
      listener_(std::move(listener)),
      program_(std::move(program)),
      last_start_(base::SteadyNow()) {}

absl::StatusOr<std::unique_ptr<WarmParent>> WarmParent::Start(const WorkerPoolOptions& options,
                                                              Listener listener) {
  ASSIGN_OR_RETURN(cache::UniqueFd program, OpenProgram(options.program));
  std::unique_ptr<WarmParent> parent(
      new WarmParent(options, std::move(listener), std::move(program)));
  ASSIGN_OR_RETURN(Process first, parent->StartFrom(parent->program_.get()));
  parent->sandbox_ = first->sandbox;
  parent->has_sandbox_ = true;
  const MutexLock lock(parent->mutex_);
  parent->process_ = first;
  parent->starts_ = 1;
  parent->thread_ = std::thread([self = parent.get(), first] { self->Supervise(first); });
  return parent;
}

WarmParent::~WarmParent() {
  ShutDown();
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    // The end of its control channel ends it.
    if (process_ != nullptr) shutdown(process_->control.get(), SHUT_RDWR);
  }
  thread_.join();
}

void WarmParent::ShutDown() {
  const MutexLock lock(mutex_);
  shut_down_ = true;
  changed_.NotifyAll();
}

void WarmParent::Supervise(Process first) {
  for (Process process = std::move(first); process != nullptr; process = Restart()) {
    ReadUntilDeath(*process);
  }
}

void WarmParent::ReadUntilDeath(ParentProcess& process) {
  char bytes[kMaxControlBytes];
  while (true) {
    const ssize_t n =
        cache::RetryOnEintr([&] { return recv(process.control.get(), bytes, sizeof(bytes), 0); });
    if (n <= 0) break;
    const auto message = DecodeControl(absl::string_view(bytes, static_cast<size_t>(n)));
    if (!message.ok()) break;
    listener_.on_message(*message);
  }
  // Dead, told to end, or not in order. In the first two cases it is ending its workers and gets
  // the time to; then, and in the last case, it is killed.
  pollfd fd = {process.handle.get(), POLLIN, 0};
  cache::RetryOnEintr([&] { return poll(&fd, 1, kEndWaitMs); });
  process.Kill();
  int wait_status = 0;
  cache::RetryOnEintr([&] { return waitpid(process.pid, &wait_status, 0); });
  bool is_loss;
  {
    const MutexLock lock(mutex_);
    process_ = nullptr;
    process.alive = false;
    is_loss = !shut_down_;
    last_death_ = base::SteadyNow();
    last_end_ = EndText(wait_status);
    short_lives_ = last_death_ - last_start_ < kShortLife ? short_lives_ + 1 : 0;
  }
  listener_.on_death(process);
  if (is_loss && options_.on_parent_lost) options_.on_parent_lost(EndText(wait_status));
}

// Tries until there is a process; null: shut down.
WarmParent::Process WarmParent::Restart() {
  MutexLock lock(mutex_);
  while (true) {
    const absl::Duration pause = last_start_ + kStartPause - base::SteadyNow();
    const SteadyTime next_start = SteadyTimeAfter(absl::ToChronoNanoseconds(pause));
    while (!shut_down_ && changed_.WaitUntil(mutex_, next_start)) {
    }
    if (shut_down_) return nullptr;
    last_start_ = base::SteadyNow();
    lock.Unlock();
    absl::StatusOr<Process> fresh = StartProcess();
    lock.Lock();
    trouble_ = fresh.status();
    if (fresh.ok()) {
      process_ = *fresh;
      ++starts_;
      // Whoever shut down meanwhile has seen no process to end.
      if (shut_down_) shutdown(process_->control.get(), SHUT_RDWR);
    }
    changed_.NotifyAll();
    if (fresh.ok()) return *std::move(fresh);
  }
}

// --- What others ask -----------------------------------------------------------------------------

absl::StatusOr<std::shared_ptr<const ParentProcess>> WarmParent::Await(absl::Duration patience) {
  const SteadyTime deadline = SteadyTimeAfter(absl::ToChronoNanoseconds(patience));
  const MutexLock lock(mutex_);
  while (!shut_down_ && process_ == nullptr && trouble_.ok() &&
         changed_.WaitUntil(mutex_, deadline)) {
  }
  if (shut_down_) return absl::UnavailableError("worker pool: shut down");
  if (process_ != nullptr) return process_;
  return absl::UnavailableError(trouble_.ok() ? "the workers' warm parent is being started again"
                                              : trouble_.message());
}

absl::Status WarmParent::Health() const {
  const MutexLock lock(mutex_);
  if (!trouble_.ok() || short_lives_ < kManyShortLives ||
      base::SteadyNow() - last_death_ > kShortLife) {
    return trouble_;
  }
  return absl::InternalError(
      absl::StrCat("the workers' warm parent died ", short_lives_,
                   " times in a row soon after its start, the last time by ", last_end_,
                   "; the kernel's log says why where memory is short (dmesg | grep -i oom)"));
}

uint64_t WarmParent::restarts() const {
  const MutexLock lock(mutex_);
  return starts_ - 1;
}

pid_t WarmParent::pid() const {
  const MutexLock lock(mutex_);
  return process_ == nullptr ? 0 : process_->pid;
}

}  // namespace npuc::worker
