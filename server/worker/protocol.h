#ifndef NPUC_SERVER_WORKER_PROTOCOL_H_
#define NPUC_SERVER_WORKER_PROTOCOL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"
#include "server/base/input_file.h"
#include "server/worker/sandbox.h"

namespace npuc::worker {

// What daemon, warm parent ("zygote"), keeper and worker say to each other, as bytes. Three
// channels:
//
//   control   daemon <-> zygote, one SOCK_SEQPACKET pair: a message is a packet. The daemon sends
//             kSpawn (with descriptors) and kKill; the zygote kReady, kStarted, kSpawnFailed,
//             kExited.
//   watch     keeper -> daemon, one SOCK_SEQPACKET pair a run, one way: kSetUp (with the output
//             folder, where it has one of its own) or kSetUpFailed, kEnded. The worker has no end
//             of it once its walls stand.
//   events    worker -> daemon, one SOCK_STREAM pair a run, one way. A frame is its payload's
//             length (4 bytes, little endian) and the payload. The daemon lets events gather; a
//             pipe beside the channel, the bell, gets a byte behind one that is worth a look at
//             once: an artifact, while the compile goes on.
//
// What the worker must know (WorkOrder) is not sent but lies in a memory file, whose descriptor
// goes with kSpawn. Messages are those of proto/npuc/worker/v1. A worker is hostile: decoders
// refuse what is too long, and values that this build does not know. All functions are thread-safe.

// --- control -------------------------------------------------------------------------------------

inline constexpr size_t kMaxControlBytes = 4096;

// The zygote's first packet, before kReady. It alone stays readable for every version, so that a
// daemon can say what is wrong with a worker of another build. Raise the number with each change of
// what the channels carry.
inline constexpr int kProtocolVersion = 6;
std::string EncodeGreeting(absl::string_view build_id);
// FAILED_PRECONDITION where `bytes` is not the greeting of a worker that speaks this version and,
// if build_id is not empty, has the same compiler; the message says what was found.
absl::Status CheckGreeting(absl::string_view bytes, absl::string_view build_id);

// The text that says why a mechanism is missing, or why a set-up failed.
inline constexpr size_t kMaxMechanismReasonBytes = 256;
inline constexpr size_t kMaxInputs = 16;
// What comes with kSpawn: events, print, watch, out folder, job, bell, and the inputs.
inline constexpr size_t kFixedDescriptors = 6;
inline constexpr size_t kMaxDescriptors = kFixedDescriptors + kMaxInputs;

struct ControlMessage {
  enum class Type : uint8_t {
    kReady = 1,        // zygote: the compiler is loaded; what the sandbox can do here
    kSpawn = 2,        // daemon: have a worker do this; descriptors: kFixedDescriptors, inputs. The
                       // zygote passes it on: all to the worker, message and watch to its keeper
    kKill = 3,         // daemon: kill the run's processes; an unknown run is none any more
    kStarted = 4,      // zygote: pid
    kSpawnFailed = 5,  // zygote: error
    kExited = 6,       // zygote: wait_status and usage; no process of the run is left
  };
  Type type = Type::kReady;
  uint64_t run = 0;  // the daemon's number for the run
  int32_t pid = 0;
  int32_t error = 0;        // errno
  int32_t wait_status = 0;  // as of waitpid
  uint64_t cpu_microseconds = 0;
  uint64_t peak_memory_bytes = 0;
  // kSpawn
  uint64_t memory_bytes = 0;
  uint64_t output_bytes = 0;
  uint64_t log_bytes = 0;
  uint32_t cpu_seconds = 0;
  uint32_t inputs = 0;  // how many of the descriptors
  uint32_t spares = 0;  // how many workers to keep ready for the runs to come
  // kReady
  SandboxReport sandbox;
};

std::string EncodeControl(const ControlMessage& message);
absl::StatusOr<ControlMessage> DecodeControl(absl::string_view bytes);

// --- watch ---------------------------------------------------------------------------------------

struct WatchMessage {
  enum class Type : uint8_t {
    kSetUp = 1,        // the walls stand; a descriptor: the output folder
    kSetUpFailed = 2,  // text; no compile was begun
    kEnded = 3,        // wait_status of the worker, usage, alone
  };
  Type type = Type::kSetUp;
  int32_t wait_status = 0;
  uint64_t cpu_microseconds = 0;
  uint64_t peak_memory_bytes = 0;
  bool alone = false;  // no process of the run is left but the keeper, which ends now
  std::string text;    // printable after decoding
};

inline constexpr size_t kMaxWatchBytes = 512;
std::string EncodeWatch(const WatchMessage& message);
absl::StatusOr<WatchMessage> DecodeWatch(absl::string_view bytes);

// --- the job -------------------------------------------------------------------------------------

inline constexpr size_t kMaxJobBytes = 4 << 20;

// Facts that a user states of a model to be inspected (InspectFilesRequest has the forms).
struct StatedOfModel {
  std::vector<std::string> shapes = {};
  std::vector<std::string> dims = {};
  std::vector<std::string> constants = {};
};

struct WorkOrder {
  std::string config_text;
  std::string config_name;
  int64_t timestamp_seconds = 0;
  std::vector<base::InputFile> inputs;  // in the order of the descriptors
  std::optional<StatedOfModel> inspection = std::nullopt;
};

std::string EncodeOrder(const WorkOrder& order);
absl::StatusOr<WorkOrder> DecodeOrder(absl::string_view bytes);

// --- events --------------------------------------------------------------------------------------

inline constexpr size_t kMaxFrameBytes = 128 << 10;
inline constexpr size_t kFrameHeaderBytes = 4;
inline constexpr size_t kMaxWorkerLineBytes = 16 << 10;
inline constexpr size_t kMaxTextBytes = 8 << 10;  // each string of a diagnostic, a status message

struct WorkerEvent {
  enum class Type : uint8_t {
    kBegin = 1,       // alive, limits are set
    kLog = 2,         // text
    kStage = 3,       // text, fraction
    kDiagnostic = 4,  // diagnostic
    kArtifact = 5,    // text: name; size_bytes
    kResult = 6,      // the last: end, code, text, dropped counts
  };
  // How the compile ended, as the worker sees it.
  enum class End : uint8_t { kCompiled = 0, kMemoryLimit = 1, kOutputLimit = 2, kOurFault = 3 };

  Type type = Type::kBegin;
  std::string text;
  double fraction = 0;
  Diagnostic diagnostic{DiagnosticKind::kInternalError, ""};
  uint64_t size_bytes = 0;
  End end = End::kCompiled;
  absl::StatusCode code = absl::StatusCode::kOk;
  uint64_t dropped_diagnostics = 0;
  uint64_t dropped_log_bytes = 0;
};

// A whole frame. Texts longer than their limit are cut.
std::string EncodeEvent(const WorkerEvent& event);

// Takes the bytes of a stream in any pieces and gives events. Not thread-safe.
class EventDecoder {
 public:
  void Feed(absl::string_view bytes) { buffer_.append(bytes.data(), bytes.size()); }
  // 1: `event` is the next one. 0: more bytes are needed. INVALID_ARGUMENT: the stream is broken,
  // for good. Texts are made Printable.
  absl::StatusOr<bool> Next(WorkerEvent& event);

 private:
  std::string buffer_;
  size_t begin_ = 0;
};

}  // namespace npuc::worker

#endif  // NPUC_SERVER_WORKER_PROTOCOL_H_
