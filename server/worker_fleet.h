#ifndef NPUC_SERVER_WORKER_FLEET_H_
#define NPUC_SERVER_WORKER_FLEET_H_

#include <memory>

#include "absl/status/statusor.h"
#include "server/daemon_context.h"
#include "server/worker/worker_cgroup.h"
#include "server/worker/worker_pool.h"

namespace npuc::daemon {

// The workers, what bounds them together, and what counts their runs.
struct WorkerFleet {
  // Logs which walls are around the workers, and what is lost without those that are missing.
  static absl::StatusOr<std::unique_ptr<WorkerFleet>> Start(const DaemonContext& context);

  void Sample(observe::Metrics& metrics) const;

  std::unique_ptr<worker::WorkerCgroup> cgroup;  // null: none
  std::unique_ptr<worker::WorkerPool> pool;
  std::unique_ptr<worker::WorkerRunner> runner;  // the pool, with its runs counted
};

}  // namespace npuc::daemon

#endif  // NPUC_SERVER_WORKER_FLEET_H_
