// Jobs that are equal share a run, and nothing else; request ids; leases that are not renewed.
#include <atomic>
#include <random>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/jobs/job_service.h"
#include "server/jobs/local_board.h"
#include "server/jobs/memory_job_store.h"
#include "server/scheduler/fair_queue.h"

namespace npuc::jobs {
namespace {

using ::testing::HasSubstr;

// A store whose writes are there though it says that they failed.
class DoubtfulStore : public MemoryJobStore {
 public:
  void Apply(std::shared_ptr<const JobChange> change, Done done) override {
    absl::Status status = ApplyNow(*change);
    if (status.ok() && say_failed) status = absl::InternalError("not synced");
    done(std::move(status));
  }
  std::atomic<bool> say_failed = false;
};

class JobFlightsTest : public ::testing::Test {
 protected:
  JobFlightsTest()
      : queue_({.max_queued = 100000, .slots = 2}),
        service_({.now = [this] { return absl::FromUnixSeconds(now_seconds_); },
                  .random = [this] { return ++random_; },
                  .retry = {},
                  .lease_ttl = absl::Minutes(5)},
                 &store_, &board_) {
    service_.SetAbandonListener([this](const Lease&) { ++abandoned_; });
    service_.SetEndListener([this](const Job&) { ++ended_; });
    EXPECT_TRUE(service_.Recover(nullptr).ok());
  }

  static NewJob Request(const std::string& key, const std::string& tenant = "",
                        absl::Duration timeout = absl::Hours(1)) {
    NewJob request;
    request.tenant = tenant;
    request.request_sha256 = "sha";
    request.cache_key = key;
    request.output_file = "model.h";
    request.spec.inputs = {{.role = "MODEL_FILE", .name = "m.pb", .sha256 = "s", .md5 = "m"}};
    request.spec.timeout = timeout;
    return request;
  }

  std::string Submit(NewJob request) {
    const auto submitted = service_.SubmitAndWait(std::move(request));
    EXPECT_TRUE(submitted.ok()) << submitted.status();
    return submitted->job->id;
  }
  std::vector<std::string> SubmitEqual(int count) {
    std::vector<std::string> ids;
    for (int i = 0; i < count; ++i) ids.push_back(Submit(Request("key", absl::StrCat("t", i % 4))));
    return ids;
  }

  JobService::Leased MustLease() {
    auto leased = service_.TryLease();
    EXPECT_TRUE(leased.ok() && leased->has_value());
    return **std::move(leased);
  }
  bool NothingToLease() { return !(*service_.TryLease()).has_value(); }
  Job JobOf(const std::string& id) { return **service_.Get(id); }
  static JobResult Made(const std::string& sha256) {
    return {.succeeded = true, .artifacts = {{"model.h", 1, sha256}}, .cache_key = "key"};
  }

