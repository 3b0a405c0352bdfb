#include "server/worker/zygote.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cache/posix.h"
#include "compiler_core/base/status.h"
#include "server/worker/confine.h"
#include "server/worker/keeper.h"
#include "server/worker/packet.h"
#include "server/worker/protocol.h"
#include "server/worker/walls.h"

namespace npuc::worker {
namespace {

// Without a PID namespace, a stray that forks faster than it is killed is given up after so many
// rounds.
constexpr int kMaxSweeps = 1000;
// Where there was no room for a spare, there may be some so much later.
constexpr int64_t kRefillPauseUs = 1'000'000;
// A spare is made when a run has ended: while one goes on, it would take a processor that the run,
// or what is done with its artifacts, needs; behind it there is mostly waiting, for the disk. But
// not later than so long after a run's begin.
constexpr int64_t kRefillDelayUs = 20'000;

int64_t MonotonicUs() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t{1'000'000} + now.tv_nsec / 1000;
}

// A keeper and its worker that wait for a run, or have just got one.
struct Spare {
  pid_t leader = 0;
  uint64_t output_bytes = 0;  // of a run that it fits
  HandOver ends;
};

// One thread, plain state; a run is known from its start until its leader, the keeper, is reaped.
class Zygote {
 public:
  Zygote(const WorkerFunctions& functions, const ZygoteOptions& options)
      : functions_(functions),
        build_id_(options.build_id),
        walls_(options.without),
        pid_(getpid()) {}

  int Run();

 private:
  void Reply(const ControlMessage& message);
  void Serve(const ControlPacket& packet);
  int Start(const ControlPacket& packet);
  void Spawn(const ControlPacket& packet);
  std::optional<Spare> Make(uint64_t output_bytes);
  std::optional<Spare> TakeSpare(uint64_t output_bytes);
  void DropSpares();
  std::optional<timespec> RefillWait() const;
  void Refill();
  void Kill(uint64_t run);
  void Reap();
  void KillStrays();
  void KillAll();

  const WorkerFunctions& functions_;
  const std::string build_id_;
  const Walls walls_;
  const pid_t pid_;
  std::map<pid_t, uint64_t> runs_;  // leader -> the daemon's number
  std::vector<Spare> spares_;
  size_t wanted_spares_ = 0;
  uint64_t spare_output_bytes_ = 0;
  int64_t refill_at_us_ = 0;
};

// Signals the group and, should it not have one yet, the process. Both are ours: a leader is not
// reaped before it leaves runs_.
void KillGroup(pid_t leader) {
  kill(-leader, SIGKILL);
  kill(leader, SIGKILL);
}

std::vector<pid_t> ChildrenOf(pid_t pid) {
  std::vector<pid_t> children;
  const std::string path = absl::StrCat("/proc/self/task/", pid, "/children");
  const auto fd = cache::OpenFile(path, O_RDONLY);
  if (!fd.ok()) return children;
  const auto text = cache::ReadUpToAt(fd->get(), 0, 1 << 20, path);
  if (!text.ok()) return children;
  for (const absl::string_view word : absl::StrSplit(*text, ' ', absl::SkipEmpty())) {
    pid_t child = 0;
    if (absl::SimpleAtoi(word, &child)) children.push_back(child);
  }
  return children;
}

void Zygote::Reply(const ControlMessage& message) {
  const std::string bytes = EncodeControl(message);
  // A daemon that is gone is noticed by the next Receive.
  cache::RetryOnEintr(
      [&] { return send(kZygoteControlFd, bytes.data(), bytes.size(), MSG_NOSIGNAL); });
}

// Forks a keeper, which makes its walls and its worker and waits for a run. Nullopt: errno.
std::optional<Spare> Zygote::Make(uint64_t output_bytes) {
  int keeper[2], worker[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, keeper) != 0) return std::nullopt;
  Spare made;
  made.output_bytes = output_bytes;
  made.ends.keeper = cache::UniqueFd(keeper[0]);
  HandOver theirs;
  theirs.keeper = cache::UniqueFd(keeper[1]);
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, worker) != 0) return std::nullopt;
  made.ends.worker = cache::UniqueFd(worker[0]);
  theirs.worker = cache::UniqueFd(worker[1]);
  made.leader = CloneProcess(walls_.clone_flags());
  if (made.leader < 0) return std::nullopt;
  if (made.leader == 0) RunKeeper(walls_, output_bytes, std::move(theirs), functions_);
  return made;
}

