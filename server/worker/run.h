#ifndef NPUC_SERVER_WORKER_RUN_H_
#define NPUC_SERVER_WORKER_RUN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cache/posix.h"
#include "server/worker/protocol.h"
#include "server/worker/worker_pool.h"

namespace npuc::worker {

// The daemon's ends of what a run is given, and the worker's ends to send away.
struct RunChannels {
  cache::UniqueFd events;   // non-blocking
  cache::UniqueFd print;    // non-blocking
  cache::UniqueFd watch;    // non-blocking
  cache::UniqueFd bell;     // non-blocking
  cache::UniqueFd out;      // the output folder on disk; none where one in memory will come
  cache::UniqueFd staging;  // the one in memory, once the keeper has told of it
  cache::UniqueFd child_events;
  cache::UniqueFd child_print;
  cache::UniqueFd child_watch;
  cache::UniqueFd child_bell;
  cache::UniqueFd job;
  std::vector<cache::UniqueFd> inputs;

  // In the order of kSpawn. Without an output folder another stands in its place.
  std::vector<int> ForChild() const;
  void CloseChildEnds();
  // Where the worker writes.
  int WorkerFolder() const { return staging.valid() ? staging.get() : out.get(); }
};

// Checks the job, opens its inputs, makes the channels, and an output folder unless the keeper
// makes one `in_memory`. Errors as of WorkerPool::Run.
absl::StatusOr<RunChannels> OpenChannels(const WorkerJob& job, bool in_memory);

enum class WatchRead { kMessage, kNothing, kEnd };
// The keeper's next word, with the folder that came along where one did. Does not block.
WatchRead ReceiveWatch(int socket, WatchMessage& message, cache::UniqueFd& folder);

// How a run's processes ended, as the warm parent told it or as its death shows.
struct RunEnd {
  bool parent_died = false;
  int wait_status = 0;
  absl::Duration cpu_time = absl::ZeroDuration();
  uint64_t peak_memory_bytes = 0;
};

// Of a wait status: "signal 9 (SIGKILL)", "exit code 1".
std::string EndText(int wait_status);

// Why the daemon had the run killed.
enum class KillReason { kNone, kCancel, kWall, kOutput, kProtocol };

// Takes what a run says and makes its outcome: checks, bounds and passes on events. Used by one
// thread.
class RunReport {
 public:
  // All must outlive the report.
  RunReport(const WorkerJob& job, WorkerEvents& events) : job_(job), events_(events) {}

  // Bytes of the event channel. An error: the worker broke the protocol.
  absl::Status OnEventBytes(absl::string_view bytes);
  // A word of the keeper.
  void OnWatch(const WatchMessage& message);
  // Bytes printed to stdout or stderr.
  void OnPrintBytes(absl::string_view bytes);
  // No more bytes will come.
  void OnEndOfBytes();

  bool has_begun() const { return begun_; }
  bool has_result() const { return result_seen_; }
  // Why the walls around the worker could not be built; nullopt where they stand.
  const std::optional<std::string>& not_set_up() const { return not_set_up_; }
  // Set once the keeper has told that the worker has ended and that nobody else is left.
  const std::optional<RunEnd>& end_by_keeper() const { return end_by_keeper_; }
  // Copies artifacts that were told of while the compile goes on, and tells of them.
  void TakeEarlyArtifacts(const RunChannels& channels);
  // The worker has closed its channel behind its result: copies what a good result told of, so that
  // this and WorkerEvents::OnCompiled need not wait for the end of its processes.
  void OnEndOfEvents(const RunChannels& channels);
  // What the folder holds now is within the limits of the job. Cheap; for a look while it runs.
  bool OutputWithinLimits(int out_fd) const;

  // The outcome. Artifacts are read from the folder that the worker wrote into, and are what it
  // told of.
  WorkerOutcome Finish(RunEnd end, KillReason killed, absl::string_view detail,
                       const RunChannels& channels);

 private:
  absl::Status OnEvent(WorkerEvent& event);
  void Log(absl::string_view line);
  void FlushPrinted(bool all);
  void SetLimit(WorkerOutcome::Limit limit, std::string text);
  void SetCrash(absl::string_view text);
  void Classify(const RunEnd& end, KillReason killed, absl::string_view detail);
  void ClassifySignal(const RunEnd& end);
  void TakeResult();
  absl::Status TakeArtifact(const RunChannels& channels, uint64_t size_bytes,
                            WorkerArtifact& artifact);
  absl::Status TakeArtifacts(const RunChannels& channels);

  const WorkerJob& job_;
  WorkerEvents& events_;
  EventDecoder decoder_;
  WorkerOutcome outcome_;
  std::vector<uint64_t> artifact_bytes_;  // as the worker told, in the order of the artifacts
  WorkerEvent result_;
  bool begun_ = false;
  bool result_seen_ = false;
  size_t taken_ = 0;  // artifacts that are copied and told of, the first ones
  bool all_taken_ = false;
  double fraction_ = 0;
  uint64_t stages_ = 0;
  uint64_t log_bytes_ = 0;
  std::string printed_;               // the line that is not whole yet
  std::optional<int> worker_status_;  // as of waitpid, where the keeper told it
  std::optional<RunEnd> end_by_keeper_;
  std::optional<std::string> not_set_up_;  // why
};

}  // namespace npuc::worker

#endif  // NPUC_SERVER_WORKER_RUN_H_
