#include "server/worker/keeper.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/worker/child.h"
#include "server/worker/confine.h"

namespace npuc {
namespace {

constexpr int kScratchFd = 100;  // all are moved above this first, so that no move hits another
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
  RetryOnEintr([&] { return sendmsg(kWatchFd, &header, MSG_NOSIGNAL); });
}

[[noreturn]] void Fail(absl::string_view text) {
  Tell({WatchMessage::Type::kSetUpFailed, 0, std::string(text)});
  _exit(kExitSetUpFailed);
}

[[noreturn]] void FailCall(const char* call) { Fail(absl::StrCat(call, ": ", strerror(errno))); }

void Check(const absl::Status& status) {
  if (!status.ok()) Fail(status.message());
}

void MoveFd(UniqueFd& from, int to) {
  if (dup3(from.get(), to, O_CLOEXEC) < 0) FailCall("dup");
  from.Release();  // closed by number below
}

void TakeDescriptors(RunDescriptors descriptors) {
  // Everything up above the scratch line, then down to its place: no move overwrites another's.
  const auto up = [](UniqueFd& fd) {
    const int high = fcntl(fd.get(), F_DUPFD_CLOEXEC, kScratchFd);
    if (high < 0) FailCall("dup");
    fd = UniqueFd(high);
  };
  RunDescriptors& d = descriptors;
  for (UniqueFd* fd : {&d.watch, &d.events, &d.print, &d.out, &d.job}) up(*fd);
  for (UniqueFd& input : d.inputs) up(input);
  MoveFd(d.watch, kWatchFd);  // the first, so that a failure can be told
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null < 0) FailCall("open /dev/null");
  if (dup2(null, STDIN_FILENO) < 0 || dup2(d.print.get(), STDOUT_FILENO) < 0 ||
      dup2(d.print.get(), STDERR_FILENO) < 0) {
    FailCall("dup");
  }
  MoveFd(d.events, kEventsFd);
  MoveFd(d.out, kOutFd);
  MoveFd(d.job, kJobFd);
  int next = kFirstInputFd;
  for (UniqueFd& input : d.inputs) MoveFd(input, next++);
  d.print.Release();
  if (next < kWatchFd && close_range(static_cast<unsigned>(next), kWatchFd - 1, 0) != 0) {
    FailCall("close_range");
  }
  if (close_range(kWatchFd + 1, ~0u, 0) != 0) FailCall("close_range");
}

// What the process has mapped; the worker's will be the same.
MemoryInUse ReadMemoryInUse() {
  FILE* file = fopen("/proc/self/statm", "re");
  unsigned long long space = 0, data = 0;
  if (file == nullptr || fscanf(file, "%llu %*u %*u %*u %*u %llu", &space, &data) != 2) {
    FailCall("/proc/self/statm");
  }
  fclose(file);
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return {space * page, data * page};
}

sigset_t WaitedSignals() {
  sigset_t waited;
  sigemptyset(&waited);
  for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT}) sigaddset(&waited, number);
  return waited;
}

// Waits for the worker; reaps whoever else ends. What would end an ordinary process, an operator's
// `kill`, is passed on: process 1 of a namespace is deaf to it.
int AwaitWorker(pid_t worker) {
  const sigset_t waited = WaitedSignals();
  while (true) {
    int status = 0;
    const pid_t ended = waitpid(-1, &status, WNOHANG);
    if (ended == worker) return status;
    if (ended > 0) continue;
    const int number = sigwaitinfo(&waited, nullptr);
    if (number > 0 && number != SIGCHLD) kill(worker, number);
  }
}

}  // namespace

void RunKeeper(const Walls& walls, const ControlMessage& spawn, RunDescriptors descriptors,
               const WorkerFunctions& functions) {
  uint64_t input_bytes = 0;
  for (const UniqueFd& input : descriptors.inputs) {
    input_bytes += FileSize(input.get(), "input").value_or(0);
  }
  if (setsid() < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || !walls.ParentAlive()) {
    _exit(kExitSetUpFailed);
  }
  TakeDescriptors(std::move(descriptors));
  const MemoryInUse memory = ReadMemoryInUse();
  UniqueFd folder(kOutFd);
  Check(walls.TakeOutputFolder(folder, spawn.output_bytes));
  const bool in_memory = folder.get() != kOutFd;
  if (in_memory && dup3(folder.get(), kOutFd, O_CLOEXEC) < 0) FailCall("dup");
  if (!in_memory) folder.Release();
  folder.Reset();
  Check(walls.EnterFileView());
  if (fchdir(kOutFd) != 0) FailCall("fchdir");
  Tell({WatchMessage::Type::kSetUp, 0, ""}, in_memory ? kOutFd : -1);

  const sigset_t waited = WaitedSignals();
  if (sigprocmask(SIG_SETMASK, &waited, nullptr) != 0) FailCall("sigprocmask");
  const pid_t keeper = getpid();
  const pid_t worker = CloneProcess(0);
  if (worker < 0) FailCall("clone");
  if (worker == 0) RunChild(walls, keeper, spawn, memory, input_bytes, functions);
  // The worker's ends of its channels must be the only ones: their closing tells that it is gone.
  if (close_range(0, kWatchFd - 1, 0) != 0) FailCall("close_range");
  Tell({WatchMessage::Type::kEnded, AwaitWorker(worker), ""});
  _exit(0);
}

}  // namespace npuc
