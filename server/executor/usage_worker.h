#ifndef NPUC_SERVER_EXECUTOR_USAGE_WORKER_H_
#define NPUC_SERVER_EXECUTOR_USAGE_WORKER_H_

#include "server/executor/usage_book.h"
#include "server/jobs/job_service.h"
#include "server/worker/worker_pool.h"

namespace npuc::executor {

// Passes runs on, and adds their processor time to the use of the tenant whose job it is.
// Thread-safe, as the other is.
class UsageWorkers : public worker::WorkerRunner {
 public:
  // All must outlive this.
  UsageWorkers(worker::WorkerRunner* inner, const jobs::JobService* jobs, UsageBook* book)
      : inner_(inner), jobs_(jobs), book_(book) {}

  absl::StatusOr<worker::WorkerOutcome> Run(const worker::WorkerJob& job,
                                            worker::WorkerEvents& events) override;
  bool Cancel(absl::string_view run_id) override { return inner_->Cancel(run_id); }

 private:
  worker::WorkerRunner* const inner_;
  const jobs::JobService* const jobs_;
  UsageBook* const book_;
};

}  // namespace npuc::executor

#endif  // NPUC_SERVER_EXECUTOR_USAGE_WORKER_H_
