#ifndef NPUC_SERVER_JOBS_MEMORY_JOB_STORE_H_
#define NPUC_SERVER_JOBS_MEMORY_JOB_STORE_H_

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "server/jobs/job_store.h"

namespace npuc {

// A JobStore in memory, for tests and simulation: it keeps the stored form, so that what does not
// survive encoding is found here too. A copy of the store is what a crash leaves.
class MemoryJobStore : public JobStore {
 public:
  absl::Status Apply(const JobChange& change) override;
  absl::StatusOr<Job> Read(absl::string_view job_id) const override;
  absl::StatusOr<std::string> ReadConfig(absl::string_view job_id) const override;
  absl::StatusOr<std::optional<std::string>> FindRequest(
      absl::string_view request_id) const override;
  absl::StatusOr<JobPage> List(const JobListQuery& query) const override;
  absl::StatusOr<std::vector<JobEvent>> ReadEvents(absl::string_view job_id, int64_t from_seq,
                                                   size_t max_count,
                                                   size_t max_bytes) const override;
  absl::Status ForEachLive(const std::function<absl::Status(Job job)>& visit) const override;

  // The next `count` calls of Apply fail with INTERNAL and change nothing.
  void FailNextApplies(int count);

 private:
  struct Record {
    std::string job;
    std::string config_text;
    std::vector<std::string> events;
  };

  mutable std::mutex mutex_;
  std::map<std::string, Record> records_;        // guarded by mutex_
  std::map<std::string, std::string> requests_;  // guarded by mutex_
  int failures_ = 0;                             // guarded by mutex_
};

}  // namespace npuc

#endif  // NPUC_SERVER_JOBS_MEMORY_JOB_STORE_H_
