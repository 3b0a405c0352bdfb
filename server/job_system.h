#ifndef NPUC_SERVER_JOB_SYSTEM_H_
#define NPUC_SERVER_JOB_SYSTEM_H_

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/api/admin.h"
#include "server/auth/authenticator.h"
#include "server/daemon_context.h"
#include "server/executor/config_memo.h"
#include "server/executor/failure_bundles.h"
#include "server/executor/inspections.h"
#include "server/executor/job_runner.h"
#include "server/executor/submission.h"
#include "server/executor/transfers.h"
#include "server/executor/usage_book.h"
#include "server/executor/usage_worker.h"
#include "server/job_home.h"
#include "server/jobs/index_loader.h"
#include "server/jobs/indexed_job_store.h"
#include "server/jobs/job_index.h"
#include "server/jobs/job_service.h"
#include "server/jobs/observed_job_store.h"
#include "server/stores.h"
#include "server/worker_fleet.h"

namespace npuc::daemon {

// The time of a job whose request does not say.
inline constexpr absl::Duration kDefaultTimeout = absl::Hours(1);

// Everything between a request and its stored result; the fronts bring requests, the dispatcher
// runs what waits. `context`, `home`, `fleet`, `stores` and `usage` must outlive it.
struct JobSystem {
  // model_info_time_seconds: SOURCE_DATE_EPOCH, where it is set.
  JobSystem(const DaemonContext& context, JobHome& home, WorkerFleet& fleet, const Stores& stores,
            executor::UsageBook* usage, std::optional<int64_t> model_info_time_seconds);
  JobSystem(const JobSystem&) = delete;
  JobSystem& operator=(const JobSystem&) = delete;

  // Deletes what runs of an earlier process left.
  absl::Status CleanWorkDir();
  // Takes the stored jobs back, and follows the changes of other daemons. Before the first run.
  absl::Status Recover();
  void Sample(observe::Metrics& metrics);
  void OnJobEnded(const jobs::Job& job);
  void OnIndexed(const absl::Status& loaded);
  // By other daemons.
  void OnJobsChanged(const std::vector<jobs::Job>& changed);
  // Those of the tenants file, and those with jobs; by name.
  std::vector<api::AdminControls::TenantNow> Tenants(
      const auth::Authenticator& authenticator) const;
  // One that may have none of both.
  api::AdminControls::TenantNow FindTenant(const std::string& name) const;

  const DaemonContext& context;
  JobHome& home;
  const Stores& stores;
  std::mt19937_64 random{std::random_device{}()};
  executor::InputHolds holds;
  executor::ConfigMemo configs;
  executor::FailureBundles bundles;
  jobs::ObservedJobStore store;
  jobs::JobIndex index;
  jobs::IndexedJobStore indexed;
  jobs::JobService jobs;
  executor::UsageBook* const usage;
  executor::UsageWorkers workers;
  executor::JobRunner runner;
  executor::Submission submission;
  executor::Inspections inspections;
  executor::Uploads uploads;
  executor::Downloads downloads;
  jobs::IndexLoader index_loader;

 private:
  api::AdminControls::TenantNow Describe(
      const std::string& name, const std::map<std::string, JobHome::Counts>& counts) const;
};

}  // namespace npuc::daemon

#endif  // NPUC_SERVER_JOB_SYSTEM_H_
