#ifndef NPUC_SERVER_EXECUTOR_ACCESS_H_
#define NPUC_SERVER_EXECUTOR_ACCESS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/auth/caller.h"
#include "server/jobs/job_service.h"

namespace npuc::executor {

// The one way by which calls get at a job. A job that the caller may not see is NOT_FOUND, and its
// answer is that for a job that does not exist, to the byte; both are looked up first, so that they
// take the same time.
absl::StatusOr<std::shared_ptr<const jobs::Job>> FindJob(const jobs::JobService& jobs,
                                                         const auth::Caller& caller,
                                                         absl::string_view job_id);

}  // namespace npuc::executor

#endif  // NPUC_SERVER_EXECUTOR_ACCESS_H_
