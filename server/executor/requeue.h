#ifndef NPUC_SERVER_EXECUTOR_REQUEUE_H_
#define NPUC_SERVER_EXECUTOR_REQUEUE_H_

#include "absl/status/statusor.h"
#include "server/executor/submission.h"
#include "server/jobs/job_service.h"

namespace npuc::executor {

// Submits a job that FAILED once more, as a new job of its tenant: same config, files, labels,
// priority and submitter. A second time gives the job of the first. Blocks. Errors: those of
// Submission::Submit (BLOB_MISSING: its files are gone), FAILED_PRECONDITION: it is in another
// state.
absl::StatusOr<jobs::JobService::Submitted> Requeue(const jobs::Job& job,
                                                    const jobs::JobService& jobs,
                                                    Submission& submission);

}  // namespace npuc::executor

#endif  // NPUC_SERVER_EXECUTOR_REQUEUE_H_
