#ifndef NPUC_SERVER_JOBS_INDEXED_JOB_STORE_H_
#define NPUC_SERVER_JOBS_INDEXED_JOB_STORE_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compiler_core/base/mutex.h"
#include "server/jobs/job_index.h"
#include "server/jobs/job_store.h"

namespace npuc::jobs {

// A JobStore that keeps an index of what another stores. Thread-safe, as the other is.
class IndexedJobStore : public JobStore {
 public:
  // All must outlive this.
  IndexedJobStore(JobStore* inner, JobIndex* index) : inner_(inner), index_(index) {}

  // Puts what the store has already into the index, the newest first, and says that it is complete.
  // Takes seconds where there are a million; may run beside everything else. `is_stopping` may end
  // it early.
  absl::Status Load(const std::function<bool()>& is_stopping);
  // Looks at the jobs of writes that failed: they may be there all the same.
  void Settle();

  void Apply(std::shared_ptr<const JobChange> change, Done done) override;
  absl::StatusOr<Job> Read(absl::string_view job_id) const override { return inner_->Read(job_id); }
  absl::StatusOr<std::string> ReadConfig(absl::string_view job_id) const override {
    return inner_->ReadConfig(job_id);
  }
  absl::StatusOr<std::optional<std::string>> FindRequest(
      absl::string_view tenant, absl::string_view request_id) const override {
    return inner_->FindRequest(tenant, request_id);
  }
  absl::StatusOr<JobPage> List(const JobListQuery& query) const override {
    return inner_->List(query);
  }
  absl::StatusOr<std::vector<JobEvent>> ReadEvents(absl::string_view job_id, int64_t from_seq,
                                                   size_t max_count,
                                                   size_t max_bytes) const override {
    return inner_->ReadEvents(job_id, from_seq, max_count, max_bytes);
  }
  absl::Status ForEachLive(const std::function<absl::Status(LiveJob job)>& visit) const override {
    return inner_->ForEachLive(visit);
  }
  absl::StatusOr<size_t> Prune(absl::Time ended_before, size_t max_jobs) override;
  bool is_shared() const override { return inner_->is_shared(); }

 private:
  JobStore* const inner_;
  JobIndex* const index_;
  Mutex mutex_;
  std::vector<std::string> unsure_ NPUC_GUARDED_BY(mutex_);  // ids; of writes that failed
};

}  // namespace npuc::jobs

#endif  // NPUC_SERVER_JOBS_INDEXED_JOB_STORE_H_
