#include "server/executor/access.h"

#include "compiler_core/base/status.h"
#include "server/jobs/service_error.h"

namespace npuc::executor {

absl::StatusOr<std::shared_ptr<const jobs::Job>> FindJob(const jobs::JobService& jobs,
                                                         const auth::Caller& caller,
                                                         absl::string_view job_id) {
  ASSIGN_OR_RETURN(std::shared_ptr<const jobs::Job> job, jobs.Get(job_id));
  if (!caller.Sees(job->tenant)) return jobs::JobNotFound(job_id);
  return job;
}

}  // namespace npuc::executor
