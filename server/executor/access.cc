#include "server/executor/access.h"

#include "compiler_core/base/status.h"
#include "server/jobs/service_error.h"

namespace npuc {

absl::StatusOr<std::shared_ptr<const Job>> FindJob(const JobService& jobs, const Caller& caller,
                                                   absl::string_view job_id) {
  ASSIGN_OR_RETURN(std::shared_ptr<const Job> job, jobs.Get(job_id));
  if (!caller.Sees(job->tenant)) return JobNotFound(job_id);
  return job;
}

}  // namespace npuc
