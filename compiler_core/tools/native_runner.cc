#include "compiler_core/tools/native_runner.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/mutex.h"
#include "compiler_core/base/native_wire.h"
#include "compiler_core/base/status.h"
#include "compiler_core/tools/files.h"

namespace npuc {
namespace {

using OutcomeKind = NativeOutcome::Kind;
using OutcomeStage = NativeOutcome::Stage;

// npuc-operator ends its child after 60 s, or twice that; this is for itself.
constexpr int64_t kWaitMs = 180000;
constexpr size_t kMaxOutcomeBytes = static_cast<size_t>(kMaxNativeBytes) + (size_t{1} << 21);
// Answers that are kept: nets repeat an operator with the same shapes and attributes.
constexpr size_t kMaxKeptBytes = size_t{1} << 26;

absl::Status Unavailable(absl::string_view call) {
  return absl::FailedPreconditionError(absl::StrCat(call, ": ", strerror(errno)));
}

template <typename F>
auto Retry(const F& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

int64_t NowMs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

// The program of this name in the folder of the running one.
absl::StatusOr<std::string> ProgramBeside(absl::string_view name) {
  char path[4096];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof(path));
  if (size <= 0 || size == sizeof(path)) return Unavailable("/proc/self/exe");
  const absl::string_view self(path, static_cast<size_t>(size));
  std::string program = absl::StrCat(self.substr(0, self.rfind('/') + 1), name);
  if (access(program.c_str(), X_OK) == 0) return program;
  return absl::FailedPreconditionError(
      absl::StrCat(Printable(program), ", the program with their sandbox, is not there"));
}

absl::StatusOr<int> OrderFile(absl::string_view order) {
  const int file = memfd_create("npuc-order", MFD_CLOEXEC);
  if (file < 0) return Unavailable("memfd_create");
  while (!order.empty()) {
    const ssize_t n = Retry([&] { return write(file, order.data(), order.size()); });
    if (n <= 0) {
      close(file);
      return Unavailable("write");
    }
    order.remove_prefix(static_cast<size_t>(n));
  }
  return file;
}

// Starts the program with these descriptors as standard input and output, and no environment.
absl::StatusOr<pid_t> Spawn(const std::string& program, int in, int out) {
  posix_spawn_file_actions_t actions;
  if (posix_spawn_file_actions_init(&actions) != 0) return Unavailable("posix_spawn");
  const absl::Cleanup destroy = [&] { posix_spawn_file_actions_destroy(&actions); };
  const bool is_set = posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO) == 0 &&
                      posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO) == 0;
  if (!is_set) return Unavailable("posix_spawn");
  std::string name = program;
  char* const arguments[] = {name.data(), nullptr};
  char* const environment[] = {nullptr};
  pid_t pid = 0;
  errno = posix_spawn(&pid, program.c_str(), &actions, nullptr, arguments, environment);
  if (errno != 0) return Unavailable(program);
  return pid;
}

// Everything that comes before the end of the pipe; an error where it is too much or too late.
absl::StatusOr<std::string> ReadToEnd(int fd) {
  const int64_t deadline = NowMs() + kWaitMs;
  std::string bytes;
  std::string piece(size_t{1} << 20, '\0');
  while (true) {
    pollfd wait = {fd, POLLIN, 0};
    const int64_t left = deadline - NowMs();
    const int ready = left <= 0 ? 0 : Retry([&] { return poll(&wait, 1, static_cast<int>(left)); });
    if (ready <= 0) return absl::FailedPreconditionError("npuc-operator does not answer");
    const ssize_t n = Retry([&] { return read(fd, piece.data(), piece.size()); });
    if (n < 0) return Unavailable("read");
    if (n == 0) return bytes;
    bytes.append(piece.data(), static_cast<size_t>(n));
    if (bytes.size() > kMaxOutcomeBytes) {
      return absl::FailedPreconditionError("npuc-operator answers too much");
    }
  }
}

// One process with one order.
absl::StatusOr<NativeOutcome> RunOrder(const std::string& program, absl::string_view order) {
  ASSIGN_OR_RETURN(const int file, OrderFile(order));
  const absl::Cleanup close_file = [file] { close(file); };
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Unavailable("pipe");
  const absl::Cleanup close_from = [from = ends[0]] { close(from); };
  const absl::StatusOr<pid_t> pid = Spawn(program, file, ends[1]);
  close(ends[1]);
  RETURN_IF_ERROR(pid.status());
  absl::StatusOr<std::string> bytes = ReadToEnd(ends[0]);
  if (!bytes.ok()) kill(*pid, SIGKILL);
  int status = 0;
  Retry([&] { return waitpid(*pid, &status, 0); });
  RETURN_IF_ERROR(bytes.status());
  absl::StatusOr<NativeOutcome> outcome = DecodeNativeOutcome(*std::move(bytes));
  if (outcome.ok()) return outcome;
  return absl::FailedPreconditionError("npuc-operator ended without an outcome");
}

