#include "server/executor/usage_worker.h"

#include "server/executor/canary.h"

namespace npuc::executor {

absl::StatusOr<worker::WorkerOutcome> UsageWorkers::Run(const worker::WorkerJob& job,
                                                        worker::WorkerEvents& events) {
  absl::StatusOr<worker::WorkerOutcome> outcome = inner_->Run(job, events);
  if (!outcome.ok()) return outcome;
  // A run is called "JOB.FENCE"; an inspection is nobody's job.
  const absl::string_view id = absl::string_view(job.run_id).substr(0, job.run_id.rfind('.'));
  if (!jobs::IsValidJobId(id)) return outcome;
  const auto found = jobs_->Get(id);
  if (found.ok() && (*found)->tenant != Canary::kTenant) {
    book_->Add((*found)->tenant,
               {.processor_micros = absl::ToInt64Microseconds(outcome->cpu_time)});
  }
  return outcome;
}

}  // namespace npuc::executor
