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
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
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
#include "server/worker/protocol.h"
#include "server/worker/walls.h"

namespace npuc {
namespace {

constexpr size_t kFixedDescriptors = 5;
constexpr size_t kMaxDescriptors = kFixedDescriptors + kMaxInputs;
// Without a PID namespace, a stray that forks faster than it is killed is given up after so many
// rounds.
constexpr int kMaxSweeps = 1000;

// One thread, plain state; a run is known from its fork until its leader, the keeper, is reaped.
class Zygote {
 public:
  Zygote(const WorkerFunctions& functions, const ZygoteOptions& options)
      : functions_(functions),
        build_id_(options.build_id),
        walls_(options.without),
        pid_(getpid()) {}

  int Run();

 private:
  // A received packet. Without a value: the daemon is gone.
  struct Packet {
    ControlMessage message;
    std::vector<UniqueFd> descriptors;
  };
  std::optional<Packet> Receive();
  void Reply(const ControlMessage& message);
  void Serve(Packet packet);
  void Spawn(Packet packet);
  void Kill(uint64_t run);
  void Reap();
  void KillStrays();
  void KillAll();

  const WorkerFunctions& functions_;
  const std::string build_id_;
  const Walls walls_;
  const pid_t pid_;
  std::map<pid_t, uint64_t> runs_;  // leader -> the daemon's number
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
  const auto fd = OpenFile(path, O_RDONLY);
  if (!fd.ok()) return children;
  const auto text = ReadUpToAt(fd->get(), 0, 1 << 20, path);
  if (!text.ok()) return children;
  for (const absl::string_view word : absl::StrSplit(*text, ' ', absl::SkipEmpty())) {
    pid_t child = 0;
    if (absl::SimpleAtoi(word, &child)) children.push_back(child);
  }
  return children;
}

std::optional<Zygote::Packet> Zygote::Receive() {
  char bytes[kMaxControlBytes];
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxDescriptors)];
  iovec part = {bytes, sizeof(bytes)};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  const ssize_t n =
      RetryOnEintr([&] { return recvmsg(kZygoteControlFd, &header, MSG_CMSG_CLOEXEC); });
  if (n <= 0) return std::nullopt;
  Packet packet;
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      packet.descriptors.emplace_back(fd);
    }
  }
  const auto message = DecodeControl(absl::string_view(bytes, static_cast<size_t>(n)));
  // The daemon is of the same build and trusted; anything else means that we are lost.
  if (!message.ok()) return std::nullopt;
  packet.message = *message;
  return packet;
}

void Zygote::Reply(const ControlMessage& message) {
  const std::string bytes = EncodeControl(message);
  // A daemon that is gone is noticed by the next Receive.
  RetryOnEintr([&] { return send(kZygoteControlFd, bytes.data(), bytes.size(), MSG_NOSIGNAL); });
}

void Zygote::Spawn(Packet packet) {
  ControlMessage reply;
  reply.run = packet.message.run;
  pid_t child = -1;
  errno = EMFILE;  // descriptors that did not fit into our table are missing from the packet
  if (packet.descriptors.size() == kFixedDescriptors + packet.message.inputs) {
    child = CloneProcess(walls_.clone_flags());
  }
  if (child == 0) {
    std::vector<UniqueFd>& given = packet.descriptors;
    RunDescriptors descriptors;
    descriptors.events = std::move(given[0]);
    descriptors.print = std::move(given[1]);
    descriptors.watch = std::move(given[2]);
    descriptors.out = std::move(given[3]);
    descriptors.job = std::move(given[4]);
    for (size_t i = kFixedDescriptors; i < given.size(); ++i) {
      descriptors.inputs.push_back(std::move(given[i]));
    }
    RunKeeper(walls_, packet.message, std::move(descriptors), functions_);
  }
  if (child < 0) {
    reply.type = ControlMessage::Type::kSpawnFailed;
    reply.error = errno;
  } else {
    runs_[child] = reply.run;
    reply.type = ControlMessage::Type::kStarted;
    reply.pid = child;
  }
  Reply(reply);
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
                                [&](pid_t pid) { return runs_.count(pid) != 0; }),
                 strays.end());
    if (strays.empty()) return;
    for (const pid_t stray : strays) kill(stray, SIGKILL);
    for (const pid_t stray : strays) RetryOnEintr([&] { return waitpid(stray, nullptr, 0); });
  }
}

void Zygote::Reap() {
  while (true) {
    // Seen, not yet reaped: the number stays taken while its group is killed.
    siginfo_t info = {};
    if (RetryOnEintr([&] { return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT); }) != 0 ||
        info.si_pid == 0) {
      return;
    }
    const pid_t pid = info.si_pid;
    const auto it = runs_.find(pid);
    if (it != runs_.end()) kill(-pid, SIGKILL);
    int status = 0;
    rusage usage = {};
    if (RetryOnEintr([&] { return wait4(pid, &status, 0, &usage); }) != pid) return;
    if (it == runs_.end()) continue;
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
  }
}

void Zygote::KillAll() {
  for (const auto& [leader, run] : runs_) KillGroup(leader);
  for (const auto& [leader, run] : runs_) {
    RetryOnEintr([&, pid = leader] { return waitpid(pid, nullptr, 0); });
  }
  runs_.clear();
  KillStrays();
}

void Zygote::Serve(Packet packet) {
  switch (packet.message.type) {
    case ControlMessage::Type::kSpawn:
      Spawn(std::move(packet));
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
  const UniqueFd children(signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!children.valid() || fcntl(kZygoteControlFd, F_SETFD, FD_CLOEXEC) != 0) return 1;
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0 ||
      access(absl::StrCat("/proc/self/task/", pid_, "/children").c_str(), R_OK) != 0) {
    std::fprintf(stderr,
                 "npuc-worker: this host does not list children in /proc: a process that a worker "
                 "leaves in a session of its own would not be found\n");
  }
  const std::string greeting = EncodeGreeting(build_id_);
  // A failure shows as the end of the channel, below.
  RetryOnEintr([&] { return send(kZygoteControlFd, greeting.data(), greeting.size(), 0); });
  ControlMessage ready;
  ready.sandbox = walls_.report();
  Reply(ready);
  while (true) {
    pollfd fds[2] = {{kZygoteControlFd, POLLIN, 0}, {children.get(), POLLIN, 0}};
    if (RetryOnEintr([&] { return poll(fds, 2, -1); }) < 0) break;
    if (fds[1].revents != 0) {
      signalfd_siginfo info[8];
      while (read(children.get(), info, sizeof(info)) > 0) {
      }
      Reap();
    }
    if (fds[0].revents != 0) {
      std::optional<Packet> packet = Receive();
      if (!packet.has_value()) break;
      Serve(*std::move(packet));
    }
  }
  KillAll();
  return 0;
}

}  // namespace

int RunZygote(const WorkerFunctions& functions, const ZygoteOptions& options) {
  return Zygote(functions, options).Run();
}

}  // namespace npuc
