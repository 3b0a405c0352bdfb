#include "server/jobs/transitions.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::jobs {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

const absl::Time kStart = absl::FromUnixSeconds(1'700'000'000);

NewJob Request() {
  NewJob request;
  request.request_id = "r1";
  request.config_text = "CORENAME: GRUS";
  request.spec.inputs = {{.role = "MODEL_FILE", .name = "m.pb", .sha256 = "s", .md5 = "m"}};
  request.spec.timeout = absl::Minutes(10);
  return request;
}

Job Queued() { return CreateJob(Request(), "j1", 1, kStart).job; }
Job Running() {
  return LeaseJob(Queued(), "d", absl::InfiniteFuture(), kStart + absl::Seconds(1))->job;
}

// The state that the last event tells; it must be the record's.
JobState Told(const JobChange& change) {
  const auto& event = std::get<StateChangedEvent>(change.events.back().body);
  EXPECT_EQ(event.state, change.job.state);
  EXPECT_EQ(change.events.back().seq, change.job.last_seq);
  return event.state;
}

TEST(TransitionsTest, CreateMakesAQueuedJobWithItsDeadline) {
  const JobChange change = CreateJob(Request(), "j1", 7, kStart);
  EXPECT_EQ(Told(change), JobState::kQueued);
  EXPECT_EQ(change.job.revision, 1u);
  EXPECT_EQ(change.job.last_seq, 1);
  EXPECT_EQ(change.job.accept_order, 7u);
  EXPECT_EQ(change.job.deadline, kStart + absl::Minutes(10));
  EXPECT_EQ(*change.config_text, "CORENAME: GRUS");
}

TEST(TransitionsTest, ACachedResultIsBornSucceeded) {
  NewJob request = Request();
  request.cached = NewJob::Cached{.artifacts = {{"model.h", 5, "x"}},
                                  .diagnostics = {{.id = "NPUC1", .message = "w"}}};
  const JobChange change = CreateJob(std::move(request), "j1", 1, kStart);
  EXPECT_EQ(Told(change), JobState::kSucceeded);
  EXPECT_THAT(change.events, SizeIs(4));
  EXPECT_TRUE(change.job.cache_hit);
  EXPECT_EQ(change.job.attempts, 0);
  EXPECT_EQ(change.job.end_time, kStart);
}

TEST(TransitionsTest, LeaseOnlyFromQueuedAndWithANewFence) {
  const auto leased = LeaseJob(Queued(), "d", absl::InfiniteFuture(), kStart);
  ASSERT_TRUE(leased.has_value());
  EXPECT_EQ(Told(*leased), JobState::kRunning);
  EXPECT_EQ(leased->job.fence, 1u);
  EXPECT_EQ(leased->job.attempts, 1);
  EXPECT_EQ(leased->events[0].attempt, 1);
  EXPECT_FALSE(LeaseJob(leased->job, "d", absl::InfiniteFuture(), kStart).has_value());
}

TEST(TransitionsTest, StaleResultsAreDropped) {
  const Job lost = LoseLease(Running(), 1, LossKind::kWorker, "x", {}, {}, kStart)->job;
  EXPECT_TRUE(absl::IsAborted(FinishJob(lost, 1, {}, {.succeeded = true}, kStart).status()));
  const Job again = LeaseJob(lost, "d", absl::InfiniteFuture(), kStart)->job;
  EXPECT_EQ(again.fence, 2u);
  EXPECT_TRUE(absl::IsAborted(FinishJob(again, 1, {}, {.succeeded = true}, kStart).status()));
  EXPECT_TRUE(absl::IsAborted(AppendToJob(again, 1, {LogEvent{"x"}}, kStart).status()));
  EXPECT_TRUE(absl::IsAborted(LoseLease(again, 1, LossKind::kWorker, "", {}, {}, kStart).status()));
  const Job done = FinishJob(again, 2, {}, {.succeeded = true}, kStart)->job;
  EXPECT_TRUE(absl::IsAborted(FinishJob(done, 2, {}, {.succeeded = true}, kStart).status()));
}

TEST(TransitionsTest, FinishTellsLogArtifactsAndStateInOrder) {
  const auto change = FinishJob(Running(), 1, {LogEvent{"bye"}},
                                {.succeeded = true, .artifacts = {{"model.h", 5, "x"}}}, kStart);
  ASSERT_TRUE(change.ok());
  ASSERT_THAT(change->events, SizeIs(3));
  EXPECT_EQ(std::get<LogEvent>(change->events[0].body).text, "bye");
  EXPECT_EQ(std::get<ArtifactEvent>(change->events[1].body).artifact.name, "model.h");
  EXPECT_EQ(Told(*change), JobState::kSucceeded);
  EXPECT_EQ(change->events[0].seq, 3);
  // kStart is before the lease's time: a clock that went back does not make end < start.
  EXPECT_GE(change->job.end_time, change->job.start_time);
}

// A newer build ran before, and its fields are there when it runs again.
TEST(TransitionsTest, FieldsOfANewerBuildAreStoredAgain) {
  const std::string newer = "\x9a\x06\x03new";  // field 99
  const absl::StatusOr<Job> job = DecodeJobRecord(EncodeJobRecord(Running()) + newer);
  ASSERT_TRUE(job.ok()) << job.status();
  const auto ended = FinishJob(*job, 1, {}, {.succeeded = true}, kStart);
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_NE(EncodeJobRecord(ended->job).find(newer), std::string::npos);
}

TEST(TransitionsTest, FailureKeepsItsKindAndReason) {
  const auto change = FinishJob(
      Running(), 1, {}, {.failure_kind = FailureKind::kLimitExceeded, .reason = "memory"}, kStart);
  EXPECT_EQ(Told(*change), JobState::kFailed);
  EXPECT_EQ(change->job.failure_kind, FailureKind::kLimitExceeded);
  EXPECT_EQ(change->job.reason, "memory");
}

TEST(TransitionsTest, AWorkerThatDiesThreeTimesEndsTheJob) {
  Job job = Queued();
  for (int attempt = 1; attempt <= 3; ++attempt) {
    job = LeaseJob(job, "d", absl::InfiniteFuture(), kStart)->job;
    const auto change =
        LoseLease(job, job.fence, LossKind::kWorker, "killed by signal 9", {}, {}, kStart);
    ASSERT_TRUE(change.ok());
    job = change->job;
    EXPECT_EQ(Told(*change), attempt < 3 ? JobState::kQueued : JobState::kFailed);
    EXPECT_THAT(job.reason, HasSubstr("killed by signal 9"));
  }
  EXPECT_EQ(job.failure_kind, FailureKind::kWorkerDied);
  EXPECT_THAT(job.reason, HasSubstr("died 3 times"));
  EXPECT_EQ(job.accept_order, 1u);
}

TEST(TransitionsTest, DaemonDeathsAndHandBacksAreCountedApart) {
  Job job = Queued();
  for (int i = 0; i < 50; ++i) {
    job = LeaseJob(job, "d", absl::InfiniteFuture(), kStart)->job;
    job = LoseLease(job, job.fence, LossKind::kHandBack, "drain", {}, {}, kStart)->job;
  }
  EXPECT_EQ(job.state, JobState::kQueued);
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(job.state, JobState::kQueued) << i;
    job = LeaseJob(job, "d", absl::InfiniteFuture(), kStart)->job;
    job = LoseLease(job, job.fence, LossKind::kDaemon, "restart", {}, {}, kStart)->job;
  }
  EXPECT_EQ(job.state, JobState::kFailed);
  EXPECT_THAT(job.reason, HasSubstr("the daemon died 10 times"));
}

