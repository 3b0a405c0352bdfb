#ifndef NPUC_SERVER_API_JOB_LIST_H_
#define NPUC_SERVER_API_JOB_LIST_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "npuc/v1/compile.pb.h"
#include "server/api/dependencies.h"
#include "server/auth/caller.h"
#include "server/jobs/job_index.h"
#include "server/jobs/service_error.h"

namespace npuc::api {

// The filters of a list request, for what the caller may see. What is wrong with them goes to
// `check`.
jobs::JobFilter ReadFilter(const auth::Caller& caller, const v1::ListCompileJobsRequest& request,
                           jobs::FieldChecker& check);

// Just after a start; RESOURCE_EXHAUSTED (SERVER_BUSY).
absl::Status IndexNotReady();

// ListCompileJobs.
absl::Status ListJobs(const ApiDependencies& deps, const auth::Caller& caller,
                      const v1::ListCompileJobsRequest& request,
                      v1::ListCompileJobsResponse* response);

// The job as calls answer it; of one that waits with its place.
void FillJob(const ApiDependencies& deps, const jobs::Job& job, v1::CompileJob* out);
// Does the same for a job that was just accepted, and waits for nobody.
void FillNewJob(const ApiDependencies& deps, const jobs::Job& job, v1::CompileJob* out);

}  // namespace npuc::api

#endif  // NPUC_SERVER_API_JOB_LIST_H_
