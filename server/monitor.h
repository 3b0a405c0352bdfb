#ifndef NPUC_SERVER_MONITOR_H_
#define NPUC_SERVER_MONITOR_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "compiler_core/base/mutex.h"
#include "server/log/log.h"
#include "server/observe/metrics.h"
#include "server/observe/readiness.h"
#include "server/observe/reminder.h"
#include "server/observe/watchdog.h"

namespace npuc::daemon {

struct MonitorOptions {
  observe::Watchdog* watchdog = nullptr;
  observe::Readiness* readiness = nullptr;
  observe::Metrics* metrics = nullptr;
  const log::Logger* log = nullptr;
  std::string data_dir;
  uint64_t disk_reserve_bytes = 0;
  uint64_t memory_limit_bytes = 0;              // 0: none
  std::function<absl::Status()> worker_health;  // whether workers can be started; quick
  std::function<absl::Status()> probe_stores;   // may block
  std::function<absl::Status()> run_canary;     // may block; UNAVAILABLE: nothing was found out
  absl::Duration canary_period = absl::Minutes(5);
  std::function<void(bool over)> on_memory;  // whether the daemon is over its memory limit
  std::function<void()> on_look;             // after each look, when readiness may have changed
};

// Keeps readiness up to date by two threads: one that waits for nothing, and looks at the watchdog,
// the workers and the memory; one that tries the store, the disk and a compile, and is watched by
// the first.
class Monitor {
 public:
  explicit Monitor(MonitorOptions options);
  // Waits for a probe that is under way.
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  bool stopping() const;

 private:
  void LookLoop();
  void ProbeLoop();
  void Look();
  // Whether the stores can be written and the disk has room.
  bool Probe();
  void RunCanary();
  absl::Status CheckDisk() const;
  // False: it stops.
  bool Sleep(absl::Duration duration);

  const MonitorOptions options_;
  std::set<std::string> stuck_;  // of the looking thread
  bool over_memory_ = false;     // of the looking thread
  // Of the probing thread.
  absl::Time next_canary_ = absl::InfinitePast();
  observe::Reminder blind_;  // of canaries that found nothing out
  mutable Mutex mutex_;
  CondVar wake_;
  bool stopping_ NPUC_GUARDED_BY(mutex_) = false;
  std::thread looker_;
  std::thread prober_;
};

// Resident bytes of this process.
uint64_t ResidentBytes();

}  // namespace npuc::daemon

#endif  // NPUC_SERVER_MONITOR_H_
