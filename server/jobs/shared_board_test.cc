// Two daemons on one store and one board.
#include <functional>
#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/jobs/job_service.h"
#include "server/jobs/local_board.h"
#include "server/jobs/memory_job_store.h"
#include "server/scheduler/fair_queue.h"

namespace npuc::jobs {
namespace {

// A store that does something once before the next write.
class SharedStore : public MemoryJobStore {
 public:
  bool is_shared() const override { return true; }
  void Apply(std::shared_ptr<const JobChange> change, Done done) override {
    if (before_write) std::exchange(before_write, nullptr)();
    const absl::Status written = ApplyNow(*change);
    done(before_answer ? std::exchange(before_answer, nullptr)(change->job.id) : written);
  }
  using MemoryJobStore::ApplyNow;
  std::function<void()> before_write;
  // The next write is made, but nobody knows; what it returns is the answer.
  std::function<absl::Status(const std::string& job_id)> before_answer;
};

class SharedBoardTest : public ::testing::Test {
 protected:
  static constexpr absl::Duration kTtl = absl::Minutes(1);

  SharedBoardTest() {
    EXPECT_TRUE(a_.Recover(nullptr).ok());
    EXPECT_TRUE(b_.Recover(nullptr).ok());
  }
  JobServiceOptions Options(const std::string& owner) {
    return {.owner = owner,
            .now = [this] { return now_; },
            .random = [this] { return ++random_; },
            .retry = {},
            .lease_ttl = kTtl};
  }
  static NewJob Request(const std::string& key, const std::string& pinned_to = "") {
    NewJob request;
    request.cache_key = key;
    request.output_file = "model.h";
    request.spec.inputs = {{.role = "MODEL_FILE", .name = "m.pb", .sha256 = "s", .md5 = "m"}};
    request.spec.timeout = absl::Hours(1);
    request.spec.pinned_to = pinned_to;
    return request;
  }
  std::string Submit(const std::string& key, const std::string& pinned_to = "") {
    const auto submitted = a_.SubmitAndWait(Request(key, pinned_to));
    EXPECT_TRUE(submitted.ok()) << submitted.status();
    return submitted->job->id;
  }
  static JobService::Leased MustLease(JobService& daemon) {
    auto leased = daemon.TryLease();
    const bool has_job = leased.ok() && leased->has_value();
    EXPECT_TRUE(has_job);
    return has_job ? **std::move(leased) : JobService::Leased();
  }
  static absl::Status Append(JobService& daemon, const JobService::Leased& leased) {
    return daemon.Append(leased.lease, {LogEvent{"line"}});
  }
  Job JobOf(const std::string& id) { return *store_.Read(id); }

  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  uint64_t random_ = 0;
  SharedStore store_;
  scheduler::FairQueue queue_{{.max_queued = 100, .slots = 4}};
  LocalBoard board_{&queue_, kTtl};
  JobService a_{Options("a"), &store_, &board_};
  JobService b_{Options("b"), &store_, &board_};
};

TEST_F(SharedBoardTest, WhatOneAcceptsTheOtherRunsAndEnds) {
  const std::string id = Submit("key");
  const auto leased = MustLease(b_);
  EXPECT_EQ(JobOf(id).owner, "b");
  EXPECT_EQ(JobOf(id).lease_until, now_ + kTtl);
  EXPECT_TRUE(absl::IsAborted(Append(a_, leased))) << "the lease is b's";
  ASSERT_TRUE(b_.Finish(leased.lease, {}, {.succeeded = true}).ok());
  EXPECT_EQ((*a_.Get(id))->state, JobState::kSucceeded);
  EXPECT_EQ(JobOf(id).owner, "");
}

TEST_F(SharedBoardTest, ADaemonThatStartsLeavesTheRunsOfOthersAlone) {
  Submit("of b");
  Submit("of a");
  const auto of_b = MustLease(b_);
  const auto of_a = MustLease(a_);
  JobService again(Options("a"), &store_, &board_);
  ASSERT_TRUE(again.Recover(nullptr).ok());
  EXPECT_TRUE(Append(b_, of_b).ok());
  EXPECT_TRUE(absl::IsAborted(Append(a_, of_a)));
  EXPECT_EQ(JobOf(of_a.lease.job_id).state, JobState::kQueued);
  EXPECT_EQ(JobOf(of_a.lease.job_id).daemon_losses, 1);
}

TEST_F(SharedBoardTest, ACancelThroughTheOtherDaemonEndsTheRun) {
  const std::string id = Submit("key");
  const auto leased = MustLease(b_);
  int abandoned = 0;
  b_.SetAbandonListener([&](const Lease&) { ++abandoned; });
  ASSERT_EQ((*a_.Cancel(id, "why"))->state, JobState::kCancelled);
  ASSERT_TRUE(b_.Tick().ok());
  EXPECT_EQ(abandoned, 1);
  EXPECT_FALSE(b_.Renew(leased.lease));
}

TEST_F(SharedBoardTest, TheLeaseOfADaemonThatFellSilentIsTakenBack) {
  const std::string id = Submit("key");
  const auto leased = MustLease(a_);
  now_ += 2 * kTtl;
  ASSERT_TRUE(b_.Tick().ok());
  EXPECT_EQ(JobOf(id).daemon_losses, 1);
  const auto next = MustLease(b_);
  EXPECT_EQ(next.lease.fence, leased.lease.fence + 1);
  EXPECT_FALSE(a_.Renew(leased.lease));
  EXPECT_TRUE(absl::IsAborted(Append(a_, leased)));
  EXPECT_TRUE(absl::IsAborted(a_.Finish(leased.lease, {}, {.succeeded = true})));
  EXPECT_TRUE(b_.Finish(next.lease, {}, {.succeeded = true}).ok());
}

TEST_F(SharedBoardTest, ALeaseThatARunningDaemonRenewsStays) {
  Submit("key");
  const auto leased = MustLease(a_);
  for (int i = 0; i < 8; ++i) {
    now_ += kTtl / 2;
    EXPECT_TRUE(a_.Renew(leased.lease));
    ASSERT_TRUE(a_.Tick().ok());
    ASSERT_TRUE(b_.Tick().ok());
    EXPECT_GT(JobOf(leased.lease.job_id).lease_until, now_) << "as the store has it";
  }
  EXPECT_TRUE(Append(a_, leased).ok());
}

// While b takes back one lease of a, a stores a lease for a claim that b takes back next.
TEST_F(SharedBoardTest, AClaimThatIsTakenGetsNoLease) {
  Submit("lost");
  const std::string late = Submit("late");
  MustLease(a_);
  auto claim = *a_.TryClaim();
  ASSERT_TRUE(claim.has_value());
  now_ += 2 * kTtl;
  store_.before_write = [&] {
    const auto leased = claim->Lease();
    EXPECT_TRUE(leased.ok() && !leased->has_value()) << leased.status();
  };
  ASSERT_TRUE(b_.Tick().ok());
  EXPECT_EQ(JobOf(late).state, JobState::kQueued);
  EXPECT_EQ(JobOf(late).daemon_losses, 0);
  MustLease(b_);
  MustLease(b_);
}

// While b takes back one lease of a, a passes another run that b takes back next on to a follower.
// A write that had no answer lands behind the next claim of the same daemon.
TEST_F(SharedBoardTest, ALeaseThatIsStoredLateIsHandedBack) {
  const std::string id = Submit("key");
  std::optional<JobService::Claim> claim = *a_.TryClaim();
  ASSERT_TRUE(claim.has_value());
  store_.before_write = [&] {
    const auto late = LeaseJob(JobOf(id), "a", now_ + kTtl, now_);
    ASSERT_TRUE(late.has_value());
    EXPECT_TRUE(store_.ApplyNow(*late).ok());
  };
  EXPECT_FALSE((*claim->Lease()).has_value());
  EXPECT_EQ(JobOf(id).state, JobState::kRunning);
  EXPECT_TRUE(a_.Tick().ok());
  EXPECT_EQ(JobOf(id).state, JobState::kQueued);
  EXPECT_EQ(MustLease(b_).lease.job_id, id);
}

TEST_F(SharedBoardTest, ARunThatIsTakenIsNotPassedOn) {
  Submit("lost");
  const std::string first = Submit("key");
  const std::string follower = Submit("key");
  MustLease(a_);
  const auto leased = MustLease(a_);
  EXPECT_EQ(leased.lease.job_id, first);
  now_ += 2 * kTtl;
  store_.before_write = [&] { EXPECT_TRUE(a_.Cancel(first, "why").ok()); };
  ASSERT_TRUE(b_.Tick().ok());
  EXPECT_TRUE(absl::IsAborted(Append(a_, leased)));
  EXPECT_EQ(JobOf(follower).state, JobState::kQueued);
  EXPECT_EQ(JobOf(follower).attempts, 0);
  MustLease(b_);
  EXPECT_EQ(MustLease(b_).lease.job_id, follower);
}

// While b stores that a's lease is lost, a's run speaks up again.
TEST_F(SharedBoardTest, ARunThatIsTakenAddsNothing) {
  const std::string id = Submit("key");
  const auto leased = MustLease(a_);
  now_ += 2 * kTtl;
  store_.before_write = [&] { EXPECT_TRUE(absl::IsAborted(Append(a_, leased))); };
  ASSERT_TRUE(b_.Tick().ok());
  EXPECT_EQ(JobOf(id).state, JobState::kQueued);
  const auto events = a_.ReadEvents(id, 1, 100, 1 << 20);
  ASSERT_TRUE(events.ok());
  for (const JobEvent& event : *events) {
    EXPECT_FALSE(std::holds_alternative<LogEvent>(event.body)) << event.seq;
  }
}

TEST_F(SharedBoardTest, APinnedJobRunsWhereItIsPinned) {
  const std::string id = Submit("key", "b");
  EXPECT_FALSE((*a_.TryLease()).has_value());
  EXPECT_EQ(MustLease(b_).lease.job_id, id);
}

// Its client went to another daemon, which has found the job.
TEST_F(SharedBoardTest, AJobWhoseAnswerIsLateIsThere) {
  store_.before_answer = [&](const std::string& id) {
    EXPECT_TRUE(b_.Get(id).ok());
    EXPECT_TRUE(a_.Get(id).ok());
    EXPECT_EQ(a_.ReadEvents(id, 1, 10, 1000)->size(), b_.ReadEvents(id, 1, 10, 1000)->size());
    EXPECT_EQ(a_.List({.limit = 10})->jobs.size(), 1u);
    return absl::OkStatus();
  };
  Submit("key");
}

TEST_F(SharedBoardTest, AJobWhoseAnswerIsLostCanBeCancelled) {
  absl::StatusOr<std::shared_ptr<const Job>> cancelled = absl::UnknownError("not called");
  std::thread other;
  absl::Notification begun;
  store_.before_answer = [&](const std::string& id) {
    other = std::thread([&, id] {
      begun.Notify();
      cancelled = a_.Cancel(id, "why");  // most often it waits for this write
    });
    begun.WaitForNotification();
    return absl::UnavailableError("the answer is lost");
  };
  EXPECT_FALSE(a_.SubmitAndWait(Request("key")).ok());
  other.join();
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_EQ((*cancelled)->state, JobState::kCancelled);
}

}  // namespace
}  // namespace npuc::jobs