  std::atomic<int64_t> now_seconds_ = 1'700'000'000;
  std::atomic<uint64_t> random_ = 0;
  std::atomic<int> abandoned_ = 0;
  std::atomic<int> ended_ = 0;
  DoubtfulStore store_;
  scheduler::FairQueue queue_;
  LocalBoard board_{&queue_, absl::Minutes(5)};
  JobService service_;
};

TEST_F(JobFlightsTest, AThousandEqualJobsAreOneCompile) {
  const std::vector<std::string> ids = SubmitEqual(500);
  const auto leased = MustLease();
  EXPECT_TRUE(NothingToLease());
  // Those that come during the run follow it, too.
  std::vector<std::string> later = SubmitEqual(500);
  EXPECT_TRUE(NothingToLease());
  EXPECT_EQ(service_.Wait(later.back())->reason, JobWait::Reason::kEqualJob);
  EXPECT_EQ(service_.GetCounts().queued, 999);
  ASSERT_TRUE(service_.Finish(leased.lease, {LogEvent{"done"}}, Made("result")).ok());
  later.insert(later.end(), ids.begin(), ids.end());
  int hits = 0;
  for (const std::string& id : later) {
    const Job job = JobOf(id);
    EXPECT_EQ(job.state, JobState::kSucceeded);
    ASSERT_EQ(job.artifacts.size(), 1u);
    EXPECT_EQ(job.artifacts[0].sha256, "result");
    hits += job.cache_hit ? 1 : 0;
    EXPECT_EQ(static_cast<int64_t>(service_.ReadEvents(id, 1, 100, 1 << 20)->size()), job.last_seq);
  }
  EXPECT_EQ(hits, 999);
  EXPECT_EQ(ended_, 1000);
  EXPECT_EQ(service_.GetCounts().queued, 0);
  EXPECT_TRUE(NothingToLease());
}

TEST_F(JobFlightsTest, CancellingAClaimedJobHarmsNoFollower) {
  const std::vector<std::string> ids = SubmitEqual(2);
  auto claim = *service_.TryClaim();
  const std::string late = Submit(Request("key"));
  EXPECT_EQ(service_.Wait(late)->reason, JobWait::Reason::kEqualJob);
  ASSERT_EQ((*service_.Cancel(claim->job()->id, "why"))->state, JobState::kCancelled);
  EXPECT_TRUE(NothingToLease()) << "the claim stands until its holder knows";
  EXPECT_FALSE((*claim->Lease()).has_value());
  const auto leased = MustLease();
  EXPECT_EQ(leased.job->id, ids[1]);
  ASSERT_TRUE(service_.Finish(leased.lease, {}, Made("result")).ok());
  EXPECT_EQ(JobOf(late).state, JobState::kSucceeded);
  EXPECT_EQ(service_.GetCounts().queued, 0);
}

TEST_F(JobFlightsTest, CancellingAnySubsetHarmsNoOther) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 50; ++round) {
    const std::vector<std::string> ids = SubmitEqual(20);
    const auto leased = MustLease();
    std::set<std::string> cancelled;
    for (const std::string& id : ids) {
      if (random() % 2 == 0) cancelled.insert(id);
    }
    cancelled.erase(ids[random() % ids.size()]);           // one is left at least
    if (round % 2 == 0) cancelled.insert(leased.job->id);  // the one that runs is not spared
    if (cancelled.size() == ids.size()) cancelled.erase(*cancelled.begin());
    for (const std::string& id : cancelled) {
      EXPECT_EQ((*service_.Cancel(id, "why"))->state, JobState::kCancelled);
      // The compile goes on for the others.
      EXPECT_TRUE(service_.Renew(leased.lease));
      EXPECT_TRUE(service_.Append(leased.lease, {LogEvent{"line"}}).ok());
    }
    EXPECT_TRUE(NothingToLease());
    EXPECT_EQ(service_.GetCounts().running, 1);
    ASSERT_TRUE(service_.Finish(leased.lease, {}, Made("result")).ok());
    for (const std::string& id : ids) {
      EXPECT_EQ(JobOf(id).state,
                cancelled.contains(id) ? JobState::kCancelled : JobState::kSucceeded);
    }
  }
  EXPECT_EQ(abandoned_, 0);
  EXPECT_EQ(service_.GetCounts().queued + service_.GetCounts().running, 0);
}

TEST_F(JobFlightsTest, ARunOfUseToNobodyIsAbandoned) {
  const std::vector<std::string> ids = SubmitEqual(3);
  const auto leased = MustLease();
  for (const std::string& id : ids) ASSERT_TRUE(service_.Cancel(id, "").ok());
  EXPECT_EQ(abandoned_, 1);
  EXPECT_FALSE(service_.IsCurrent(leased.lease));
  EXPECT_TRUE(absl::IsAborted(service_.Finish(leased.lease, {}, Made("result"))));
  // A new one does not join what is over.
  Submit(Request("key"));
  EXPECT_NE(MustLease().lease, leased.lease);
}

TEST_F(JobFlightsTest, AnExpiredJobHandsItsRunOver) {
  const std::string hasty = Submit(Request("key", "", absl::Seconds(10)));
  const auto leased = MustLease();
  const std::string patient = Submit(Request("key"));
  now_seconds_ += 11;
  ASSERT_TRUE(service_.Tick().ok());
  EXPECT_EQ(JobOf(hasty).state, JobState::kExpired);
  EXPECT_EQ(JobOf(patient).state, JobState::kRunning);
  EXPECT_EQ(abandoned_, 0);
  ASSERT_TRUE(service_.Finish(leased.lease, {}, Made("result")).ok());
  EXPECT_EQ(JobOf(patient).state, JobState::kSucceeded);
  EXPECT_FALSE(JobOf(patient).cache_hit);
}

TEST_F(JobFlightsTest, FailuresOfTheInputAreSharedAndOthersAreNot) {
  std::vector<std::string> ids = SubmitEqual(3);
  ASSERT_TRUE(service_
                  .Finish(MustLease().lease, {},
                          {.failure_kind = FailureKind::kInvalidInput, .reason = "bad model"})
                  .ok());
  for (const std::string& id : ids) EXPECT_EQ(JobOf(id).reason, "bad model");
  ids = SubmitEqual(3);
  const auto leased = MustLease();
  ASSERT_TRUE(
      service_
          .Finish(leased.lease, {}, {.failure_kind = FailureKind::kInternal, .reason = "our fault"})
          .ok());
  int waiting = 0;
  for (const std::string& id : ids) waiting += JobOf(id).state == JobState::kQueued ? 1 : 0;
  EXPECT_EQ(waiting, 2);
  EXPECT_NE(MustLease().job->id, leased.job->id);
}