TEST(TransitionsTest, CancelEndsWhatHasNotEnded) {
  EXPECT_EQ(Told(*CancelJob(Queued(), "no need", kStart)), JobState::kCancelled);
  const auto change = CancelJob(Running(), std::string(5000, 'x'), kStart);
  EXPECT_EQ(Told(*change), JobState::kCancelled);
  EXPECT_LE(change->job.reason.size(), kMaxReasonBytes + 3);
  EXPECT_FALSE(CancelJob(change->job, "again", kStart).has_value());
}

TEST(TransitionsTest, ExpiresAtTheDeadlineAndNotBefore) {
  const absl::Time deadline = kStart + absl::Minutes(10);
  const auto change = ExpireJob(Running(), deadline);
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(Told(*change), JobState::kExpired);
  EXPECT_EQ(change->job.expired_in, JobState::kRunning);
  EXPECT_FALSE(ExpireJob(change->job, deadline).has_value());
}

TEST(TransitionsTest, WhatAWorkerTellsIsBounded) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto change =
      AppendToJob(Running(), 1,
                  {ProgressEvent{"a", 0.5}, ProgressEvent{"b", 0.25}, ProgressEvent{"c", nan},
                   ProgressEvent{"d", 7.0}, LogEvent{std::string(100000, 'x')},
                   LogEvent{"a\x01"
                            "b"}},
                  kStart);
  ASSERT_TRUE(change.ok());
  const auto fraction = [&](int i) {
    return std::get<ProgressEvent>((*change)->events[i].body).fraction;
  };
  EXPECT_EQ(fraction(0), 0.5);
  EXPECT_EQ(fraction(1), 0.5);
  EXPECT_EQ(fraction(2), 0.5);
  EXPECT_EQ(fraction(3), 1.0);
  EXPECT_LE(std::get<LogEvent>((*change)->events[4].body).text.size(), kMaxLogLineBytes);
  EXPECT_EQ(std::get<LogEvent>((*change)->events[5].body).text, "a\\x01b");
  EXPECT_EQ((*change)->job.stage, "d");
}

TEST(TransitionsTest, EventsOfAJobAreBoundedAndTheEndIsStillTold) {
  Job job = Running();
  job.last_seq = kMaxEventsPerJob - 3;
  auto change = AppendToJob(job, 1, std::vector<EventBody>(10, LogEvent{"x"}), kStart);
  ASSERT_TRUE(change.ok());
  ASSERT_THAT((*change)->events, SizeIs(3));
  EXPECT_THAT(std::get<LogEvent>((*change)->events[2].body).text, HasSubstr("dropped"));
  job = (*change)->job;
  EXPECT_FALSE((*AppendToJob(job, 1, {LogEvent{"x"}}, kStart)).has_value());
  EXPECT_EQ(Told(*FinishJob(job, 1, {LogEvent{"x"}}, {.succeeded = true}, kStart)),
            JobState::kSucceeded);
}

TEST(JobIdTest, SortsByTimeAndIsChecked) {
  const std::string early = MakeJobId(kStart, 1, 2);
  EXPECT_LT(early, MakeJobId(kStart + absl::Milliseconds(1), 0, 0));
  EXPECT_LT(early, MakeJobId(kStart, 1, 3));
  EXPECT_LT(early, MakeJobId(kStart, 2, 0));
  EXPECT_TRUE(IsValidJobId(early));
  EXPECT_FALSE(IsValidJobId(""));
  EXPECT_FALSE(IsValidJobId(early + "0"));
  EXPECT_FALSE(IsValidJobId("j" + std::string(26, 'u')));
  EXPECT_FALSE(IsValidJobId("j" + std::string(26, '/')));
}

}  // namespace
}  // namespace npuc::jobs
