#ifndef NPUC_SERVER_EXECUTOR_METERED_WORKER_H_
#define NPUC_SERVER_EXECUTOR_METERED_WORKER_H_

#include <functional>
#include <memory>

#include "absl/time/time.h"
#include "server/observe/metrics.h"
#include "server/worker/worker_pool.h"

namespace npuc::executor {

// A WorkerRunner that counts: outcomes, times of runs, starts and stages. `inner` and `metrics`
// must outlive it.
std::unique_ptr<worker::WorkerRunner> MeterWorkers(worker::WorkerRunner* inner,
                                                   observe::Metrics* metrics,
                                                   std::function<absl::Time()> steady_now);

}  // namespace npuc::executor

#endif  // NPUC_SERVER_EXECUTOR_METERED_WORKER_H_
