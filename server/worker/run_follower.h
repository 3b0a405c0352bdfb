#ifndef NPUC_SERVER_WORKER_RUN_FOLLOWER_H_
#define NPUC_SERVER_WORKER_RUN_FOLLOWER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cache/posix.h"
#include "compiler_core/base/mutex.h"
#include "server/worker/run.h"
#include "server/worker/warm_parent.h"
#include "server/worker/worker_pool.h"

namespace npuc::worker {

// A run under way: what the warm parent's thread and Cancel tell the thread that follows it.
// Thread-safe.
class ActiveRun {
 public:
  struct State {
    std::shared_ptr<const ParentProcess> parent;  // that the run was sent to
    int pid = 0;                                  // of the keeper, while it lives
    bool cancelled = false;
    bool started = false;
    int spawn_error = 0;
    std::optional<RunEnd> end;
  };

  static absl::StatusOr<std::shared_ptr<ActiveRun>> Make(uint64_t number);

  // Names the run to the warm parent.
  uint64_t number() const { return number_; }
  State state() const;
  // Changes the state and wakes the follower.
  void Change(const std::function<void(State& state)>& change);
  // An eventfd, readable after each change.
  int wake_fd() const { return wake_.get(); }
  void ClearWake() const;

 private:
  ActiveRun(uint64_t number, cache::UniqueFd wake) : number_(number), wake_(std::move(wake)) {}

  const uint64_t number_;
  const cache::UniqueFd wake_;
  mutable Mutex mutex_;
  State state_ NPUC_GUARDED_BY(mutex_);
};

// Follows one run, which was sent to `parent`, from then to its end. Used by one thread, once.
class RunFollower {
 public:
  // All must outlive the follower. let_go: asked when the keeper has told of the end and is alone;
  // true: others see to its last steps.
  RunFollower(const WorkerPoolOptions& options, const WorkerJob& job, WorkerEvents& events,
              const ActiveRun& run, const ParentProcess& parent, RunChannels& channels,
              std::function<bool()> let_go);

  // A status only where no compile was begun: RESOURCE_EXHAUSTED (it could not be forked),
  // UNAVAILABLE (its walls could not be built, or the worker ended before).
  absl::StatusOr<WorkerOutcome> Follow();

 private:
  bool Ended(RunEnd& end);
  void Watch();
  void KillFor(KillReason reason);
  void SendKill();
  void WaitAndRead(int wait_ms);
  void OnBell();
  bool ReadOnce(cache::UniqueFd& fd, bool is_events);
  void ReadRest(cache::UniqueFd& fd, bool is_events);
  void EndEvents();
  bool ReadWatch();
  void Drain();

  const WorkerPoolOptions& options_;
  const WorkerJob& job_;
  WorkerEvents& events_;
  const ActiveRun& run_;
  const ParentProcess& parent_;
  RunChannels& channels_;
  const std::function<bool()> let_go_;
  RunReport report_;
  const absl::Time begin_;
  absl::Duration start_time_ = absl::ZeroDuration();
  absl::Time next_look_;
  KillReason reason_ = KillReason::kNone;
  std::string detail_;
  bool started_ = false;
  bool cancelled_ = false;
  int spawn_error_ = 0;
  bool gathers_ = false;  // what came last is read; the next may gather
  size_t looks_ = 0;      // for artifacts, as the bell rang
  bool awaiting_ = true;  // an answer of the warm parent, since asked_
  absl::Time asked_;
};

}  // namespace npuc::worker

#endif  // NPUC_SERVER_WORKER_RUN_FOLLOWER_H_
