#ifndef NPUC_SERVER_WORKER_WORKER_POOL_H_
#define NPUC_SERVER_WORKER_WORKER_POOL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "compiler_core/base/diagnostic.h"
#include "server/base/input_file.h"
#include "server/worker/protocol.h"
#include "server/worker/sandbox.h"

namespace npuc::worker {

// What one compile may use. Every one is enforced; none can be switched off.
struct WorkerLimits {
  uint64_t memory_bytes = uint64_t{2} << 30;  // on top of what the warm parent has mapped
  uint32_t cpu_seconds = 300;
  absl::Duration wall = absl::Minutes(10);
  uint64_t output_bytes = uint64_t{512} << 20;  // all artifacts together, and each file
  uint64_t log_bytes = uint64_t{4} << 20;       // log lines and printed text; more is dropped, told
};

// A file that the compile reads. The pool opens it and passes the descriptor; the compile never
// sees a path. Link counts, owners and modes do not matter as long as this process can read it.
struct WorkerInput {
  base::InputFile file;  // the worker checks the SHA-256 before it compiles
  std::string path;      // a regular file, e.g. BlobRef::path()
};

// One compile, or the inspection of a model.
struct WorkerJob {
  // Names the run for Cancel; unique among the runs under way; 1..128 bytes.
  std::string run_id;
  // Where the pool makes a folder for the run's artifacts on a host without folders in memory:
  // absolute, not there yet, in a folder that is. The caller removes it.
  std::string job_folder;
  std::string config_text;          // gxnpuc YAML, at most kMaxConfigBytes
  std::string config_name;          // for diagnostics
  std::vector<WorkerInput> inputs;  // at most 16
  WorkerLimits limits;
  int64_t timestamp_seconds = 0;  // CompileRequest::timestamp_seconds
  // Set: the model (the input with role MODEL_FILE) is inspected and not compiled; no config. The
  // artifacts are those of InspectIntoFiles.
  std::optional<StatedOfModel> inspection = std::nullopt;
};

struct WorkerArtifact {
  std::string name;  // IsValidArtifactName
  std::shared_ptr<const std::string> bytes;
};

// Told while a run is under way, on the thread that called Run, never at once for one run. Strings
// are printable (control characters and bad UTF-8 escaped) and bounded. May block: only this run
// waits.
class WorkerEvents {
 public:
  virtual ~WorkerEvents() = default;
  // A line for compile.log; no newline.
  virtual void OnLog(absl::string_view line) {}
  // fraction: 0..1, never falling.
  virtual void OnStage(absl::string_view stage, double fraction) {}
  virtual void OnDiagnostic(const Diagnostic& diagnostic) {}
  // An artifact of the outcome if the run ends as it should, which is not certain yet. In their
  // order; of a run that succeeds, all.
  virtual void OnArtifact(const WorkerArtifact& artifact) {}
  // All artifacts were told, and these will be the outcome's diagnostics if the run ends as it
  // should; what it logged was told before, but for a last line without an end. Not told of every
  // run that does.
  virtual void OnCompiled(const std::vector<Diagnostic>& diagnostics) {}
  // Asked when the worker is on its way, and at least every 100 ms; true ends the run as Cancel
  // does. So a cancel that came before the run was known here is not lost.
  virtual bool IsCancelled() { return false; }
};

// Passes everything on; for those who change or note some of it.
class ForwardingWorkerEvents : public WorkerEvents {
 public:
  // `inner` must outlive this.
  explicit ForwardingWorkerEvents(WorkerEvents& inner) : inner_(inner) {}
  void OnLog(absl::string_view line) override { inner_.OnLog(line); }
  void OnStage(absl::string_view stage, double fraction) override {
    inner_.OnStage(stage, fraction);
  }
  void OnDiagnostic(const Diagnostic& diagnostic) override { inner_.OnDiagnostic(diagnostic); }
  void OnArtifact(const WorkerArtifact& artifact) override { inner_.OnArtifact(artifact); }
  void OnCompiled(const std::vector<Diagnostic>& diagnostics) override {
    inner_.OnCompiled(diagnostics);
  }
  bool IsCancelled() override { return inner_.IsCancelled(); }

