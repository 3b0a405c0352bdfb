#include "server/executor/requeue.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"

namespace npuc::executor {

absl::StatusOr<jobs::JobService::Submitted> Requeue(const jobs::Job& job,
                                                    const jobs::JobService& jobs,
                                                    Submission& submission) {
  if (job.state != jobs::JobState::kFailed) {
    return absl::FailedPreconditionError(
        absl::StrCat("the job is ", jobs::JobStateName(job.state), ", not FAILED"));
  }
  SubmitRequest request;
  ASSIGN_OR_RETURN(request.config_text, jobs.ReadConfig(job.id));
  request.tenant = job.tenant;
  request.submitter = job.spec.submitter;
  request.request_id = absl::StrCat("requeue.", job.id);
  request.config_name = job.spec.config_name;
  request.model = job.model();
  request.side_inputs = {job.spec.inputs.begin() + 1, job.spec.inputs.end()};
  request.priority = job.spec.priority;
  request.labels = job.spec.labels;
  request.timeout = job.spec.timeout;
  request.no_cache = job.spec.no_cache;
  request.model_info_time_seconds = job.spec.model_info_time_seconds;
  request.trace = job.spec.trace;
  return submission.SubmitAndWait(request);
}

}  // namespace npuc::executor
