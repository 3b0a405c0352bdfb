#ifndef NPUC_SERVER_JOBS_MEMORY_JOB_STORE_H_
#define NPUC_SERVER_JOBS_MEMORY_JOB_STORE_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler_core/base/mutex.h"
#include "server/jobs/job_store.h"

namespace npuc::jobs {

// A JobStore in memory, for tests and simulation: it keeps the stored form, so that what does not
// survive encoding is found here too.
class MemoryJobStore : public JobStore {
 public:
  void Apply(std::shared_ptr<const JobChange> change, Done done) override {
    done(ApplyNow(*change));
  }
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

  absl::Status ApplyNow(const JobChange& change);

  // A copy: what a crash leaves.
  std::unique_ptr<MemoryJobStore> Clone() const;

  // The next `count` calls of Apply fail with INTERNAL and change nothing.
  void FailNextApplies(int count);

 private:
  struct Record {
    std::string job;
    std::string live;  // EncodeLiveJob; empty: it has ended
    Job key;           // id, tenant, request_id, revision, last_seq, state and end_time alone
    std::string config_text;
    std::vector<std::string> events;
  };

  mutable Mutex mutex_;
  std::map<std::string, Record> records_ NPUC_GUARDED_BY(mutex_);
  using Request = std::pair<std::string, std::string>;  // tenant, request id
  std::map<Request, std::string> requests_ NPUC_GUARDED_BY(mutex_);
  std::set<std::pair<absl::Time, std::string>> ended_ NPUC_GUARDED_BY(mutex_);  // by end_time
  int failures_ NPUC_GUARDED_BY(mutex_) = 0;
};

}  // namespace npuc::jobs

#endif  // NPUC_SERVER_JOBS_MEMORY_JOB_STORE_H_