absl::string_view StageText(OutcomeStage stage) {
  switch (stage) {
    case OutcomeStage::kLoad:
      return "while it was loaded";
    case OutcomeStage::kShapes:
      return "in npuc_operator_shapes";
    case OutcomeStage::kCompute:
      return "in npuc_operator_compute";
    case OutcomeStage::kEnd:
      return "behind its last call";
  }
  return "";
}

// The death of the library's process, as a clause whose subject is the library.
absl::Status SignalStatus(int signal, OutcomeStage stage) {
  const absl::string_view where = StageText(stage);
  if (signal == SIGXCPU) {
    return absl::InvalidArgumentError(
        absl::StrCat("it took more than its 10 s of processor time ", where));
  }
  if (signal == SIGSYS) {
    return absl::InvalidArgumentError(
        absl::StrCat("it tried what its sandbox forbids ", where,
                     ": to write a file, to use the network, or to start a process or a thread"));
  }
  const char* const name = sigabbrev_np(signal);
  const absl::string_view hint =
      signal == SIGSEGV || signal == SIGBUS
          ? "; it used memory that is not its own, perhaps beyond the end of a result"
          : "";
  return absl::InvalidArgumentError(absl::StrCat("it ended by signal ", signal, " (SIG",
                                                 name == nullptr ? "?" : name, ") ", where, hint));
}

// OK where there is an answer to decode.
absl::Status StatusOf(const NativeOutcome& outcome) {
  switch (outcome.kind) {
    case OutcomeKind::kAnswered:
      return absl::OkStatus();
    case OutcomeKind::kSignal:
      return SignalStatus(outcome.detail, outcome.stage);
    case OutcomeKind::kExit:
      return absl::InvalidArgumentError(absl::StrCat(
          "it ended its process with exit code ", outcome.detail, " ", StageText(outcome.stage)));
    case OutcomeKind::kTooLong:
      return absl::InvalidArgumentError(
          absl::StrCat("it took more than its 60 s by the clock ", StageText(outcome.stage)));
    case OutcomeKind::kTooMuch:
      return absl::InvalidArgumentError("it gives more bytes of results than are allowed");
    case OutcomeKind::kNoWalls:
      return absl::FailedPreconditionError(
          absl::StrCat("its sandbox cannot be built: ", Printable(outcome.payload, 400)));
  }
  return absl::InternalError("an outcome of no kind");
}

class RunnerLibrary : public NativeLibrary {
 public:
  explicit RunnerLibrary(std::string bytes) : bytes_(std::move(bytes)) {}

  absl::StatusOr<std::vector<std::vector<NativeTensor>>> Run(
      absl::Span<const NativeCall> calls) const override {
    const std::string order = EncodeNativeOrder(bytes_, calls);
    const std::string key = Sha256Hex(order);
    {
      const MutexLock lock(mutex_);
      const auto kept = kept_.find(key);
      if (kept != kept_.end()) return ResultsOf(kept->second, calls);
    }
    ASSIGN_OR_RETURN(const std::string program, ProgramBeside("npuc-operator"));
    ASSIGN_OR_RETURN(std::string answer, AnswerOf(program, order));
    ASSIGN_OR_RETURN(const std::string again, AnswerOf(program, order));
    if (answer != again) {
      return absl::InvalidArgumentError(
          "it gives other results in another process for the same operands");
    }
    auto results = ResultsOf(answer, calls);
    const MutexLock lock(mutex_);
    if (results.ok() && kept_bytes_ + answer.size() <= kMaxKeptBytes) {
      kept_bytes_ += answer.size();
      kept_.emplace(key, std::move(answer));
    }
    return results;
  }

 private:
  static absl::StatusOr<std::string> AnswerOf(const std::string& program,
                                              const std::string& order) {
    ASSIGN_OR_RETURN(NativeOutcome outcome, RunOrder(program, order));
    RETURN_IF_ERROR(StatusOf(outcome));
    return std::move(outcome.payload);
  }

  static absl::StatusOr<std::vector<std::vector<NativeTensor>>> ResultsOf(
      absl::string_view answer, absl::Span<const NativeCall> calls) {
    ASSIGN_OR_RETURN(NativeAnswer decoded, DecodeNativeAnswer(answer, calls));
    if (decoded.problem.empty()) return std::move(decoded.results);
    return absl::InvalidArgumentError(Printable(decoded.problem, 1000));
  }

  const std::string bytes_;  // of the file
  mutable Mutex mutex_;
  mutable std::map<std::string, std::string> kept_ NPUC_GUARDED_BY(mutex_);  // by order
  mutable size_t kept_bytes_ NPUC_GUARDED_BY(mutex_) = 0;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const NativeLibrary>> NativeRunner::Open(
    absl::string_view plugin_file, absl::string_view path) {
  const std::string beside = ResolveBeside(config_path_, std::string(plugin_file));
  const std::string from = ResolveBeside(beside, std::string(path));
  ASSIGN_OR_RETURN(std::string bytes, ReadFile(from, static_cast<int64_t>(kMaxNativeLibraryBytes)));
  constexpr absl::string_view kElf = "\177ELF";
  if (!absl::StartsWith(bytes, kElf)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", Printable(from), "' is no shared library: it does not begin as ELF"));
  }
  return std::make_shared<RunnerLibrary>(std::move(bytes));
}

}  // namespace npuc