std::optional<Spare> Zygote::TakeSpare(uint64_t output_bytes) {
  if (!spares_.empty() && spares_.back().output_bytes != output_bytes) DropSpares();
  if (spares_.empty()) return std::nullopt;
  // The oldest: the youngest may be at its walls still.
  Spare taken = std::move(spares_.front());
  spares_.erase(spares_.begin());
  return taken;
}

// They end as their sockets close, and are reaped as nobody's.
void Zygote::DropSpares() { spares_.clear(); }

// Nullopt: there are enough.
std::optional<timespec> Zygote::RefillWait() const {
  if (spares_.size() >= wanted_spares_) return std::nullopt;
  const int64_t us = std::max<int64_t>(0, refill_at_us_ - MonotonicUs());
  return timespec{.tv_sec = us / 1'000'000, .tv_nsec = us % 1'000'000 * 1000};
}

// One at a time, so that a run that comes meanwhile does not wait for all.
void Zygote::Refill() {
  std::optional<Spare> made = Make(spare_output_bytes_);
  if (!made.has_value()) {
    refill_at_us_ = MonotonicUs() + kRefillPauseUs;
    return;
  }
  spares_.push_back(*std::move(made));
}

// Hands the run to a spare or to new processes; 0 or errno.
int Zygote::Start(const ControlPacket& packet) {
  // Descriptors that did not fit into our table are missing from the packet.
  if (packet.descriptors.size() != kFixedDescriptors + packet.message.inputs) return EMFILE;
  constexpr size_t kWatch = 2, kOut = 3;
  if (!walls_.GiveOutputFolder(packet.descriptors[kOut].get()).ok()) return errno;
  std::vector<int> all;
  for (const cache::UniqueFd& fd : packet.descriptors) all.push_back(fd.get());
  while (true) {
    std::optional<Spare> run = TakeSpare(packet.message.output_bytes);
    const bool was_spare = run.has_value();
    if (!was_spare) run = Make(packet.message.output_bytes);
    if (!run.has_value()) return errno == 0 ? EAGAIN : errno;
    runs_[run->leader] = packet.message.run;
    const int error =
        SendControl(run->ends.keeper.get(), packet.message, {all[kWatch]}, MSG_DONTWAIT);
    if (error != 0 && was_spare) {  // it was killed while it waited; nobody has seen the run
      KillGroup(run->leader);
      runs_.erase(run->leader);
      continue;
    }
    // A failure means that they have ended, which is told when they are reaped.
    SendControl(run->ends.worker.get(), packet.message, all, MSG_DONTWAIT);
    return 0;
  }
}

void Zygote::Spawn(const ControlPacket& packet) {
  ControlMessage reply;
  reply.run = packet.message.run;
  reply.error = Start(packet);
  reply.type =
      reply.error == 0 ? ControlMessage::Type::kStarted : ControlMessage::Type::kSpawnFailed;
  for (const auto& [leader, run] : runs_) {
    if (run == reply.run) reply.pid = leader;
  }
  Reply(reply);
  // Without a PID namespace, a run could reach the processes of another.
  wanted_spares_ = walls_.Has(Mechanism::kPidNamespace) && walls_.Has(Mechanism::kOutputFolder)
                       ? packet.message.spares
                       : 0;
  spare_output_bytes_ = packet.message.output_bytes;
  const int64_t now_us = MonotonicUs();
  if (refill_at_us_ <= now_us) refill_at_us_ = now_us + kRefillDelayUs;
}

void Zygote::Kill(uint64_t run) {
  for (const auto& [leader, number] : runs_) {
    if (number == run) KillGroup(leader);
  }
}

// Whoever is our child and leads no run was left behind by one (we are the subreaper), perhaps in a
// session of its own: a compile has no business there.
void Zygote::KillStrays() {
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    std::vector<pid_t> strays = ChildrenOf(pid_);
    strays.erase(std::remove_if(strays.begin(), strays.end(),
                                [&](pid_t pid) {
                                  return runs_.count(pid) != 0 ||
                                         std::any_of(
                                             spares_.begin(), spares_.end(),
                                             [&](const Spare& s) { return s.leader == pid; });
                                }),
                 strays.end());
    if (strays.empty()) return;
    for (const pid_t stray : strays) kill(stray, SIGKILL);
    for (const pid_t stray : strays)
      cache::RetryOnEintr([&] { return waitpid(stray, nullptr, 0); });
  }
}

