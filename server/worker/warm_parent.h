#ifndef NPUC_SERVER_WORKER_WARM_PARENT_H_
#define NPUC_SERVER_WORKER_WARM_PARENT_H_

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cache/posix.h"
#include "compiler_core/base/mutex.h"
#include "server/worker/protocol.h"
#include "server/worker/sandbox.h"
#include "server/worker/worker_pool.h"

namespace npuc::worker {

// One process of npuc-worker that forks the runs. All but `alive` is set before others see it.
struct ParentProcess {
  pid_t pid = 0;
  cache::UniqueFd handle;  // a pidfd: a signal through it never hits another process
  cache::UniqueFd control;
  SandboxReport sandbox;
  std::atomic<bool> alive = true;  // false before WarmParent::Listener::on_death is called

  void Kill() const;
  // Sends a message with descriptors; waits at most `patience` for room in the queue.
  absl::Status Send(const ControlMessage& message, const std::vector<int>& fds,
                    absl::Duration patience) const;
};

// Keeps a warm parent alive: one thread starts the process, reads its answers, and starts another
// one when it has died. Thread-safe.
//
// The program is opened once, at the start, and every later process is made from that descriptor:
// an upgrade that installs another file over its path changes nothing for this daemon. Where that
// file cannot be started any more, the one that then lies at the path is tried.
class WarmParent {
 public:
  // Called on the thread of the WarmParent.
  struct Listener {
    std::function<void(const ControlMessage& message)> on_message;
    std::function<void(const ParentProcess& dead)> on_death;
  };

  // Waits until the first process is ready. `options` must outlive the WarmParent. Errors as
  // WorkerPool::Start.
  static absl::StatusOr<std::unique_ptr<WarmParent>> Start(const WorkerPoolOptions& options,
                                                           Listener listener);
  // Ends the process and waits for its end.
  ~WarmParent();
  WarmParent(const WarmParent&) = delete;
  WarmParent& operator=(const WarmParent&) = delete;

  // Waits at most `patience` for a process that is alive. UNAVAILABLE: there is none, and why.
  // Does not wait where the last start failed.
  absl::StatusOr<std::shared_ptr<const ParentProcess>> Await(absl::Duration patience);
  // Not OK: the last start failed, or processes die soon after their start, again and again. What
  // to do is in the message.
  absl::Status Health() const;
  // No process is started any more.
  void ShutDown();

  // The walls of the first process; a later one with fewer of them is refused.
  const SandboxReport& sandbox() const { return sandbox_; }
  uint64_t restarts() const;
  pid_t pid() const;  // 0: none at the moment

 private:
  using Process = std::shared_ptr<ParentProcess>;

  WarmParent(const WorkerPoolOptions& options, Listener listener, cache::UniqueFd program);

  absl::StatusOr<Process> StartProcess();
  absl::StatusOr<Process> StartFrom(int program) const;
  absl::StatusOr<SandboxReport> AwaitReady(const ParentProcess& fresh) const;
  absl::Status CheckSandbox(const SandboxReport& found) const;
  void Supervise(Process first);
  void ReadUntilDeath(ParentProcess& process);
  Process Restart();

  const WorkerPoolOptions& options_;
  const Listener listener_;
  cache::UniqueFd program_;  // O_PATH
  SandboxReport sandbox_;    // set before the thread is started
  bool has_sandbox_ = false;
  mutable Mutex mutex_;
  CondVar changed_;
  Process process_ NPUC_GUARDED_BY(mutex_);  // null: none at the moment
  bool shut_down_ NPUC_GUARDED_BY(mutex_) = false;
  uint64_t starts_ NPUC_GUARDED_BY(mutex_) = 0;
  absl::Status trouble_ NPUC_GUARDED_BY(mutex_);  // why the last start failed
  absl::Time last_start_ NPUC_GUARDED_BY(mutex_);
  // So many processes in a row died soon after their start.
  int short_lives_ NPUC_GUARDED_BY(mutex_) = 0;
  absl::Time last_death_ NPUC_GUARDED_BY(mutex_) = absl::InfinitePast();
  std::string last_end_ NPUC_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace npuc::worker

#endif  // NPUC_SERVER_WORKER_WARM_PARENT_H_
