#ifndef NPUC_SERVER_JOBS_OBSERVED_JOB_STORE_H_
#define NPUC_SERVER_JOBS_OBSERVED_JOB_STORE_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/jobs/job_store.h"
#include "server/observe/metrics.h"
#include "server/observe/watchdog.h"

namespace npuc::jobs {

// A JobStore that says how long each operation of another takes, counts its errors, and lets the
// watchdog see one that does not end. Thread-safe, as the other is.
class ObservedJobStore : public JobStore {
 public:
  // All must outlive this.
  ObservedJobStore(JobStore* inner, observe::Metrics* metrics, observe::Watchdog* watchdog,
                   std::function<absl::Time()> steady_now)
      : inner_(inner), metrics_(metrics), watchdog_(watchdog), now_(std::move(steady_now)) {}

  void Apply(std::shared_ptr<const JobChange> change, Done done) override;
  absl::StatusOr<Job> Read(absl::string_view job_id) const override;
  absl::StatusOr<std::string> ReadConfig(absl::string_view job_id) const override;
  absl::StatusOr<std::optional<std::string>> FindRequest(
      absl::string_view tenant, absl::string_view request_id) const override;
  absl::StatusOr<JobPage> List(const JobListQuery& query) const override;
  absl::StatusOr<std::vector<JobEvent>> ReadEvents(absl::string_view job_id, int64_t from_seq,
                                                   size_t max_count,
                                                   size_t max_bytes) const override;
  absl::Status ForEachLive(const std::function<absl::Status(LiveJob job)>& visit) const override;
  absl::StatusOr<size_t> Prune(absl::Time ended_before, size_t max_jobs) override;
  bool is_shared() const override { return inner_->is_shared(); }

 private:
  template <typename Call>
  auto Observe(absl::string_view operation, Call call) const;
  void Count(absl::string_view operation, absl::Time begin, const absl::Status& status) const;

  JobStore* const inner_;
  observe::Metrics* const metrics_;
  observe::Watchdog* const watchdog_;
  const std::function<absl::Time()> now_;
};

}  // namespace npuc::jobs

#endif  // NPUC_SERVER_JOBS_OBSERVED_JOB_STORE_H_
