#include "server/worker/keeper.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "server/worker/child.h"
#include "server/worker/confine.h"
#include "server/worker/packet.h"

namespace npuc::worker {
namespace {

constexpr int kExitSetUpFailed = 3;

// Tells the daemon, with a descriptor where there is one (>= 0). It has room: three messages at
// most are sent.
void Tell(const WatchMessage& message, int folder_fd = -1) {
  const std::string bytes = EncodeWatch(message);
  iovec part = {const_cast<char*>(bytes.data()), bytes.size()};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (folder_fd >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof(control);
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(c), &folder_fd, sizeof(int));
  }
  // A daemon that is gone needs no word.
  cache::RetryOnEintr([&] { return sendmsg(kWatchFd, &header, MSG_NOSIGNAL); });
}

[[noreturn]] void FailKeeper(absl::string_view text) {
  WatchMessage message;
  message.type = WatchMessage::Type::kSetUpFailed;
  message.text = std::string(text);
  Tell(message);
  _exit(kExitSetUpFailed);
}

absl::Status CallFailed(const char* call) {
  return absl::InternalError(absl::StrCat(call, ": ", strerror(errno)));
}

// Both ends to their places, everything else but stdin, stdout and stderr closed.
absl::Status PlaceHandOver(const HandOver& ends) {
  // Up first, so that no move hits the other.
  const cache::UniqueFd keeper(fcntl(ends.keeper.get(), F_DUPFD_CLOEXEC, kScratchFd));
  const cache::UniqueFd worker(fcntl(ends.worker.get(), F_DUPFD_CLOEXEC, kScratchFd));
  if (!keeper.valid() || !worker.valid() || dup3(keeper.get(), kWatchFd, O_CLOEXEC) < 0 ||
      dup3(worker.get(), kHandOverFd, O_CLOEXEC) < 0) {
    return CallFailed("dup");
  }
  if (close_range(STDERR_FILENO + 1, kWatchFd - 1, 0) != 0 ||
      close_range(kHandOverFd + 1, ~0u, 0) != 0) {
    return CallFailed("close_range");
  }
  return absl::OkStatus();
}

// What the process has mapped; the worker's will be the same.
absl::StatusOr<MemoryInUse> ReadMemoryInUse() {
  FILE* file = fopen("/proc/self/statm", "re");
  unsigned long long space = 0, data = 0;
  const bool read =
      file != nullptr && fscanf(file, "%llu %*u %*u %*u %*u %llu", &space, &data) == 2;
  if (file != nullptr) fclose(file);
  if (!read) return CallFailed("/proc/self/statm");
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return MemoryInUse{space * page, data * page};
}

// The walls that a parent builds. An output folder in memory comes to kOutFd.
absl::StatusOr<WorkerStart> Build(const Walls& walls, uint64_t output_bytes) {
  WorkerStart start;
  ASSIGN_OR_RETURN(start.memory, ReadMemoryInUse());
  {
    ASSIGN_OR_RETURN(const cache::UniqueFd folder, walls.MakeMemoryFolder(output_bytes));
    start.has_folder = folder.valid();
    if (folder.valid() && dup3(folder.get(), kOutFd, O_CLOEXEC) < 0) return CallFailed("dup");
  }
  RETURN_IF_ERROR(walls.EnterFileView());
  if (start.has_folder && fchdir(kOutFd) != 0) return CallFailed("fchdir");
  start.keeper = getpid();
  return start;
}

sigset_t WaitedSignals() {
  sigset_t waited;
  sigemptyset(&waited);
  for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT}) sigaddset(&waited, number);
  return waited;
}

// Waits for the worker; reaps whoever else ends. What would end an ordinary process, an operator's
// `kill`, is passed on: process 1 of a namespace is deaf to it.
WatchMessage AwaitWorker(pid_t worker) {
  const sigset_t waited = WaitedSignals();
  while (true) {
    int status = 0;
    rusage usage = {};
    const pid_t ended = wait4(-1, &status, WNOHANG, &usage);
    if (ended == worker) {
      WatchMessage message;
      message.type = WatchMessage::Type::kEnded;
      message.wait_status = status;
      message.cpu_microseconds =
          static_cast<uint64_t>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
          static_cast<uint64_t>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
      message.peak_memory_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
      return message;
    }
    if (ended > 0) continue;
    const int number = sigwaitinfo(&waited, nullptr);
    if (number > 0 && number != SIGCHLD) kill(worker, number);
  }
}

// As process 1 of a namespace: ends all others in it. True: there are none.
bool EndAllOthers() {
  kill(-1, SIGKILL);
  while (cache::RetryOnEintr([] { return waitpid(-1, nullptr, 0); }) > 0) {
  }
  return errno == ECHILD;
}

// Waits for the run, after which failures can be told.
void TakeRequest() {
  auto packet = ReceiveControl(kWatchFd);
  if (!packet.has_value() || packet->descriptors.size() != 1) _exit(0);  // there will be none
  if (dup3(packet->descriptors[0].get(), kWatchFd, O_CLOEXEC) < 0) _exit(kExitSetUpFailed);
}

}  // namespace

void RunKeeper(const Walls& walls, uint64_t output_bytes, HandOver ends,
               const WorkerFunctions& functions) {
  if (setpgid(0, 0) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || !walls.ParentAlive() ||
      !PlaceHandOver(ends).ok()) {
    _exit(kExitSetUpFailed);
  }
  OfferToOomKiller(kRunOomScore);
  ends.keeper.Release();  // closed by number
  ends.worker.Release();
  absl::StatusOr<WorkerStart> start = Build(walls, output_bytes);
  const sigset_t waited = WaitedSignals();
  if (start.ok() && sigprocmask(SIG_SETMASK, &waited, nullptr) != 0) start = CallFailed("sigmask");
  const pid_t worker = start.ok() ? CloneProcess(0) : -1;
  if (worker == 0) RunChild(walls, *start, functions);
  if (start.ok() && worker < 0) start = CallFailed("clone");
  // The worker's ends of its channels must be the only ones: their closing tells that it is gone.
  close_range(0, kOutFd - 1, 0);
  close_range(kOutFd + 1, kWatchFd - 1, 0);
  close(kHandOverFd);
  TakeRequest();
  if (!start.ok()) FailKeeper(start.status().message());
  Tell(WatchMessage(), start->has_folder ? kOutFd : -1);  // kSetUp
  close(kOutFd);
  WatchMessage ended = AwaitWorker(worker);
  ended.alone = walls.Has(Mechanism::kPidNamespace) && EndAllOthers();
  Tell(ended);
  _exit(0);
}

}  // namespace npuc::worker