TEST_F(JobFlightsTest, ALostRunPutsAllBackInTheirPlaces) {
  const std::vector<std::string> ids = SubmitEqual(4);
  const std::string other = Submit(Request("other", "t0"));
  const auto leased = MustLease();
  EXPECT_EQ(leased.job->id, ids[0]);
  ASSERT_TRUE(service_.Lose(leased.lease, LossKind::kWorker, "killed", {}).ok());
  for (const std::string& id : ids) EXPECT_EQ(JobOf(id).state, JobState::kQueued);
  EXPECT_LT(*service_.Position(ids[0]), *service_.Position(other));
  EXPECT_EQ(service_.GetCounts().queued, 5);
}

TEST_F(JobFlightsTest, JobsThatAskForNoCacheRunByThemselves) {
  for (int i = 0; i < 2; ++i) {
    NewJob request = Request("key");
    request.spec.no_cache = true;
    Submit(std::move(request));
  }
  MustLease();
  MustLease();
}

TEST_F(JobFlightsTest, ALeaseThatIsNotRenewedIsLost) {
  const std::string id = Submit(Request("key"));
  const auto first = MustLease();
  now_seconds_ += 200;
  EXPECT_TRUE(service_.Renew(first.lease));
  now_seconds_ += 200;
  ASSERT_TRUE(service_.Tick().ok());
  EXPECT_TRUE(service_.IsCurrent(first.lease));
  now_seconds_ += 100;
  ASSERT_TRUE(service_.Tick().ok());
  EXPECT_FALSE(service_.IsCurrent(first.lease));
  EXPECT_EQ(abandoned_, 1);
  EXPECT_THAT(JobOf(id).reason, HasSubstr("not heard of"));
  const auto second = MustLease();
  EXPECT_TRUE(absl::IsAborted(service_.Finish(first.lease, {}, Made("stale"))));
  ASSERT_TRUE(service_.Finish(second.lease, {}, Made("fresh")).ok());
  EXPECT_EQ(JobOf(id).artifacts[0].sha256, "fresh");
}

TEST_F(JobFlightsTest, EveryWaitingJobHasAReasonAndAnEstimate) {
  const std::string first = Submit(Request("a"));
  const std::string second = Submit(Request("b"));
  EXPECT_EQ(service_.Wait(first)->reason, JobWait::Reason::kNextInLine);
  const JobWait wait = *service_.Wait(second);
  EXPECT_EQ(wait.reason, JobWait::Reason::kJobsAhead);
  EXPECT_EQ(wait.position, 1);
  EXPECT_GE(wait.estimated_start, absl::FromUnixSeconds(now_seconds_));
  MustLease();
  EXPECT_FALSE(service_.Wait(first).has_value());
  EXPECT_EQ(JobWaitReasonName(wait.reason), "JOBS_AHEAD");
}

TEST_F(JobFlightsTest, TenThousandConcurrentSendsOfOneRequestIdAreOneJob) {
  constexpr int kThreads = 16;
  std::vector<std::set<std::string>> ids(kThreads);
  std::atomic<int> made = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10000 / kThreads; ++i) {
        NewJob request = Request("key");
        request.request_id = "one";
        const auto submitted = service_.SubmitAndWait(std::move(request));
        ASSERT_TRUE(submitted.ok()) << submitted.status();
        if (!submitted->already_existed) ++made;
        ids[static_cast<size_t>(t)].insert(submitted->job->id);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::string> all;
  for (const auto& some : ids) all.insert(some.begin(), some.end());
  EXPECT_EQ(all.size(), 1u);
  EXPECT_EQ(made, 1);
  EXPECT_EQ(service_.GetCounts().queued, 1);
}

TEST_F(JobFlightsTest, RequestIdsAreKeptAndThenForgotten) {
  NewJob request = Request("key");
  request.request_id = "r";
  const std::string id = Submit(request);
  ASSERT_TRUE(service_.Cancel(id, "").ok());
  now_seconds_ += 7 * 24 * 3600;
  ASSERT_TRUE(service_.Tick().ok());
  EXPECT_EQ(Submit(request), id);
  now_seconds_ += 2 * 24 * 3600;
  ASSERT_TRUE(service_.Tick().ok());
  EXPECT_TRUE(absl::IsNotFound(service_.Get(id).status()));
  EXPECT_NE(Submit(request), id);
}

