#ifndef NPUC_SERVER_EXECUTOR_CANARY_H_
#define NPUC_SERVER_EXECUTOR_CANARY_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/executor/submission.h"
#include "server/jobs/job_service.h"
#include "server/observe/metrics.h"

namespace npuc::executor {

// A small compile of the daemon's own, sent the way of every job: upload, submit, queue, worker,
// artifacts. It is a tenant's job like any other, so it also shows that the queue moves. Not
// thread-safe.
class Canary {
 public:
  // No tenants file can name this one: names begin with a letter there.
  static constexpr char kTenant[] = "0canary";

  struct Options {
    std::string owner = jobs::JobServiceOptions().owner;  // the daemon that it tests
    absl::Duration patience = absl::Minutes(1);           // then the job is EXPIRED
    std::function<absl::Time()> steady_now;
    // Asked while it waits; true: give up. May be null.
    std::function<bool()> is_stopping = nullptr;
  };
  // All must outlive this.
  Canary(Options options, Submission* submission, cache::InputStore* inputs, jobs::JobService* jobs,
         observe::Metrics* metrics);

  // Blocks until the job has ended. UNAVAILABLE: nothing was found out, since the queue had no
  // place or other jobs held all workers for so long; CANCELLED: is_stopping. Other errors: this
  // daemon cannot compile now.
  absl::Status Run();

 private:
  absl::Status Upload();
  absl::StatusOr<std::string> Submit();
  absl::Status Await(const std::string& job_id);

  const Options options_;
  Submission* const submission_;
  cache::InputStore* const inputs_;
  jobs::JobService* const jobs_;
  observe::Metrics* const metrics_;
  const cache::BlobDigest model_;
};

}  // namespace npuc::executor

#endif  // NPUC_SERVER_EXECUTOR_CANARY_H_