void Zygote::Reap() {
  while (true) {
    // Seen, not yet reaped: the number stays taken while its group is killed.
    siginfo_t info = {};
    if (cache::RetryOnEintr([&] { return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT); }) !=
            0 ||
        info.si_pid == 0) {
      return;
    }
    const pid_t pid = info.si_pid;
    const auto it = runs_.find(pid);
    if (it != runs_.end()) kill(-pid, SIGKILL);
    int status = 0;
    rusage usage = {};
    if (cache::RetryOnEintr([&] { return wait4(pid, &status, 0, &usage); }) != pid) return;
    if (it == runs_.end()) {
      spares_.erase(std::remove_if(spares_.begin(), spares_.end(),
                                   [&](const Spare& s) { return s.leader == pid; }),
                    spares_.end());
      continue;
    }
    ControlMessage reply;
    reply.type = ControlMessage::Type::kExited;
    reply.run = it->second;
    reply.wait_status = status;
    reply.cpu_microseconds =
        static_cast<uint64_t>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
        static_cast<uint64_t>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    reply.peak_memory_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
    runs_.erase(it);
    KillStrays();
    Reply(reply);
    refill_at_us_ = 0;
  }
}

void Zygote::KillAll() {
  DropSpares();
  for (const auto& [leader, run] : runs_) KillGroup(leader);
  for (const auto& [leader, run] : runs_) {
    cache::RetryOnEintr([&, pid = leader] { return waitpid(pid, nullptr, 0); });
  }
  runs_.clear();
  KillStrays();
}

void Zygote::Serve(const ControlPacket& packet) {
  switch (packet.message.type) {
    case ControlMessage::Type::kSpawn:
      Spawn(packet);
      break;
    case ControlMessage::Type::kKill:
      Kill(packet.message.run);
      break;
    default:
      break;  // no others come from a daemon
  }
}

int Zygote::Run() {
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGCHLD);
  if (sigprocmask(SIG_SETMASK, &mask, nullptr) != 0) return 1;
  // An ignored SIGCHLD would have the kernel reap for us, and the results would be lost.
  signal(SIGCHLD, SIG_DFL);
  signal(SIGPIPE, SIG_IGN);
  const cache::UniqueFd children(signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!children.valid() || fcntl(kZygoteControlFd, F_SETFD, FD_CLOEXEC) != 0) return 1;
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0 ||
      access(absl::StrCat("/proc/self/task/", pid_, "/children").c_str(), R_OK) != 0) {
    std::fprintf(stderr,
                 "npuc-worker: this host does not list children in /proc: a process that a worker "
                 "leaves in a session of its own would not be found\n");
  }
  const std::string greeting = EncodeGreeting(build_id_);
  // A failure shows as the end of the channel, below.
  cache::RetryOnEintr([&] { return send(kZygoteControlFd, greeting.data(), greeting.size(), 0); });
  ControlMessage ready;
  ready.sandbox = walls_.report();
  Reply(ready);
  while (true) {
    pollfd fds[2] = {{kZygoteControlFd, POLLIN, 0}, {children.get(), POLLIN, 0}};
    const int ready = cache::RetryOnEintr([&] {
      const std::optional<timespec> wait = RefillWait();
      return ppoll(fds, 2, wait.has_value() ? &*wait : nullptr, nullptr);
    });
    if (ready < 0) break;
    if (ready == 0) Refill();
    if (fds[1].revents != 0) {
      signalfd_siginfo info[8];
      while (read(children.get(), info, sizeof(info)) > 0) {
      }
      Reap();
    }
    if (fds[0].revents != 0) {
      const std::optional<ControlPacket> packet = ReceiveControl(kZygoteControlFd);
      if (!packet.has_value()) break;
      Serve(*packet);
    }
  }
  KillAll();
  return 0;
}

}  // namespace

int RunZygote(const WorkerFunctions& functions, const ZygoteOptions& options) {
  close(kZygoteProgramFd);
  // The kernel has named the process by the descriptor.
  prctl(PR_SET_NAME, program_invocation_short_name, 0, 0, 0);
  OfferToOomKiller(kZygoteOomScore);
  return Zygote(functions, options).Run();
}

}  // namespace npuc::worker