// Its holder tries until it hears that its lease is stale; "no such job" would let it try for ever.
TEST_F(JobFlightsTest, TheLeaseOfAForgottenJobIsStale) {
  const std::string id = Submit(Request("key"));
  const auto leased = MustLease();
  ASSERT_TRUE(service_.Cancel(id, "").ok());
  now_seconds_ += 10 * 24 * 3600;
  ASSERT_TRUE(service_.Tick().ok());
  ASSERT_TRUE(absl::IsNotFound(service_.Get(id).status()));
  EXPECT_TRUE(absl::IsAborted(service_.Finish(leased.lease, {}, Made("late"))));
  EXPECT_TRUE(absl::IsAborted(service_.Append(leased.lease, {LogEvent{"late"}})));
  EXPECT_TRUE(absl::IsAborted(service_.Lose(leased.lease, LossKind::kWorker, "late", {})));
}

// The write that takes a lease back seems to fail and is there all the same: whose worker hangs
// must be stopped then, too, for the next run of an equal job begins.
TEST_F(JobFlightsTest, AHangingRunIsAbandonedWhereItsLossWasStoredBefore) {
  NewJob request = Request("key");
  request.request_id = "r";
  const std::string id = Submit(request);
  (void)MustLease();
  now_seconds_ += 400;
  store_.say_failed = true;
  ASSERT_FALSE(service_.Tick().ok());
  store_.say_failed = false;
  EXPECT_EQ(abandoned_, 0);
  EXPECT_EQ(Submit(request), id);  // which finds out what the store has
  EXPECT_EQ(JobOf(id).state, JobState::kQueued);
  ASSERT_TRUE(service_.Tick().ok());
  EXPECT_EQ(abandoned_, 1);
  EXPECT_EQ(MustLease().job->id, id);
}

// Equal jobs come, run, are cancelled, lost and finished by many threads at once: each ends once,
// with the result that it wants.
TEST_F(JobFlightsTest, ManyThreadsShareRuns) {
  constexpr int kJobs = 300;
  std::mutex mutex;
  std::vector<std::string> ids;               // guarded by mutex
  std::map<std::string, std::string> wanted;  // key by job; guarded by mutex
  std::vector<std::thread> runners;
  std::vector<std::thread> senders;
  for (int t = 0; t < 2; ++t) {
    senders.emplace_back([&, t] {
      for (int i = 0; i < kJobs; ++i) {
        const std::string key = absl::StrCat("key", i % 3);
        const std::string id = Submit(Request(key, absl::StrCat("t", t)));
        std::string victim;
        {
          std::lock_guard<std::mutex> lock(mutex);
          ids.push_back(id);
          wanted[id] = key;
          if (i % 4 == 0) victim = ids[ids.size() / 2];
        }
        if (victim.empty()) continue;
        EXPECT_TRUE(service_.Cancel(victim, "").ok());
      }
    });
  }
  for (int t = 0; t < 3; ++t) {
    runners.emplace_back([&, t] {
      int turn = t;
      while (true) {
        auto claim = service_.WaitAndClaim();
        ASSERT_TRUE(claim.ok());
        if (!claim->has_value()) return;
        const auto leased = (*claim)->Lease();
        ASSERT_TRUE(leased.ok());
        if (!leased->has_value()) continue;
        const Lease& lease = (*leased)->lease;
        (void)service_.Append(lease, {LogEvent{"x"}});
        if (++turn % 5 == 0) {
          (void)service_.Lose(lease, LossKind::kHandBack, "test", {});
        } else {
          (void)service_.Finish(lease, {}, Made((*leased)->job->cache_key));
        }
      }
    });
  }
  for (std::thread& thread : senders) thread.join();
  while (ended_ < 2 * kJobs) {
    EXPECT_TRUE(service_.Tick().ok());
    std::this_thread::yield();
  }
  service_.StopLeasing();
  for (std::thread& thread : runners) thread.join();
  EXPECT_EQ(ended_, 2 * kJobs);
  for (const std::string& id : ids) {
    const Job job = JobOf(id);
    if (job.state == JobState::kSucceeded) {
      EXPECT_EQ(job.artifacts[0].sha256, wanted[id]);
    } else {
      EXPECT_EQ(job.state, JobState::kCancelled);
    }
  }
  EXPECT_EQ(service_.GetCounts().running, 0);
  EXPECT_EQ(service_.GetCounts().queued, 0);
}

}  // namespace
}  // namespace npuc::jobs
