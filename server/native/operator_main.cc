// npuc-operator, which npuc starts where a file of PLUGINS names a library: reads an order from
// standard input, loads the library in a child behind walls, and writes the outcome to standard
// output (compiler_core/base/native_wire.h). This process itself never runs code of the library.
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cache/posix.h"
#include "compiler_core/base/native_wire.h"
#include "compiler_core/base/sanitized.h"
#include "compiler_core/base/status.h"
#include "server/native/library_calls.h"
#include "server/worker/confine.h"
#include "server/worker/walls.h"

namespace npuc::native {
namespace {

using Kind = NativeOutcome::Kind;
using Stage = NativeOutcome::Stage;
using worker::Mechanism;

// Beyond what this process has mapped; a sanitizer maps terabytes and has no limit.
[[maybe_unused]] constexpr uint64_t kMemoryBytes = uint64_t{1} << 30;
constexpr uint64_t kCpuSeconds = 10;
constexpr int kWallMs = 60000;
constexpr uint64_t kMaxOpenFiles = 32;
constexpr uint64_t kMaxFileBytes = uint64_t{1} << 16;
constexpr char kFileName[] = "operator.so";
constexpr int kAnswerFd = 3;
constexpr int kLibraryFd = 4;
constexpr int kExitNoWalls = 70;
// Beside the tensors of an answer, their shapes.
constexpr size_t kMaxAnswerBytes = static_cast<size_t>(kMaxNativeBytes) + (size_t{1} << 20);

// The child's stage, seen by this process, too: 0 until its walls stand, then 1 + a Stage.
struct Progress {
  volatile uint32_t value;
};

int64_t NowMs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

absl::Status Failed(absl::string_view call) {
  return cache::ErrnoStatus(errno, call, "npuc-operator");
}

// The address space of this process, in bytes; 0 where there is no /proc.
uint64_t MappedBytes() {
  const auto fd = cache::OpenFile("/proc/self/statm", O_RDONLY);
  if (!fd.ok()) return 0;
  const auto text = cache::ReadUpToAt(fd->get(), 0, 64, "statm");
  uint64_t pages = 0;
  if (!text.ok() || !absl::SimpleAtoi(text->substr(0, text->find(' ')), &pages)) return 0;
  return pages * 4096;
}

// --- The child -----------------------------------------------------------------------------------

// The answer's pipe and the library, where it has a descriptor, at fixed numbers; nothing else.
absl::Status TakeDescriptors(int answer, int library) {
  const int null = open("/dev/null", O_RDWR);
  if (null < 0) return Failed("open /dev/null");
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (dup2(null, fd) < 0) return Failed("dup2");
  }
  constexpr int kAbove = 16;
  const int high_answer = fcntl(answer, F_DUPFD, kAbove);
  const int high_library = library < 0 ? -1 : fcntl(library, F_DUPFD, kAbove);
  if (high_answer < 0 || dup2(high_answer, kAnswerFd) < 0) return Failed("dup2");
  if (library >= 0 && (high_library < 0 || dup2(high_library, kLibraryFd) < 0)) {
    return Failed("dup2");
  }
  const int first_free = library < 0 ? kLibraryFd : kLibraryFd + 1;
  if (close_range(static_cast<unsigned>(first_free), ~0u, 0) != 0) return Failed("close_range");
  return absl::OkStatus();
}

absl::Status SetLimits(uint64_t mapped_bytes) {
  using worker::LimitResource;
#ifndef NPUC_SANITIZED
  RETURN_IF_ERROR(
      LimitResource(RLIMIT_AS, mapped_bytes + kMemoryBytes, mapped_bytes + kMemoryBytes));
#endif
  RETURN_IF_ERROR(LimitResource(RLIMIT_CPU, kCpuSeconds, kCpuSeconds + 1));
  RETURN_IF_ERROR(LimitResource(RLIMIT_NOFILE, kMaxOpenFiles, kMaxOpenFiles));
  // Room for the seccomp program, which libseccomp writes into a memory file.
  RETURN_IF_ERROR(LimitResource(RLIMIT_FSIZE, kMaxFileBytes, kMaxFileBytes));
  for (const auto none : {RLIMIT_CORE, RLIMIT_MEMLOCK, RLIMIT_MSGQUEUE, RLIMIT_NPROC}) {
    RETURN_IF_ERROR(LimitResource(none, 0, 0));
  }
  return absl::OkStatus();
}

// Builds the walls and gives the path of the library within them. With a file view it is the one
// file of a file system in memory; else it is reached through its descriptor, and landlock hides
// all other files.
absl::StatusOr<std::string> ShutIn(const worker::Walls& walls, const std::string& library,
                                   pid_t parent, uint64_t mapped_bytes) {
  std::string path = absl::StrCat("/proc/self/fd/", kLibraryFd);
  cache::UniqueFd folder;
  if (walls.Has(Mechanism::kFileView)) {
    ASSIGN_OR_RETURN(folder, worker::MakeFolderOf(kFileName, library));
    RETURN_IF_ERROR(walls.EnterFileView());
    if (fchdir(folder.get()) != 0) return Failed("fchdir");
    path = absl::StrCat("./", kFileName);
  } else {
    folder = cache::UniqueFd(open("/proc/self/fdinfo", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder.valid()) return Failed("open /proc/self/fdinfo");
  }
  RETURN_IF_ERROR(SetLimits(mapped_bytes));
  RETURN_IF_ERROR(walls.GiveUpRights(parent));
  RETURN_IF_ERROR(walls.ShutIn(folder.get()));
  return path;
}

[[noreturn]] void WriteAndEnd(absl::string_view bytes, int code) {
  while (!bytes.empty()) {
    const ssize_t n =
        cache::RetryOnEintr([&] { return write(kAnswerFd, bytes.data(), bytes.size()); });
    if (n <= 0) break;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  _exit(code);
}

[[noreturn]] void RunChild(const worker::Walls& walls, const NativeOrder& order, pid_t parent,
                           int answer, int library, Progress* progress) {
  const uint64_t mapped_bytes = MappedBytes();
  const absl::Status taken = TakeDescriptors(answer, library);
  if (!taken.ok()) _exit(kExitNoWalls);
  const absl::StatusOr<std::string> path = ShutIn(walls, order.library, parent, mapped_bytes);
  if (!path.ok()) WriteAndEnd(path.status().message(), kExitNoWalls);
  const NativeAnswer result = CallLibrary(*path, order.calls, [progress](Stage stage) {
    progress->value = 1 + static_cast<uint32_t>(stage);
  });
  WriteAndEnd(EncodeNativeAnswer(result), 0);
}

// --- The parent ----------------------------------------------------------------------------------

// Reads the child's pipe to its end, and ends the child where that takes too long or too much.
void Read(int fd, pid_t child, NativeOutcome& outcome) {
  const int64_t deadline = NowMs() + kWallMs;
  constexpr size_t kPieceBytes = size_t{1} << 20;
  std::string piece(kPieceBytes, '\0');
  while (true) {
    const int64_t left = deadline - NowMs();
    pollfd wait = {fd, POLLIN, 0};
    const int ready = left <= 0 ? 0 : poll(&wait, 1, static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      outcome.kind = Kind::kTooLong;
      break;
    }
    const ssize_t n = cache::RetryOnEintr([&] { return read(fd, piece.data(), piece.size()); });
    if (n <= 0) return;
    if (outcome.payload.size() + static_cast<size_t>(n) > kMaxAnswerBytes) {
      outcome.kind = Kind::kTooMuch;
      break;
    }
    outcome.payload.append(piece.data(), static_cast<size_t>(n));
  }
  kill(child, SIGKILL);
  outcome.payload.clear();
}

// A child that has closed its end of the pipe and goes on.
int WaitFor(pid_t child, NativeOutcome& outcome) {
  int status = 0;
  const int64_t deadline = NowMs() + kWallMs;
  while (true) {
    const pid_t done = cache::RetryOnEintr(
        [&] { return waitpid(child, &status, NowMs() < deadline ? WNOHANG : 0); });
    if (done == child) return status;
    if (NowMs() >= deadline) {
      outcome.kind = Kind::kTooLong;
      kill(child, SIGKILL);
      continue;
    }
    constexpr timespec kPause = {0, 1000000};
    nanosleep(&kPause, nullptr);
  }
}

void Classify(int status, uint32_t progress, NativeOutcome& outcome) {
  if (progress > 0) {
    outcome.stage = static_cast<Stage>(std::min(progress - 1, static_cast<uint32_t>(Stage::kEnd)));
  }
  if (outcome.kind != Kind::kAnswered) return;
  const bool has_exited = WIFEXITED(status);
  if (has_exited && progress == 0) {
    outcome.kind = Kind::kNoWalls;
  } else if (!has_exited) {
    outcome.kind = Kind::kSignal;
    outcome.detail = WTERMSIG(status);
  } else if (WEXITSTATUS(status) != 0 || outcome.stage != Stage::kEnd) {
    outcome.kind = Kind::kExit;
    outcome.detail = WEXITSTATUS(status);
  }
}

absl::StatusOr<cache::UniqueFd> MemoryFile(absl::string_view bytes) {
  cache::UniqueFd file(memfd_create("npuc-operator", MFD_CLOEXEC));
  if (!file.valid()) return Failed("memfd_create");
  RETURN_IF_ERROR(cache::WriteAllAt(file.get(), bytes, 0, "library"));
  return file;
}

absl::StatusOr<NativeOutcome> RunOrder(const NativeOrder& order) {
  // Without a process namespace: seccomp keeps the child from naming other processes, and this
  // process waits for it alone.
  const worker::Walls walls(
      Bit(Mechanism::kPidNamespace) | Bit(Mechanism::kIpcNamespace) | Bit(Mechanism::kOutputFolder),
      worker::FilterFor::kLibrary);
  const bool sees_no_files = walls.Has(Mechanism::kFileView) || walls.Has(Mechanism::kLandlock);
  if (!walls.Has(Mechanism::kSystemCalls) || !sees_no_files) {
    return absl::FailedPreconditionError(
        absl::StrCat("this host must have seccomp, and a mount namespace or landlock; it has: ",
                     walls.report().NamesInForce()));
  }
  cache::UniqueFd library;
  if (!walls.Has(Mechanism::kFileView)) {
    ASSIGN_OR_RETURN(library, MemoryFile(order.library));
  }
  void* const page =
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return Failed("mmap");
  auto* const progress = static_cast<Progress*>(page);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Failed("pipe");
  const cache::UniqueFd from(ends[0]);
  cache::UniqueFd to(ends[1]);
  const pid_t parent = getpid();
  const pid_t child = worker::CloneProcess(walls.Has(Mechanism::kFileView) ? CLONE_NEWNS : 0);
  if (child < 0) return Failed("clone");
  if (child == 0) RunChild(walls, order, parent, to.get(), library.get(), progress);
  to.Reset();
  NativeOutcome outcome;
  Read(from.get(), child, outcome);
  const int status = WaitFor(child, outcome);
  Classify(status, progress->value, outcome);
  return outcome;
}

int Main() {
  // With npuc, this process ends; with this process, its child does.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  NativeOutcome outcome;
  const auto size = cache::FileSize(STDIN_FILENO, "order");
  const auto bytes = size.ok() ? cache::ReadUpToAt(STDIN_FILENO, 0, *size, "order")
                               : absl::StatusOr<std::string>(size.status());
  absl::StatusOr<NativeOrder> order =
      bytes.ok() ? DecodeNativeOrder(*bytes) : absl::StatusOr<NativeOrder>(bytes.status());
  const absl::StatusOr<NativeOutcome> run =
      order.ok() ? RunOrder(*order) : absl::StatusOr<NativeOutcome>(order.status());
  if (run.ok()) {
    outcome = *run;
  } else {
    outcome = {Kind::kNoWalls, 0, Stage::kLoad, std::string(run.status().message())};
  }
  absl::string_view left;
  const std::string encoded = EncodeNativeOutcome(outcome);
  for (left = encoded; !left.empty();) {
    const ssize_t n =
        cache::RetryOnEintr([&] { return write(STDOUT_FILENO, left.data(), left.size()); });
    if (n <= 0) return 1;
    left.remove_prefix(static_cast<size_t>(n));
  }
  return 0;
}

}  // namespace
}  // namespace npuc::native

int main() { return npuc::native::Main(); }
