#include "server/worker/run.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "cache/keys.h"
#include "compiler_core/base/artifact_name.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/status.h"
#include "compiler_core/config/config.h"
#include "server/worker/packet.h"

namespace npuc::worker {
namespace {

constexpr size_t kMaxArtifacts = 64;
constexpr uint64_t kMaxStages = 100000;
constexpr size_t kPrintedTailBytes = 8 << 10;
constexpr size_t kMaxRunIdBytes = 128;

std::string SignalText(int number) {
  const char* name = sigabbrev_np(number);
  return name == nullptr ? absl::StrCat("signal ", number)
                         : absl::StrCat("signal ", number, " (SIG", name, ")");
}

absl::Status CheckJob(const WorkerJob& job) {
  if (job.run_id.empty() || job.run_id.size() > kMaxRunIdBytes) {
    return absl::InvalidArgumentError("worker: a run id has 1 to 128 bytes");
  }
  if (job.job_folder.empty() || job.job_folder[0] != '/') {
    return absl::InvalidArgumentError(absl::StrCat(
        "worker: job folder '", Printable(job.job_folder), "' is not an absolute path"));
  }
  if (job.config_text.size() > kMaxConfigBytes || job.config_name.size() > kMaxTextBytes) {
    return absl::InvalidArgumentError(absl::StrCat("worker: config of ", job.config_text.size(),
                                                   " bytes, at most ", kMaxConfigBytes));
  }
  if (job.inputs.size() > kMaxInputs) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker: ", job.inputs.size(), " inputs, at most ", kMaxInputs));
  }
  if (job.limits.memory_bytes == 0 || job.limits.cpu_seconds == 0 ||
      job.limits.wall <= absl::ZeroDuration() || job.limits.output_bytes == 0) {
    return absl::InvalidArgumentError("worker: a limit is 0");
  }
  for (const auto& [file, path] : job.inputs) {
    if (file.role.empty() || file.role.size() > kMaxTextBytes || file.name.size() > kMaxTextBytes ||
        !cache::IsValidSha256(file.sha256)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "worker: input '", Printable(file.role), "': bad role, name or SHA-256 (64 hex digits)"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<cache::UniqueFd> OpenInput(const WorkerInput& input) {
  // Non-blocking, or a named pipe would hold us here for ever.
  ASSIGN_OR_RETURN(cache::UniqueFd fd,
                   cache::OpenFile(input.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return cache::ErrnoStatus(errno, "cannot stat", input.path);
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker: input '", Printable(input.path), "' is not a regular file"));
  }
  return fd;
}

absl::StatusOr<cache::UniqueFd> WriteOrder(const WorkerJob& job) {
  WorkOrder order{.config_text = job.config_text,
                  .config_name = job.config_name,
                  .timestamp_seconds = job.timestamp_seconds,
                  .inputs = {},
                  .inspection = job.inspection};
  for (const WorkerInput& input : job.inputs) order.inputs.push_back(input.file);
  cache::UniqueFd fd(memfd_create("npuc-job", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return cache::ErrnoStatus(errno, "cannot make", "job record");
  RETURN_IF_ERROR(cache::WriteAllAt(fd.get(), EncodeOrder(order), 0, "job record"));
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return cache::ErrnoStatus(errno, "cannot seal", "job record");
  }
  return fd;
}

}  // namespace

std::string EndText(int wait_status) {
  return WIFSIGNALED(wait_status) ? SignalText(WTERMSIG(wait_status))
                                  : absl::StrCat("exit code ", WEXITSTATUS(wait_status));
}

std::vector<int> RunChannels::ForChild() const {
  std::vector<int> fds = {child_events.get(), child_print.get(),
                          child_watch.get(),  out.valid() ? out.get() : job.get(),
                          job.get(),          child_bell.get()};
  for (const cache::UniqueFd& input : inputs) fds.push_back(input.get());
  return fds;
}

void RunChannels::CloseChildEnds() {
  child_events.Reset();
  child_print.Reset();
  child_watch.Reset();
  child_bell.Reset();
  job.Reset();
  inputs.clear();
}

absl::StatusOr<RunChannels> OpenChannels(const WorkerJob& job, bool in_memory) {
  RETURN_IF_ERROR(CheckJob(job));
  RunChannels channels;
  for (const WorkerInput& input : job.inputs) {
    ASSIGN_OR_RETURN(cache::UniqueFd fd, OpenInput(input));
    channels.inputs.push_back(std::move(fd));
  }
  ASSIGN_OR_RETURN(channels.job, WriteOrder(job));
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    return cache::ErrnoStatus(errno, "cannot make", "event channel");
  }
  channels.events = cache::UniqueFd(pair[0]);
  channels.child_events = cache::UniqueFd(pair[1]);
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
    return cache::ErrnoStatus(errno, "cannot make", "watch channel");
  }
  channels.watch = cache::UniqueFd(pair[0]);
  channels.child_watch = cache::UniqueFd(pair[1]);
  // One way: worker and keeper have nothing to read.
  shutdown(channels.events.get(), SHUT_WR);
  shutdown(channels.watch.get(), SHUT_WR);
  // Not an eventfd: both would have one file, and the worker could make the daemon's reads block.
  if (pipe2(pair, O_CLOEXEC) != 0) return cache::ErrnoStatus(errno, "cannot make", "bell");
  channels.bell = cache::UniqueFd(pair[0]);
  channels.child_bell = cache::UniqueFd(pair[1]);
  if (pipe2(pair, O_CLOEXEC) != 0) return cache::ErrnoStatus(errno, "cannot make", "print pipe");
  channels.print = cache::UniqueFd(pair[0]);
  channels.child_print = cache::UniqueFd(pair[1]);
  for (const int fd :
       {channels.events.get(), channels.print.get(), channels.watch.get(), channels.bell.get()}) {
    if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
      return cache::ErrnoStatus(errno, "cannot set", "channel");
  }
  if (in_memory) return channels;
  if (mkdir(job.job_folder.c_str(), 0700) != 0) {
    absl::Status status = cache::ErrnoStatus(errno, "cannot make folder", job.job_folder);
    return absl::IsAlreadyExists(status) ? status : absl::UnavailableError(status.message());
  }
  ASSIGN_OR_RETURN(channels.out,
                   cache::OpenFile(job.job_folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  return channels;
}

WatchRead ReceiveWatch(int socket, WatchMessage& message, cache::UniqueFd& folder) {
  char bytes[kMaxWatchBytes];
  std::vector<cache::UniqueFd> descriptors;
  const ssize_t n = ReceivePacket(socket, absl::MakeSpan(bytes), MSG_DONTWAIT, descriptors);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return WatchRead::kNothing;
  if (n <= 0) return WatchRead::kEnd;
  if (!descriptors.empty()) folder = std::move(descriptors.front());
  auto decoded = DecodeWatch(absl::string_view(bytes, static_cast<size_t>(n)));
  if (!decoded.ok()) return WatchRead::kEnd;
  message = *std::move(decoded);
  return WatchRead::kMessage;
}

// --- What comes in -------------------------------------------------------------------------------

void RunReport::Log(absl::string_view line) {
  if (log_bytes_ + line.size() + 1 > job_.limits.log_bytes) {
    log_bytes_ = job_.limits.log_bytes;  // no shorter line may follow a dropped one
    outcome_.dropped_log_bytes += line.size();
    return;
  }
  log_bytes_ += line.size() + 1;
  events_.OnLog(line);
}

absl::Status RunReport::OnEventBytes(absl::string_view bytes) {
  decoder_.Feed(bytes);
  while (true) {
    WorkerEvent event;
    ASSIGN_OR_RETURN(const bool more, decoder_.Next(event));
    if (!more) return absl::OkStatus();
    RETURN_IF_ERROR(OnEvent(event));
  }
}

absl::Status RunReport::OnEvent(WorkerEvent& event) {
  if (result_seen_) return absl::InvalidArgumentError("worker protocol: event after the result");
  if (begun_ == (event.type == WorkerEvent::Type::kBegin)) {
    return absl::InvalidArgumentError("worker protocol: begin missing or repeated");
  }
  switch (event.type) {
    case WorkerEvent::Type::kBegin:
      begun_ = true;
      break;
    case WorkerEvent::Type::kLog:
      Log(event.text);
      break;
    case WorkerEvent::Type::kStage:
      if (++stages_ > kMaxStages) {
        return absl::InvalidArgumentError("worker protocol: too many stages");
      }
      fraction_ = std::clamp(event.fraction, fraction_, 1.0);
      outcome_.last_stage = event.text;
      events_.OnStage(event.text, fraction_);
      break;
    case WorkerEvent::Type::kDiagnostic:
      if (outcome_.diagnostics.size() >= Diagnostics::kMaxDiagnostics) {
        ++outcome_.dropped_diagnostics;
        break;
      }
      events_.OnDiagnostic(event.diagnostic);
      outcome_.diagnostics.push_back(std::move(event.diagnostic));
      break;
    case WorkerEvent::Type::kArtifact:
      if (outcome_.artifacts.size() >= kMaxArtifacts || !IsValidArtifactName(event.text)) {
        return absl::InvalidArgumentError("worker protocol: bad artifact");
      }
      outcome_.artifacts.push_back({event.text, nullptr});
      artifact_bytes_.push_back(event.size_bytes);
      break;
    case WorkerEvent::Type::kResult:
      result_ = event;
      result_seen_ = true;
      break;
  }
  return absl::OkStatus();
}

void RunReport::OnWatch(const WatchMessage& message) {
  if (message.type == WatchMessage::Type::kSetUpFailed) not_set_up_ = message.text;
  if (message.type != WatchMessage::Type::kEnded) return;
  worker_status_ = message.wait_status;
  if (!message.alone) return;
  end_by_keeper_ = RunEnd{false, message.wait_status,
                          absl::Microseconds(static_cast<int64_t>(message.cpu_microseconds)),
                          message.peak_memory_bytes};
}

void RunReport::OnPrintBytes(absl::string_view bytes) {
  printed_.append(bytes.data(), bytes.size());
  FlushPrinted(false);
}

void RunReport::FlushPrinted(bool all) {
  size_t begin = 0;
  while (begin < printed_.size()) {
    size_t end = printed_.find('\n', begin);
    size_t next = end + 1;
    if (end == std::string::npos) {
      if (!all && printed_.size() - begin < kMaxWorkerLineBytes) break;
      end = next = std::min(printed_.size(), begin + kMaxWorkerLineBytes);
    }
    const std::string line =
        Printable(absl::string_view(printed_).substr(begin, end - begin), kMaxWorkerLineBytes);
    begin = next;
    std::string& tail = outcome_.printed_tail;
    absl::StrAppend(&tail, line, "\n");
    if (tail.size() > kPrintedTailBytes) tail.erase(0, tail.size() - kPrintedTailBytes);
    Log(absl::StrCat("printed: ", line));
  }
  printed_.erase(0, begin);
}

void RunReport::OnEndOfBytes() { FlushPrinted(true); }

bool RunReport::OutputWithinLimits(int out_fd) const {
  // A descriptor of its own: reading moves the offset, and closedir closes.
  const int fd = openat(out_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* folder = fd < 0 ? nullptr : fdopendir(fd);
  if (folder == nullptr) {
    if (fd >= 0) close(fd);
    return false;  // it took our own rights away
  }
  uint64_t total = 0;
  size_t files = 0;
  bool regular = true;
  while (const dirent* entry = readdir(folder)) {
    const absl::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    struct stat info;
    if (fstatat(out_fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    regular = regular && S_ISREG(info.st_mode);
    total += std::max<uint64_t>(static_cast<uint64_t>(info.st_size),
                                static_cast<uint64_t>(info.st_blocks) * 512);
    if (++files > kMaxArtifacts) break;
  }
  closedir(folder);
  // Blocks are counted whole, so allow each file its last one.
  return regular && files <= kMaxArtifacts && total <= job_.limits.output_bytes + files * 65536;
}

// --- How it ended --------------------------------------------------------------------------------

void RunReport::SetLimit(WorkerOutcome::Limit limit, std::string text) {
  outcome_.kind = WorkerOutcome::Kind::kLimit;
  outcome_.limit = limit;
  outcome_.code = absl::StatusCode::kResourceExhausted;
  outcome_.text = std::move(text);
}

void RunReport::SetCrash(absl::string_view text) {
  outcome_.kind = WorkerOutcome::Kind::kCrashed;
  outcome_.code = absl::StatusCode::kInternal;
  outcome_.text = absl::StrCat("worker crashed: ", text);
  if (!outcome_.last_stage.empty()) {
    absl::StrAppend(&outcome_.text, " in stage '", outcome_.last_stage, "'");
  }
}

void RunReport::ClassifySignal(const RunEnd& end) {
  const int number = WTERMSIG(end.wait_status);
  outcome_.signal = number;
  // A second of grace lies between SIGXCPU and SIGKILL, see child.cc.
  const bool cpu_used_up = end.cpu_time >= absl::Seconds(job_.limits.cpu_seconds);
  if (number == SIGXCPU || (number == SIGKILL && cpu_used_up)) {
    SetLimit(WorkerOutcome::Limit::kCpu,
             absl::StrCat("CPU time limit of ", job_.limits.cpu_seconds, " s reached"));
  } else if (number == SIGXFSZ) {
    SetLimit(WorkerOutcome::Limit::kOutput,
             absl::StrCat("output limit of ", job_.limits.output_bytes, " bytes reached"));
  } else if (number == SIGKILL || number == SIGTERM || number == SIGINT || number == SIGHUP ||
             number == SIGQUIT) {
    outcome_.kind = WorkerOutcome::Kind::kLost;
    outcome_.code = absl::StatusCode::kUnavailable;
    outcome_.text =
        absl::StrCat("worker was killed from outside by ", SignalText(number),
                     number == SIGKILL ? " (by hand, or by the kernel for want of memory)" : "");
  } else if (number == SIGSYS) {
    SetCrash(absl::StrCat("a system call that no compile makes, ", SignalText(number)));
  } else {
    SetCrash(SignalText(number));
  }
}

void RunReport::TakeResult() {
  outcome_.code = result_.code;
  outcome_.text = result_.text;
  outcome_.dropped_diagnostics += result_.dropped_diagnostics;
  outcome_.dropped_log_bytes += result_.dropped_log_bytes;
  switch (result_.end) {
    case WorkerEvent::End::kMemoryLimit:
      SetLimit(WorkerOutcome::Limit::kMemory,
               absl::StrCat("memory limit of ", job_.limits.memory_bytes, " bytes reached"));
      return;
    case WorkerEvent::End::kOutputLimit:
      SetLimit(WorkerOutcome::Limit::kOutput, absl::StrCat("output limit reached: ", result_.text));
      return;
    case WorkerEvent::End::kOurFault:
      outcome_.kind = WorkerOutcome::Kind::kLost;
      outcome_.text = absl::StrCat("worker could not do its work: ", result_.text);
      return;
    case WorkerEvent::End::kCompiled:
      break;
  }
  outcome_.kind = result_.code == absl::StatusCode::kOk ? WorkerOutcome::Kind::kSucceeded
                                                        : WorkerOutcome::Kind::kFailed;
}

void RunReport::Classify(const RunEnd& end, KillReason killed, absl::string_view detail) {
  // Memory is the one limit that ends with an exit code of its own; its message is the result.
  const bool by_itself = !end.parent_died && WIFEXITED(end.wait_status);
  if (by_itself && result_seen_ && killed != KillReason::kProtocol &&
      (WEXITSTATUS(end.wait_status) == 0 || result_.end == WorkerEvent::End::kMemoryLimit)) {
    TakeResult();
    return;
  }
  if (killed == KillReason::kCancel) {
    outcome_.kind = WorkerOutcome::Kind::kCancelled;
    outcome_.code = absl::StatusCode::kCancelled;
    outcome_.text = "cancelled";
  } else if (killed == KillReason::kWall) {
    SetLimit(WorkerOutcome::Limit::kWall,
             absl::StrCat("time limit of ", absl::FormatDuration(job_.limits.wall), " reached",
                          outcome_.last_stage.empty() ? "" : " in stage '", outcome_.last_stage,
                          outcome_.last_stage.empty() ? "" : "'"));
    outcome_.code = absl::StatusCode::kDeadlineExceeded;
  } else if (killed == KillReason::kOutput) {
    SetLimit(WorkerOutcome::Limit::kOutput,
             absl::StrCat("output limit of ", job_.limits.output_bytes, " bytes or ", kMaxArtifacts,
                          " plain files exceeded"));
  } else if (killed == KillReason::kProtocol) {
    SetCrash(detail);
  } else if (end.parent_died) {
    outcome_.kind = WorkerOutcome::Kind::kInterrupted;
    outcome_.code = absl::StatusCode::kUnavailable;
    outcome_.text = "the workers' warm parent died and the worker with it";
    if (!detail.empty()) absl::StrAppend(&outcome_.text, ": ", detail);
  } else if (WIFSIGNALED(end.wait_status)) {
    ClassifySignal(end);
  } else {
    outcome_.exit_code = WEXITSTATUS(end.wait_status);
    SetCrash(absl::StrCat("exit code ", outcome_.exit_code, " without a result"));
  }
}

absl::Status RunReport::TakeArtifact(const RunChannels& channels, uint64_t size_bytes,
                                     WorkerArtifact& artifact) {
  const cache::UniqueFd from(openat(channels.WorkerFolder(), artifact.name.c_str(),
                                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!from.valid()) return cache::ErrnoStatus(errno, "cannot open artifact", artifact.name);
  struct stat info;
  if (fstat(from.get(), &info) != 0) return cache::ErrnoStatus(errno, "cannot stat", artifact.name);
  if (S_ISREG(info.st_mode) && static_cast<uint64_t>(info.st_size) == size_bytes) {
    ASSIGN_OR_RETURN(std::string bytes,
                     cache::ReadUpToAt(from.get(), 0, size_bytes, artifact.name));
    artifact.bytes = std::make_shared<const std::string>(std::move(bytes));
    if (artifact.bytes->size() == size_bytes) return absl::OkStatus();
  }
  return absl::InternalError(
      absl::StrCat("artifact '", artifact.name, "' is not the file that the worker told of"));
}

absl::Status RunReport::TakeArtifacts(const RunChannels& channels) {
  std::set<std::string> names;
  uint64_t total = 0;
  for (size_t i = 0; i < outcome_.artifacts.size(); ++i) {
    if (!names.insert(outcome_.artifacts[i].name).second) {
      return absl::InternalError(
          absl::StrCat("artifact '", outcome_.artifacts[i].name, "' told of twice"));
    }
    const uint64_t size_bytes = artifact_bytes_[i];
    total += size_bytes;
    if (size_bytes > job_.limits.output_bytes || total > job_.limits.output_bytes) {
      return absl::InternalError("artifacts pass their limit");
    }
  }
  for (; taken_ < outcome_.artifacts.size(); ++taken_) {
    WorkerArtifact& artifact = outcome_.artifacts[taken_];
    RETURN_IF_ERROR(TakeArtifact(channels, artifact_bytes_[taken_], artifact));
    events_.OnArtifact(artifact);
  }
  return absl::OkStatus();
}

void RunReport::TakeEarlyArtifacts(const RunChannels& channels) {
  // Without the folder it is too early; the keeper's message that brings it brings another look.
  // Where an artifact is not as it should be, the end of the run sees to it, and says why.
  if (channels.WorkerFolder() >= 0) TakeArtifacts(channels).IgnoreError();
}

void RunReport::OnEndOfEvents(const RunChannels& channels) {
  if (!result_seen_ || result_.end != WorkerEvent::End::kCompiled ||
      result_.code != absl::StatusCode::kOk) {
    return;
  }
  // Else Finish tries again, and says why.
  all_taken_ = TakeArtifacts(channels).ok();
  if (all_taken_) events_.OnCompiled(outcome_.diagnostics);
}

WorkerOutcome RunReport::Finish(RunEnd end, KillReason killed, absl::string_view detail,
                                const RunChannels& channels) {
  outcome_.cpu_time = end.cpu_time;
  outcome_.peak_memory_bytes = end.peak_memory_bytes;
  // The keeper's own end says nothing where it lived to tell of the worker's.
  if (!end.parent_died && worker_status_.has_value()) end.wait_status = *worker_status_;
  Classify(end, killed, detail);
  if (outcome_.kind == WorkerOutcome::Kind::kSucceeded) {
    const absl::Status taken = all_taken_ ? absl::OkStatus() : TakeArtifacts(channels);
    if (!taken.ok()) SetCrash(taken.message());
  }
  if (outcome_.kind != WorkerOutcome::Kind::kSucceeded) outcome_.artifacts.clear();
  return std::move(outcome_);
}

}  // namespace npuc::worker
