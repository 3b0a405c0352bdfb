#include "server/jobs/index_loader.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/jobs/job_index.h"
#include "server/jobs/job_store.h"

namespace npuc::jobs {
namespace {

using ::testing::ElementsAre;

// Its lists fail so often, and then have no job.
class BrokenStore : public JobStore {
 public:
  explicit BrokenStore(int failures) : failures_(failures) {}

  absl::StatusOr<JobPage> List(const JobListQuery& query) const override {
    if (failures_-- > 0) return absl::UnavailableError("away");
    return JobPage();
  }
  void Apply(std::shared_ptr<const JobChange> change, Done done) override {
    done(absl::UnimplementedError(""));
  }
  absl::StatusOr<Job> Read(absl::string_view job_id) const override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<std::string> ReadConfig(absl::string_view job_id) const override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<std::optional<std::string>> FindRequest(
      absl::string_view tenant, absl::string_view request_id) const override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<std::vector<JobEvent>> ReadEvents(absl::string_view job_id, int64_t from_seq,
                                                   size_t max_count,
                                                   size_t max_bytes) const override {
    return absl::UnimplementedError("");
  }
  absl::Status ForEachLive(const std::function<absl::Status(LiveJob job)>& visit) const override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<size_t> Prune(absl::Time ended_before, size_t max_jobs) override {
    return absl::UnimplementedError("");
  }

 private:
  mutable int failures_;
};

// The results of a loader.
class Tries {
 public:
  void Add(const absl::Status& loaded) {
    const MutexLock lock(mutex_);
    tries_.push_back(loaded.ok());
    changed_.NotifyAll();
  }
  std::vector<bool> Await(size_t count) {
    const MutexLock lock(mutex_);
    while (tries_.size() < count) changed_.Wait(mutex_);
    return tries_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<bool> tries_ NPUC_GUARDED_BY(mutex_);
};

TEST(IndexLoaderTest, TriesAgainUntilTheStoreAnswers) {
  BrokenStore inner(/*failures=*/2);
  JobIndex index;
  IndexedJobStore store(&inner, &index);
  Tries tries;
  IndexLoader loader(&store, {.pause = absl::Milliseconds(1),
                              .on_try = [&](const absl::Status& loaded) { tries.Add(loaded); }});
  EXPECT_FALSE(index.is_complete());
  loader.Start();
  EXPECT_THAT(tries.Await(3), ElementsAre(false, false, true));
  EXPECT_TRUE(index.is_complete());
  loader.Start();
  EXPECT_THAT(tries.Await(4), ElementsAre(false, false, true, true));
}

TEST(IndexLoaderTest, EndsWhileItWaits) {
  BrokenStore inner(/*failures=*/1000);
  JobIndex index;
  IndexedJobStore store(&inner, &index);
  Tries tries;
  IndexLoader loader(&store, {.pause = absl::Hours(1),
                              .on_try = [&](const absl::Status& loaded) { tries.Add(loaded); }});
  loader.Start();
  EXPECT_THAT(tries.Await(1), ElementsAre(false));
}

}  // namespace
}  // namespace npuc::jobs
