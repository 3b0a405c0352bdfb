#include "server/executor/canary.h"

#include <atomic>
#include <future>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/executor/executor_test_util.h"
#include "server/jobs/local_board.h"
#include "server/jobs/memory_job_store.h"
#include "server/scheduler/fair_queue.h"

namespace npuc::executor {
namespace {

using ::testing::HasSubstr;

class CountingMetrics : public observe::NoMetrics {
 public:
  void Add(observe::Metric metric, Labels, double) override {
    if (metric == observe::Metric::kCanaryFailures) ++failures;
  }
  void Observe(observe::Metric metric, Labels, double) override {
    if (metric == observe::Metric::kCanarySeconds) ++successes;
  }
  int failures = 0;
  int successes = 0;
};

class CanaryTest : public ::testing::Test {
 protected:
  CanaryTest()
      : queue_(scheduler::MakeFairQueue(1)),
        jobs_({.now = [this] { return absl::FromUnixSeconds(now_seconds_); },
               .random = [this] { return ++random_; },
               .retry = {}},
              &store_, &board_),
        submission_({.parse_config = FakeParseConfig, .compiler_build_id = "build-1"}, &jobs_,
                    &inputs_, &cache_, &holds_),
        canary_({.patience = absl::Minutes(1),
                 .steady_now = [] { return absl::Now(); },
                 .is_stopping = [this] { return is_stopping_.load(); }},
                &submission_, &inputs_, &jobs_, &metrics_) {
    EXPECT_TRUE(jobs_.Recover(nullptr).ok());
  }

  std::future<absl::Status> Start() {
    return std::async(std::launch::async, [this] { return canary_.Run(); });
  }
  // The canary's job, as a slot gets it.
  jobs::JobService::Leased Lease() {
    while (true) {
      const auto leased = jobs_.TryLease();
      EXPECT_TRUE(leased.ok());
      if (leased->has_value()) return **leased;
      std::this_thread::yield();
    }
  }

  std::atomic<int64_t> now_seconds_ = 1'700'000'000;
  std::atomic<bool> is_stopping_ = false;
  uint64_t random_ = 0;
  jobs::MemoryJobStore store_;
  std::unique_ptr<jobs::JobQueue> queue_;
  jobs::LocalBoard board_{queue_.get(), absl::Minutes(5)};
  jobs::JobService jobs_;
  FakeInputs inputs_;
  FakeCache cache_;
  InputHolds holds_;
  Submission submission_;
  CountingMetrics metrics_;
  Canary canary_;
};

TEST_F(CanaryTest, GoesTheWayOfEveryJobAndIsToldHowItEnds) {
  auto ran = Start();
  jobs::JobService::Leased leased = Lease();
  EXPECT_EQ(leased.job->tenant, Canary::kTenant);
  EXPECT_TRUE(leased.job->spec.no_cache) << "a cached result would say nothing";
  EXPECT_TRUE(inputs_.Acquire(Canary::kTenant, leased.job->model().sha256).ok());
  ASSERT_TRUE(jobs_.Finish(leased.lease, {}, {.succeeded = true}).ok());
  EXPECT_TRUE(ran.get().ok());
  EXPECT_EQ(metrics_.successes, 1);

  ran = Start();
  leased = Lease();
  ASSERT_TRUE(jobs_
                  .Finish(leased.lease, {},
                          {.failure_kind = jobs::FailureKind::kInternal, .reason = "the reason"})
                  .ok());
  const absl::Status failed = ran.get();
  EXPECT_EQ(failed.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(failed.message()), HasSubstr("the reason"));
  EXPECT_EQ(metrics_.failures, 1);
}

TEST_F(CanaryTest, AFullQueueOrBusyWorkersSayNothingAboutTheDaemon) {
  auto waits = Start();
  while (jobs_.GetCounts().queued == 0) std::this_thread::yield();
  EXPECT_EQ(canary_.Run().code(), absl::StatusCode::kUnavailable) << "the queue has one place";
  now_seconds_ += 61;
  EXPECT_TRUE(jobs_.Tick().ok());
  EXPECT_EQ(waits.get().code(), absl::StatusCode::kUnavailable) << "no worker was free";
  EXPECT_EQ(metrics_.failures, 0);
}

TEST_F(CanaryTest, DoesNotHoldUpTheEnd) {
  auto waits = Start();
  while (jobs_.GetCounts().queued == 0) std::this_thread::yield();
  is_stopping_ = true;
  EXPECT_EQ(waits.get().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(metrics_.failures, 0);
}

TEST_F(CanaryTest, AStoreThatTakesNoUploadIsTold) {
  inputs_.SetFull();
  EXPECT_EQ(canary_.Run().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace npuc::executor