 private:
  WorkerEvents& inner_;
};

// How a run ended.
struct WorkerOutcome {
  enum class Kind {
    kSucceeded,  // artifacts are in place and were checked
    kFailed,     // the model or the config is at fault: diagnostics say how
    kCancelled,
    kLimit,    // memory, CPU, wall clock or output; `limit` says which
    kCrashed,  // ended by a signal or an exit code, or broke the protocol: a bug of the compiler
    // Killed from outside, or could not do its work. It may have been the job's doing (memory that
    // the kernel took back), so a job gets a few more tries and no more.
    kLost,
    kInterrupted,  // the warm parent died, and the run with it: no fault of the job
  };
  Kind kind = Kind::kLost;
  enum class Limit { kNone, kMemory, kCpu, kWall, kOutput };
  Limit limit = Limit::kNone;
  // Running it again may well end otherwise.
  bool retryable() const { return kind == Kind::kLost || kind == Kind::kInterrupted; }
  // One sentence for a person, lower case: "worker crashed: signal 11 (SIGSEGV) in stage 'lower'".
  // kFailed: the compile's status message. kSucceeded: empty.
  std::string text;
  absl::StatusCode code = absl::StatusCode::kOk;  // as the compile's status; INTERNAL for a crash
  int signal = 0;                                 // kCrashed, kLost: what ended it, 0: none
  int exit_code = 0;                              // kCrashed: 0 where a signal ended it
  std::string last_stage;
  std::string printed_tail;  // the last of what it printed to stdout and stderr, printable, 8 KiB
  std::vector<WorkerArtifact> artifacts;  // in the compile's order; kSucceeded only
  std::vector<Diagnostic> diagnostics;    // warnings on success too; at most kMaxDiagnostics
  uint64_t dropped_diagnostics = 0;
  uint64_t dropped_log_bytes = 0;
  absl::Duration wall_time = absl::ZeroDuration();   // whole run, as the pool saw it
  absl::Duration start_time = absl::ZeroDuration();  // until the worker's first message
  absl::Duration cpu_time = absl::ZeroDuration();
  uint64_t peak_memory_bytes = 0;  // resident
};

// "succeeded", "failed", "cancelled", "limit", "crashed", "lost", "interrupted".
absl::string_view WorkerOutcomeKindName(WorkerOutcome::Kind kind);

struct WorkerPoolOptions {
  // The warm parent: this program is executed with these arguments, and forks for each run. It is
  // opened once (WarmParent); what is installed over it later is for the next daemon.
  std::string program;  // absolute path of npuc-worker
  std::vector<std::string> arguments;
  // Of the daemon's compiler, which the program's must be, since results are stored under it.
  // Empty: any will do.
  std::string build_id = {};
  // Called with each warm parent as it is started; an error refuses the start. Null: nothing.
  std::function<absl::Status(pid_t parent)> adopt = nullptr;
  // Told of a warm parent that ended though nobody told it to, and how: "signal 9 (SIGKILL)".
  // Another one is then started. On a thread of the pool, which waits. Null: nobody.
  std::function<void(absl::string_view how)> on_parent_lost = nullptr;
  size_t max_runs = 256;  // at once; a bound, the caller's slots are fewer
  // How many processes wait, within their walls, each for one run to come: what a run needs before
  // its compile is then done before the run. They are made for the limits of the last run, and only
  // where the host has PID namespaces and folders in memory. A few MiB each.
  uint32_t spares = 0;
  // The warm parent must answer a start, a kill or a death within this; else it is killed and
  // replaced.
  absl::Duration answer_timeout = absl::Seconds(10);
  // What to do where the host lacks a wall. WorkerPool::sandbox() says what is missing.
  SandboxMode sandbox = SandboxMode::kRequire;
  std::function<absl::Time()> now;  // for wall limits and times; null: the monotonic clock
};

// Of WorkerPool::Run's status: the host kept the run from its start, and nothing is known against
// the job.
inline bool IsHostTrouble(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status);
}

// The part of WorkerPool that jobs use; tests put fakes here.
class WorkerRunner {
 public:
  virtual ~WorkerRunner() = default;
  virtual absl::StatusOr<WorkerOutcome> Run(const WorkerJob& job, WorkerEvents& events) = 0;
  virtual bool Cancel(absl::string_view run_id) = 0;
};

// Runs compiles in processes of their own, forked from a warm parent that has the compiler loaded.
// Each run: shut in by what sandbox.h lists, no capabilities, no new privileges, rlimits, umask
// 077, /dev/null as stdin, what it prints is caught as log lines, no descriptors but its inputs
// (read only), its output folder and its channel. Where a run ends, for whatever reason, all of its
// processes are killed and none is left when Run returns, also those that left the group; but for
// the keeper, ours, which may be taking its last steps (Stats::leaving).
// Everything that a run says is checked; the worst it can do is to fail itself.
//
// Works for root, who gives workers a user of their own, and for any other user.
//
// Thread-safe. Any number of threads may be in Run.
class WorkerPool : public WorkerRunner {
 public:
  // Starts the warm parent and waits until it is ready. FAILED_PRECONDITION: it cannot be executed,
  // or the host lacks a mechanism that options.sandbox requires (each is named); UNAVAILABLE: it
  // did not answer.
  static absl::StatusOr<std::unique_ptr<WorkerPool>> Start(WorkerPoolOptions options);
  // Kills what runs, and the warm parent. No thread may be in Run.
  ~WorkerPool() override;
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Compiles, once; blocks until the run has ended and is cleaned up. A status only where no
  // compile was begun. The job's or the caller's fault: INVALID_ARGUMENT (bad id, too many inputs,
  // an input that is no regular file), NOT_FOUND (an input's path), ALREADY_EXISTS (run id under
  // way, or out folder there), INTERNAL. The host's (IsHostTrouble): RESOURCE_EXHAUSTED (max_runs,
  // no descriptors, no processes), UNAVAILABLE (shut down, no warm parent can be started, walls
  // cannot be built).
  absl::StatusOr<WorkerOutcome> Run(const WorkerJob& job, WorkerEvents& events) override;

  // Waits at most `patience` until a run may be begun. An error: why none may; does not wait where
  // the host is in trouble.
  absl::Status AwaitReady(absl::Duration patience);
  // Why no run can be begun, and what to do; OK also while a warm parent that died is replaced.
  absl::Status Health() const;

  // Kills a run's processes; its Run returns kCancelled, or how it ended where it was faster.
  // False: no such run under way.
  bool Cancel(absl::string_view run_id) override;

  // Cancels all runs and refuses new ones.
  void Shutdown();

  struct Stats {
    size_t running = 0;
    size_t leaving = 0;  // keepers of runs that are over, ending
    uint64_t started = 0;
    uint64_t parent_restarts = 0;
    int parent_pid = 0;  // 0: none at the moment
  };
  Stats GetStats() const;
  // Which walls stand, and which are missing and why, as found at the start. A warm parent that is
  // started later with fewer of them is refused.
  const SandboxReport& sandbox() const;
  // The keeper of a run under way, 0 where unknown: for operators and fault tests. A signal to it
  // reaches the worker.
  int PidOf(absl::string_view run_id) const;

 private:
  struct Impl;
  explicit WorkerPool(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace npuc::worker

#endif  // NPUC_SERVER_WORKER_WORKER_POOL_H_
