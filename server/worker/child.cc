#include "server/worker/child.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cache/keys.h"
#include "compiler_core/base/artifact_name.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/status.h"
#include "server/worker/confine.h"
#include "server/worker/packet.h"

namespace npuc::worker {
namespace {

constexpr int kMaxOpenFiles = 64;
constexpr int kExitSandboxFailed = 3;
constexpr int kExitMemory = 4;

// What operator new's handler sends when there is no memory to build it with.
std::string& MemoryFrame() {
  static std::string* frame = new std::string();
  return *frame;
}

// Writes all of it, or ends the process: without a daemon nobody wants the result.
void SendAll(absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = cache::RetryOnEintr(
        [&] { return send(kEventsFd, bytes.data(), bytes.size(), MSG_NOSIGNAL); });
    if (n < 0) _exit(kExitSandboxFailed);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

void Send(const WorkerEvent& event) { SendAll(EncodeEvent(event)); }

// Before the walls stand: tells the daemon that no compile was begun.
[[noreturn]] void Fail(absl::string_view text) {
  WatchMessage message;
  message.type = WatchMessage::Type::kSetUpFailed;
  message.text = std::string(text);
  const std::string bytes = EncodeWatch(message);
  cache::RetryOnEintr([&] { return send(kWatchFd, bytes.data(), bytes.size(), MSG_NOSIGNAL); });
  _exit(kExitSandboxFailed);
}

[[noreturn]] void FailCall(const char* call) { Fail(absl::StrCat(call, ": ", strerror(errno))); }

absl::Status ResetSignals() {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  // 32 and 33 belong to glibc, SIGKILL and SIGSTOP cannot be set; those calls fail and need not
  // work.
  for (int number = 1; number < NSIG; ++number) sigaction(number, &action, nullptr);
  sigset_t none;
  sigemptyset(&none);
  if (sigprocmask(SIG_SETMASK, &none, nullptr) == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("sigprocmask: ", strerror(errno)));
}

void SetLimit(__rlimit_resource which, uint64_t soft, uint64_t hard) {
  const absl::Status status = LimitResource(which, soft, hard);
  if (!status.ok()) Fail(status.message());
}

void SetLimits(const ControlMessage& spawn, const MemoryInUse& memory, uint64_t input_bytes) {
  // The inputs are mapped, which takes address space but no memory of the job's own.
  const uint64_t space_limit = memory.space_bytes + input_bytes + spawn.memory_bytes;
  SetLimit(RLIMIT_AS, space_limit, space_limit);
  const uint64_t data_limit = memory.data_bytes + spawn.memory_bytes;
  SetLimit(RLIMIT_DATA, data_limit, data_limit);
  // At the soft limit SIGXCPU; a second later, for one who catches it, SIGKILL.
  SetLimit(RLIMIT_CPU, spawn.cpu_seconds, uint64_t{spawn.cpu_seconds} + 1);
  SetLimit(RLIMIT_FSIZE, spawn.output_bytes, spawn.output_bytes);
  SetLimit(RLIMIT_NOFILE, kMaxOpenFiles, kMaxOpenFiles);
  SetLimit(RLIMIT_CORE, 0, 0);
  SetLimit(RLIMIT_MEMLOCK, 0, 0);
  SetLimit(RLIMIT_MSGQUEUE, 0, 0);
  // A compile starts neither processes nor threads. Does not bind root; seccomp does.
  SetLimit(RLIMIT_NPROC, 0, 0);
}

void MoveFd(cache::UniqueFd& from, int to) {
  if (dup3(from.get(), to, O_CLOEXEC) < 0) FailCall("dup");
  from.Reset();
}

// Puts the run's descriptors to their places.
void TakeDescriptors(ControlPacket& packet, bool has_folder) {
  std::vector<cache::UniqueFd>& given = packet.descriptors;
  if (given.size() != kFixedDescriptors + packet.message.inputs) _exit(kExitSandboxFailed);
  // Everything up above the scratch line, then down to its place: no move overwrites another's.
  for (cache::UniqueFd& fd : given) {
    fd = cache::UniqueFd(fcntl(fd.get(), F_DUPFD_CLOEXEC, kScratchFd));
    if (!fd.valid()) _exit(kExitSandboxFailed);
  }
  cache::UniqueFd &events = given[0], &print = given[1], &watch = given[2], &out = given[3],
                  &job = given[4], &bell = given[5];
  MoveFd(watch, kWatchFd);  // the first, so that a failure can be told
  if (dup2(print.get(), STDOUT_FILENO) < 0 || dup2(print.get(), STDERR_FILENO) < 0) FailCall("dup");
  MoveFd(events, kEventsFd);
  if (!has_folder) {
    MoveFd(out, kOutFd);
    if (fchdir(kOutFd) != 0) FailCall("fchdir");
  }
  MoveFd(job, kJobFd);
  MoveFd(bell, kBellFd);
  int next = kFirstInputFd;
  for (size_t i = kFixedDescriptors; i < given.size(); ++i) MoveFd(given[i], next++);
  given.clear();
  if (next < kWatchFd && close_range(static_cast<unsigned>(next), kWatchFd - 1, 0) != 0) {
    FailCall("close_range");
  }
  if (close_range(kWatchFd + 1, ~0u, 0) != 0) FailCall("close_range");
}

uint64_t InputBytes(uint32_t inputs) {
  uint64_t bytes = 0;
  for (int i = 0; i < static_cast<int>(inputs); ++i) {
    bytes += cache::FileSize(kFirstInputFd + i, "input").value_or(0);
  }
  return bytes;
}

// What can be done before there is a job.
absl::Status Prepare(const Walls& walls, const WorkerStart& start) {
  RETURN_IF_ERROR(ResetSignals());
  umask(077);
  return walls.GiveUpRights(start.keeper);
}

// Waits for the run and shuts itself in with it.
ControlMessage TakeRun(const Walls& walls, const WorkerStart& start, const absl::Status& prepared) {
  std::optional<ControlPacket> packet = ReceiveControl(kHandOverFd);
  if (!packet.has_value()) _exit(0);  // there will be none
  TakeDescriptors(*packet, start.has_folder);
  if (!prepared.ok()) Fail(prepared.message());
  SetLimits(packet->message, start.memory, InputBytes(packet->message.inputs));
  const absl::Status status = walls.ShutIn(kOutFd);
  if (!status.ok()) Fail(status.message());
  close(kWatchFd);
  return packet->message;
}

// --- The compile ---------------------------------------------------------------------------------

WorkerEvent ArtifactEvent(absl::string_view name, uint64_t size_bytes) {
  WorkerEvent event;
  event.type = WorkerEvent::Type::kArtifact;
  event.text = std::string(name);
  event.size_bytes = size_bytes;
  return event;
}

struct Failure {
  WorkerEvent::End end = WorkerEvent::End::kCompiled;
  absl::Status status;
};

// Not the compile's fault: what came with the job, or the disk, is not as it must be.
Failure OurFault(absl::Status status) { return {WorkerEvent::End::kOurFault, std::move(status)}; }

// The artifacts, in the output folder.
class Output {
 public:
  explicit Output(uint64_t most_bytes) : most_bytes_(most_bytes) {}

  // The artifact's size. nullopt where it, or one before it, could not be written.
  std::optional<uint64_t> Write(const Artifact& artifact) {
    if (!failure_.status.ok()) return std::nullopt;
    const uint64_t before = bytes_;
    const absl::Status written = WriteFile(artifact);
    if (written.ok()) return bytes_ - before;
    if (bytes_ > most_bytes_) {
      failure_ = {WorkerEvent::End::kOutputLimit, absl::ResourceExhaustedError(absl::StrCat(
                                                      "the artifacts have more bytes than the ",
                                                      most_bytes_, " that are allowed"))};
    } else if (absl::IsInternal(written) || absl::IsAlreadyExists(written)) {
      failure_ = {WorkerEvent::End::kCompiled, absl::InternalError(written.message())};
    } else {
      failure_ = OurFault(written);
    }
    return std::nullopt;
  }
  // Why not all are written; an OK status where they are.
  const Failure& failure() const { return failure_; }

 private:
  absl::Status WriteFile(const Artifact& artifact) {
    const std::string& name = artifact.name;
    if (!IsValidArtifactName(name)) {
      return absl::InternalError(
          absl::StrCat("the compiler made an artifact with the name '", Printable(name), "'"));
    }
    const cache::UniqueFd file(cache::RetryOnEintr([&] {
      return openat(kOutFd, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                    0600);
    }));
    if (!file.valid()) return cache::ErrnoStatus(errno, "cannot make", name);
    uint64_t offset = 0;
    return artifact.write([&](absl::string_view piece) {
      bytes_ += piece.size();
      if (bytes_ > most_bytes_) return absl::ResourceExhaustedError("too many bytes");
      const absl::Status status = cache::WriteAllAt(file.get(), piece, offset, name);
      offset += piece.size();
      return status;
    });
  }

  const uint64_t most_bytes_;
  uint64_t bytes_ = 0;  // of all artifacts
  Failure failure_;
};

class Observer : public CompileObserver {
 public:
  explicit Observer(const ControlMessage& spawn)
      : left_(spawn.log_bytes), output_(spawn.output_bytes) {}

  void OnLog(absl::string_view line) override {
    const uint64_t size = std::min<uint64_t>(line.size(), kMaxWorkerLineBytes);
    dropped_ += line.size() - size;
    // A line costs one more byte, as in a file, so that empty lines are bounded too.
    if (size + 1 > left_) {
      dropped_ += size;
      left_ = 0;
      return;
    }
    left_ -= size + 1;
    WorkerEvent event;
    event.type = WorkerEvent::Type::kLog;
    event.text = std::string(line.substr(0, static_cast<size_t>(size)));
    Send(event);
  }
  void OnStage(absl::string_view stage, double fraction) override {
    WorkerEvent event;
    event.type = WorkerEvent::Type::kStage;
    event.text = std::string(stage);
    event.fraction = fraction;
    Send(event);
  }
  // The daemon takes the header, most of what a compile makes, while the compile goes on, and the
  // other artifacts at the end, together.
  void OnArtifact(Artifact artifact) override {
    const std::optional<uint64_t> size = output_.Write(artifact);
    if (!size.has_value()) return;
    Send(ArtifactEvent(artifact.name, *size));
    if (std::exchange(is_header_, false)) cache::RetryOnEintr([] { return write(kBellFd, "", 1); });
  }
  uint64_t dropped_bytes() const { return dropped_; }
  const Failure& output_failure() const { return output_.failure(); }

 private:
  uint64_t left_;
  uint64_t dropped_ = 0;
  Output output_;
  bool is_header_ = true;  // the next artifact
};

absl::StatusOr<absl::string_view> MapInput(int fd, const base::InputFile& input) {
  ASSIGN_OR_RETURN(const uint64_t size, cache::FileSize(fd, input.name));
  absl::string_view bytes;
  if (size > 0) {
    void* address = mmap(nullptr, static_cast<size_t>(size), PROT_READ, MAP_PRIVATE, fd, 0);
    if (address == MAP_FAILED) return cache::ErrnoStatus(errno, "cannot map", input.name);
    bytes = absl::string_view(static_cast<const char*>(address), static_cast<size_t>(size));
  }
  if (Sha256Hex(bytes) != input.sha256) {
    return absl::DataLossError(absl::StrCat("input '", Printable(input.name),
                                            "' is not the file that was uploaded: "
                                            "SHA-256 differs from ",
                                            input.sha256));
  }
  return bytes;
}

// Of what follows on the compile, at most so much waits to be sent in one piece.
constexpr size_t kMaxUnsentBytes = 256 << 10;

void Queue(const WorkerEvent& event, std::string& unsent) {
  unsent += EncodeEvent(event);
  if (unsent.size() < kMaxUnsentBytes) return;
  SendAll(unsent);
  unsent.clear();
}

// Gives the config's files to the request, each role from the job's inputs.
Failure FillRequest(const WorkOrder& job, ParsedConfig config, CompileRequest& request) {
  request.options = std::move(config.options);
  request.timestamp_seconds = job.timestamp_seconds;
  std::set<std::string> wanted;
  for (const ConfigFile& file : config.files) wanted.insert(file.role);
  std::set<std::string> given;
  for (size_t i = 0; i < job.inputs.size(); ++i) {
    const base::InputFile& input = job.inputs[i];
    given.insert(input.role);
    if (wanted.count(input.role) == 0) continue;  // told below
    auto bytes = MapInput(kFirstInputFd + static_cast<int>(i), input);
    if (!bytes.ok()) return OurFault(bytes.status());
    if (input.role == "MODEL_FILE") {
      request.model_bytes = *bytes;
      request.model_md5 = [md5 = input.md5] { return md5; };
    } else {
      request.side_inputs[input.role] = {input.name, std::make_shared<ViewSource>(*bytes)};
    }
  }
  if (wanted == given) return {};
  return {WorkerEvent::End::kCompiled,
          absl::InvalidArgumentError(absl::StrCat(
              Printable(job.config_name), ": the config names the files {",
              absl::StrJoin(wanted, ", "), "}, the job brought {", absl::StrJoin(given, ", "),
              "}; send exactly those that the config names"))};
}

Failure InspectModelOf(const WorkOrder& job, const WorkerFunctions& functions, Observer& observer,
                       Diagnostics& diagnostics) {
  InspectFilesRequest request{.model_bytes = {},
                              .model_name = {},
                              .shapes = job.inspection->shapes,
                              .dims = job.inspection->dims,
                              .constants = job.inspection->constants};
  for (size_t i = 0; i < job.inputs.size(); ++i) {
    const base::InputFile& input = job.inputs[i];
    auto bytes = MapInput(kFirstInputFd + static_cast<int>(i), input);
    if (!bytes.ok()) return OurFault(bytes.status());
    if (input.role == "MODEL_FILE") {
      request.model_bytes = *bytes;
      request.model_name = input.name;
    } else {
      request.side_inputs[input.role] = {input.name, std::make_shared<ViewSource>(*bytes)};
    }
  }
  if (functions.inspect == nullptr) {
    return {WorkerEvent::End::kCompiled, absl::InternalError("this worker inspects no models")};
  }
  const absl::Status status = functions.inspect(request, observer, diagnostics);
  if (!status.ok()) return {WorkerEvent::End::kCompiled, status};
  return observer.output_failure();
}

Failure CompileJob(const WorkerFunctions& functions, Observer& observer, Diagnostics& diagnostics) {
  auto record = cache::ReadUpToAt(kJobFd, 0, kMaxJobBytes, "job");
  if (!record.ok()) return OurFault(record.status());
  const auto job = DecodeOrder(*record);
  if (!job.ok()) return OurFault(job.status());
  try {
    if (job->inspection.has_value()) return InspectModelOf(*job, functions, observer, diagnostics);
    auto config = functions.parse_config(job->config_text, job->config_name, diagnostics);
    if (!config.ok()) return {WorkerEvent::End::kCompiled, config.status()};
    const bool is_cfg = config->is_cfg;
    CompileRequest request;
    Failure failure = FillRequest(*job, *std::move(config), request);
    if (!failure.status.ok()) return failure;
    const auto result = functions.compile(request, observer, diagnostics);
    if (!result.ok()) {
      if (is_cfg) AddCfgWords(job->config_name, diagnostics);
      return {WorkerEvent::End::kCompiled, result.status()};
    }
    return observer.output_failure();
  } catch (const std::exception& e) {
    return {WorkerEvent::End::kCompiled,
            absl::InternalError(absl::StrCat("exception in the compiler: ", Printable(e.what())))};
  }
}

void PrepareForNoMemory() {
  WorkerEvent event;
  event.type = WorkerEvent::Type::kResult;
  event.end = WorkerEvent::End::kMemoryLimit;
  event.code = absl::StatusCode::kResourceExhausted;
  MemoryFrame() = EncodeEvent(event);
  std::set_new_handler([] {
    SendAll(MemoryFrame());
    _exit(kExitMemory);
  });
}

}  // namespace

void RunChild(const Walls& walls, const WorkerStart& start, const WorkerFunctions& functions) {
  const absl::Status prepared = Prepare(walls, start);
  const ControlMessage spawn = TakeRun(walls, start, prepared);
  PrepareForNoMemory();
  Send(WorkerEvent());  // kBegin

  Observer observer(spawn);
  Diagnostics diagnostics;
  const Failure failure = CompileJob(functions, observer, diagnostics);
  std::string unsent;
  for (const Diagnostic& diagnostic : diagnostics.list()) {
    WorkerEvent event;
    event.type = WorkerEvent::Type::kDiagnostic;
    event.diagnostic = diagnostic;
    Queue(event, unsent);
  }
  // What was printed must be in the pipe before the result is in the channel.
  std::fflush(nullptr);
  WorkerEvent event;
  event.type = WorkerEvent::Type::kResult;
  event.end = failure.end;
  event.code = failure.status.code();
  event.text = std::string(failure.status.message());
  event.dropped_diagnostics = diagnostics.dropped_count();
  event.dropped_log_bytes = observer.dropped_bytes();
  SendAll(unsent + EncodeEvent(event));
  // The daemon reads the result while this process ends, which takes a while.
  close(kEventsFd);
  // No destructors, no atexit: the kernel is faster, and the zygote's state is not ours to end.
  _exit(0);
}

}  // namespace npuc::worker
