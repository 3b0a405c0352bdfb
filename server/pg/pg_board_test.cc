#include "server/pg/pg_board.h"

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/jobs/job_service.h"
#include "server/jobs/local_board.h"
#include "server/jobs/service_error.h"
#include "server/pg/pg_job_store.h"
#include "server/pg/pg_test_util.h"

namespace npuc::pg {
namespace {

using jobs::BoardClaim;
using jobs::BoardView;
using jobs::Job;
using jobs::JobService;
using jobs::JobState;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr absl::Duration kTtl = absl::Minutes(1);       // of a silent worker
constexpr absl::Duration kNodeTtl = absl::Seconds(10);  // of a silent node
constexpr scheduler::QuestionPeriod kEachTime = {};

// A daemon on the database: everything below its ports.
struct Daemon {
  Daemon(const ConnectionOptions& options, const std::string& name, absl::Time* now,
         PgBoardOptions board_options)
      : sessions(options),
        node(MustJoin(&sessions, name, now)),
        store(&sessions, node.get()),
        board(&sessions, node.get(), std::move(board_options)),
        jobs(JobServiceOptionsOf(name, now), &store, &board) {
    EXPECT_TRUE(jobs.Recover(nullptr).ok());
  }
  static std::unique_ptr<Node> MustJoin(Sessions* sessions, const std::string& name,
                                        absl::Time* now) {
    auto node = Node::Join(
        sessions,
        {.name = name, .slots = 2, .ttl = kNodeTtl, .steady_now = [now] { return *now; }});
    EXPECT_TRUE(node.ok()) << node.status();
    return *std::move(node);
  }
  static jobs::JobServiceOptions JobServiceOptionsOf(const std::string& name, absl::Time* now) {
    return {.owner = name,
            .now = [now] { return *now; },
            .random = [random = std::make_shared<std::mt19937_64>(
                           std::hash<std::string>()(name))] { return (*random)(); },
            .retry = {},
            .lease_ttl = kTtl};
  }

  Sessions sessions;
  std::unique_ptr<Node> node;
  PgJobStore store;
  PgBoard board;
  JobService jobs;
};

class PgBoardTest : public ::testing::Test {
 protected:
  void SetUp() override {
    NPUC_SKIP_WITHOUT_POSTGRES();
    options_ = TestServer::Get()->NewDatabase();
    a_ = MakeDaemon("a");
    b_ = MakeDaemon("b");
  }
  std::unique_ptr<Daemon> MakeDaemon(const std::string& name) {
    return std::make_unique<Daemon>(options_, name, &now_,
                                    PgBoardOptions{.ttl = kTtl,
                                                   .view_period = kEachTime,
                                                   .care_period = kEachTime,
                                                   .common_period = kEachTime});
  }
  // Both live, or a says nothing while b watches.
  void Pass(absl::Duration time, bool a_lives = true) {
    for (const absl::Time end = now_ + time; now_ < end; now_ += absl::Seconds(1)) {
      for (Daemon* daemon : {a_.get(), b_.get()}) {
        if (daemon == a_.get() && !a_lives) continue;
        ASSERT_TRUE(daemon->node->Beat().ok());
        ASSERT_TRUE(daemon->node->Observe().ok());
      }
    }
  }
  std::string Submit(Daemon& daemon, const std::string& key = "", const std::string& pin = "",
                     int32_t priority = 0, const std::string& tenant = "t") {
    jobs::NewJob request;
    request.tenant = tenant;
    request.cache_key = key;
    request.output_file = "model.h";
    request.spec.inputs = {{.role = "MODEL_FILE", .name = "m.pb", .sha256 = "s", .md5 = "m"}};
    request.spec.timeout = absl::Hours(1);
    request.spec.pinned_to = pin;
    request.spec.priority = priority;
    const auto submitted = daemon.jobs.SubmitAndWait(std::move(request));
    EXPECT_TRUE(submitted.ok()) << submitted.status();
    return submitted.ok() ? submitted->job->id : "";
  }
  static JobService::Leased MustLease(Daemon& daemon) {
    auto leased = daemon.jobs.TryLease();
    EXPECT_TRUE(leased.ok()) << leased.status();
    const bool has_job = leased.ok() && leased->has_value();
    EXPECT_TRUE(has_job);
    return has_job ? **std::move(leased) : JobService::Leased();
  }
  static absl::Status Append(Daemon& daemon, const JobService::Leased& leased) {
    return daemon.jobs.Append(leased.lease, {jobs::LogEvent{"line"}});
  }
  Job JobOf(const std::string& id) { return *b_->store.Read(id); }
  BoardView::Place PlaceOf(const std::string& id) { return b_->board.Look(id)->place; }

  ConnectionOptions options_;
  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  std::unique_ptr<Daemon> a_, b_;
};

TEST_F(PgBoardTest, WhatOneAcceptsTheOtherRunsAndEnds) {
  const std::string id = Submit(*a_, "key");
  EXPECT_EQ(PlaceOf(id), BoardView::Place::kQueue);
  const auto leased = MustLease(*b_);
  EXPECT_EQ(PlaceOf(id), BoardView::Place::kRuns);
  EXPECT_EQ(JobOf(id).owner, "b");
  EXPECT_TRUE(absl::IsAborted(Append(*a_, leased))) << "the lease is b's";
  EXPECT_TRUE(Append(*b_, leased).ok());
  ASSERT_TRUE(b_->jobs.Finish(leased.lease, {}, {.succeeded = true}).ok());
  EXPECT_EQ((*a_->jobs.Get(id))->state, JobState::kSucceeded);
  EXPECT_EQ(a_->jobs.ReadEvents(id, 1, 100, 1 << 20)->size(), 4u);
  EXPECT_FALSE(a_->board.Has(id));
  EXPECT_EQ(a_->board.Look(id), std::nullopt);
  EXPECT_FALSE((*a_->jobs.TryLease()).has_value());
}

TEST_F(PgBoardTest, ADaemonThatStartsLeavesTheRunsOfOthersAlone) {
  Submit(*a_);
  Submit(*a_);
  const auto of_b = MustLease(*b_);
  const auto of_a = MustLease(*a_);
  a_.reset();
  a_ = MakeDaemon("a");
  EXPECT_TRUE(Append(*b_, of_b).ok());
  EXPECT_TRUE(absl::IsAborted(Append(*a_, of_a)));
  EXPECT_EQ(JobOf(of_a.lease.job_id).state, JobState::kQueued);
  EXPECT_EQ(JobOf(of_a.lease.job_id).daemon_losses, 1);
  EXPECT_EQ(MustLease(*b_).lease.job_id, of_a.lease.job_id);
}

TEST_F(PgBoardTest, ACancelThroughTheOtherDaemonEndsTheRun) {
  const std::string id = Submit(*a_, "key");
  const auto leased = MustLease(*b_);
  int abandoned = 0;
  b_->jobs.SetAbandonListener([&](const jobs::Lease&) { ++abandoned; });
  ASSERT_EQ((*a_->jobs.Cancel(id, "why"))->state, JobState::kCancelled);
  ASSERT_TRUE(b_->jobs.Tick().ok());
  EXPECT_EQ(abandoned, 1);
  EXPECT_FALSE(b_->jobs.Renew(leased.lease));
}

// The call that starts the claim got lost: PostgreSQL crashed, and forgot it; then the node died.
TEST_F(PgBoardTest, ALeaseIsOnTheBoardWithTheWriteThatStoresIt) {
  const std::string id = Submit(*a_);
  const std::optional<BoardClaim> claim = a_->board.Claim("a", now_);
  ASSERT_TRUE(claim.has_value());
  auto change = jobs::LeaseJob(JobOf(id), "a", now_ + kTtl, now_);
  ASSERT_TRUE(a_->store.ApplyAndWait(*std::move(change)).ok());
  EXPECT_EQ(PlaceOf(id), BoardView::Place::kRuns);
  Pass(3 * kNodeTtl, /*a_lives=*/false);
  ASSERT_TRUE(b_->jobs.Tick().ok());
  EXPECT_EQ(JobOf(id).state, JobState::kQueued);
  EXPECT_EQ(JobOf(id).daemon_losses, 1);
  EXPECT_EQ(MustLease(*b_).lease.job_id, id);
}

// The lease was stored, the store failed then, and nobody got it.
TEST_F(PgBoardTest, ALeaseThatNobodyGotIsTakenBackBeforeItsTime) {
  const std::string id = Submit(*a_);
  auto claim = a_->jobs.TryClaim();
  ASSERT_TRUE(claim.ok() && claim->has_value());
  const auto session = Connection::Open(options_);
  const auto run = [&](const std::string& sql) {
    const absl::Status status = (*session)->RunScript(sql, absl::Seconds(10));
    ASSERT_TRUE(status.ok()) << status;
  };
  // Reads and the board fail from the moment when the lease is stored.
  run("CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS "
      "$$ BEGIN RAISE EXCEPTION 'away' USING ERRCODE = '57P03'; END $$;"
      "CREATE TRIGGER fail BEFORE UPDATE OF started_us ON claim EXECUTE FUNCTION fail();"
      "CREATE TRIGGER fail_end BEFORE DELETE ON claim EXECUTE FUNCTION fail();"
      "CREATE FUNCTION fail_loss() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "IF OLD.state = 2 THEN RAISE EXCEPTION 'no' USING ERRCODE = 'XX000'; END IF; "
      "RETURN NEW; END $$;"
      "CREATE TRIGGER fail BEFORE UPDATE ON job FOR EACH ROW EXECUTE FUNCTION fail_loss()");
  EXPECT_FALSE((*claim)->Lease().ok());
  EXPECT_EQ(JobOf(id).state, JobState::kRunning);
  run("DROP FUNCTION fail CASCADE; DROP FUNCTION fail_loss CASCADE");
  a_->jobs.Tick().IgnoreError();
  a_->board.Maintain(now_);
  EXPECT_EQ(JobOf(id).state, JobState::kQueued);
  EXPECT_EQ(MustLease(*b_).lease.job_id, id);
}

// A standby took over that had the lease, which waits for it, and not the claim, which does not:
// the claim's node hands the lease back, and another node finds the job without a claim.
class PgBoardFailoverTest : public PgBoardTest {
 protected:
  void LeaseAndForgetTheClaim() {
    id_ = Submit(*a_);
    ASSERT_TRUE(a_->board.Claim("a", now_).has_value());
    auto lease = jobs::LeaseJob(JobOf(id_), "a", now_ + absl::Hours(1), now_);
    ASSERT_TRUE(a_->store.ApplyAndWait(*std::move(lease)).ok());
    Run("DELETE FROM claim; UPDATE job_queue SET state = 1, held_by = NULL");
  }
  void HandBack() {
    auto change = jobs::LoseLease(JobOf(id_), 1, jobs::LossKind::kHandBack, "its claim was over",
                                  {}, {}, now_);
    ASSERT_TRUE(change.ok());
    ASSERT_TRUE(a_->store.ApplyAndWait(*std::move(change)).ok());
  }
  void Run(const std::string& sql) {
    const absl::Status status = (*Connection::Open(options_))->RunScript(sql, absl::Seconds(10));
    ASSERT_TRUE(status.ok()) << status;
  }
  std::string id_;
};

TEST_F(PgBoardFailoverTest, AClaimThatWasRestoredGoesWithItsLease) {
  LeaseAndForgetTheClaim();
  EXPECT_FALSE((*b_->jobs.TryLease()).has_value());
  EXPECT_EQ(PlaceOf(id_), BoardView::Place::kRuns) << "restored";
  HandBack();
  EXPECT_EQ(MustLease(*b_).lease.job_id, id_);
}

TEST_F(PgBoardFailoverTest, ALeaseThatHasGoneRestoresNoClaim) {
  LeaseAndForgetTheClaim();
  HandBack();
  // b has read the job before.
  b_->board.Restore({.place = {.id = id_}}, "a", 1, now_ + absl::Hours(1));
  EXPECT_EQ(MustLease(*b_).lease.job_id, id_);
}

TEST_F(PgBoardFailoverTest, AClaimThatWasRestoredGoesWithTheEndOfItsJob) {
  LeaseAndForgetTheClaim();
  EXPECT_FALSE((*b_->jobs.TryLease()).has_value());
  EXPECT_EQ(b_->board.GetCounts().running, 1);
  ASSERT_TRUE(b_->jobs.Cancel(id_, "why").ok());
  const auto claims = b_->sessions.Read("SELECT count(*) FROM claim", {});
  EXPECT_EQ(claims->Int(0, 0), 0) << "it would hold a place of its tenant";
}

TEST_F(PgBoardTest, TheRunsOfADeadNodeGoToOthers) {
  const std::string id = Submit(*a_, "key");
  const std::string follower = Submit(*b_, "key");
  const auto leased = MustLease(*a_);
  EXPECT_EQ(PlaceOf(follower), BoardView::Place::kFollows);
  int abandoned = 0;
  a_->jobs.SetAbandonListener([&](const jobs::Lease&) { ++abandoned; });
  Pass(kNodeTtl - absl::Seconds(2), /*a_lives=*/false);
  ASSERT_TRUE(b_->jobs.Tick().ok());
  EXPECT_EQ(JobOf(id).state, JobState::kRunning) << "it may live";
  // A node that was not heard of for so long starts nothing: others may have taken it for dead.
  Submit(*b_);
  EXPECT_FALSE((*a_->jobs.TryLease()).has_value());
  Pass(2 * kNodeTtl, /*a_lives=*/false);
  ASSERT_TRUE(b_->jobs.Tick().ok());
  EXPECT_EQ(JobOf(id).state, JobState::kQueued);
  EXPECT_EQ(JobOf(id).daemon_losses, 1);
  const auto next = MustLease(*b_);
  EXPECT_EQ(next.lease.job_id, id) << "in its old place";
  EXPECT_EQ(next.lease.fence, leased.lease.fence + 1);
  // It was paused, and comes back.
  ASSERT_TRUE(a_->node->Beat().ok());
  ASSERT_TRUE(a_->jobs.Tick().ok());
  EXPECT_EQ(abandoned, 1);
  EXPECT_FALSE(Append(*a_, leased).ok());
  EXPECT_FALSE(a_->jobs.Renew(leased.lease));
  EXPECT_FALSE(a_->jobs.Finish(leased.lease, {}, {.succeeded = true}).ok());
  EXPECT_TRUE(b_->jobs.Finish(next.lease, {}, {.succeeded = true}).ok());
  EXPECT_EQ(JobOf(follower).state, JobState::kSucceeded);
  MustLease(*a_);
}

TEST_F(PgBoardTest, TheClaimOfADeadNodeWithoutALeaseEnds) {
  const std::string id = Submit(*a_, "key");
  const std::string follower = Submit(*a_, "key");
  auto claim = *a_->jobs.TryClaim();
  ASSERT_TRUE(claim.has_value());
  Pass(3 * kNodeTtl, /*a_lives=*/false);
  ASSERT_TRUE(b_->jobs.Tick().ok());
  EXPECT_EQ(MustLease(*b_).lease.job_id, id);
  const auto leased = claim->Lease();
  EXPECT_FALSE(leased.ok() && leased->has_value());
  EXPECT_EQ(JobOf(id).daemon_losses, 0);
  EXPECT_EQ(PlaceOf(follower), BoardView::Place::kFollows);
}

TEST_F(PgBoardTest, AWorkerThatHangsLosesItsLease) {
  const std::string id = Submit(*a_);
  const auto leased = MustLease(*a_);
  Pass(kTtl / 2);
  EXPECT_TRUE(a_->jobs.Renew(leased.lease));
  Pass(kTtl / 2);
  ASSERT_TRUE(a_->jobs.Tick().ok());
  EXPECT_EQ(JobOf(id).state, JobState::kRunning);
  Pass(kTtl / 2);
  ASSERT_TRUE(a_->jobs.Tick().ok());
  EXPECT_EQ(JobOf(id).state, JobState::kQueued);
  EXPECT_EQ(JobOf(id).worker_losses, 1);
}

TEST_F(PgBoardTest, AJobPastItsDeadlineIsEndedByAnyNode) {
  const std::string id = Submit(*a_);
  now_ += absl::Hours(2);
  ASSERT_TRUE(b_->jobs.ExpireDue().ok());
  EXPECT_EQ(JobOf(id).state, JobState::kExpired);
}

TEST_F(PgBoardTest, ARunGoesOnForAFollowerOfAnotherNode) {
  const std::string first = Submit(*a_, "key");
  const std::string second = Submit(*b_, "key");
  const auto leased = MustLease(*a_);
  const std::string third = Submit(*b_, "key");
  EXPECT_EQ(PlaceOf(third), BoardView::Place::kFollows) << "it came during the run";
  ASSERT_TRUE(b_->jobs.Cancel(first, "why").ok());
  ASSERT_TRUE(a_->jobs.Tick().ok());
  EXPECT_EQ(JobOf(second).state, JobState::kRunning);
  ASSERT_TRUE(a_->jobs.Finish(leased.lease, {}, {.succeeded = true}).ok());
  EXPECT_EQ(JobOf(second).state, JobState::kSucceeded);
  EXPECT_EQ(JobOf(third).state, JobState::kSucceeded);
  EXPECT_EQ(JobOf(first).state, JobState::kCancelled);
  EXPECT_FALSE((*a_->jobs.TryLease()).has_value());
}

TEST_F(PgBoardTest, AJobOfANewerNodeIsLeftAloneAndHoldsNobodyUp) {
  const std::string newer = Submit(*a_);
  const std::string next = Submit(*a_);
  // Failure kind 99 behind the record: the last value of a field counts.
  const char* const change =
      "UPDATE job SET record = record || '\\x880163'::bytea WHERE job_id = $1";
  ASSERT_TRUE(a_->sessions.Run(Sessions::Repeat::kOnce, change, {absl::string_view(newer)}).ok());
  EXPECT_TRUE(jobs::IsRecordTooNew(a_->jobs.Get(newer).status()));
  EXPECT_TRUE(jobs::IsRecordTooNew(a_->jobs.Cancel(newer, "").status()));
  EXPECT_EQ(MustLease(*a_).job->id, next);
  EXPECT_FALSE(a_->jobs.TryLease()->has_value());
  const auto listed = b_->jobs.List({.limit = 10});
  ASSERT_TRUE(listed.ok()) << listed.status();
  EXPECT_EQ(listed->jobs.size(), 1u) << "a list is not refused for one job";
  // Nobody ends it past its deadline, and a newer node finds it where it was.
  now_ += absl::Hours(2);
  EXPECT_TRUE(a_->jobs.Tick().ok());
  EXPECT_EQ(PlaceOf(newer), BoardView::Place::kQueue);
  EXPECT_TRUE(b_->jobs.Recover(nullptr).ok());
}

TEST_F(PgBoardTest, APinnedJobRunsWhereItIsPinned) {
  const std::string id = Submit(*a_, "key", "b");
  EXPECT_FALSE((*a_->jobs.TryLease()).has_value());
  EXPECT_EQ(MustLease(*b_).lease.job_id, id);
}

TEST_F(PgBoardTest, PriorityAgesAndPlacesAreCounted) {
  const std::string old = Submit(*a_);
  now_ += absl::Seconds(45);  // one point and a half
  const std::string one = Submit(*a_, "", "", 1);
  const std::string two = Submit(*b_, "", "", 2);
  EXPECT_EQ(b_->board.Look(two)->queue.position, 0);
  EXPECT_EQ(b_->board.Look(old)->queue.position, 1);
  EXPECT_EQ(b_->board.Look(one)->queue.position, 2);
  EXPECT_EQ(a_->jobs.Wait(one)->reason, jobs::JobWait::Reason::kJobsAhead);
  ASSERT_TRUE(b_->node->Beat().ok());
  ASSERT_TRUE(a_->node->Beat().ok());
  EXPECT_EQ(MustLease(*a_).lease.job_id, two);
  EXPECT_EQ(MustLease(*b_).lease.job_id, old);
  EXPECT_EQ(MustLease(*a_).lease.job_id, one);
}

TEST_F(PgBoardTest, LooksOfOneTimeHaveTheirOwnAnswers) {
  std::vector<std::string> ids;
  for (int i = 0; i < 16; ++i) ids.push_back(Submit(*a_));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < ids.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int turn = 0; turn < 20; ++turn) {
        const auto view = a_->board.Look(ids[i]);
        ASSERT_TRUE(view.has_value());
        EXPECT_EQ(view->queue.position, static_cast<int64_t>(i));
      }
    });
  }
  EXPECT_EQ(a_->board.Look("unknown"), std::nullopt);
  for (std::thread& thread : threads) thread.join();
}

// The answer of a submit is given on the thread of the store's writes.
TEST_F(PgBoardTest, TheEstimateOfANewJobAsksNobody) {
  for (int i = 0; i < 20; ++i) Submit(*a_);
  while (a_->board.GetCounts().queued < 20) {
  }
  TestServer::Get()->Kill();
  const auto view = a_->board.LookAtNew("new", "t");
  ASSERT_TRUE(view.has_value());
  EXPECT_EQ(view->queue.position, 20);
  EXPECT_GT(view->queue.estimated_wait, absl::ZeroDuration());
  TestServer::Get()->Start();
}

// An outage of the server in the middle of runs: they go on.
TEST_F(PgBoardTest, RunsOutliveAnOutage) {
  const std::string id = Submit(*a_);
  const std::string next = Submit(*a_);
  const auto leased = MustLease(*a_);
  TestServer::Get()->Kill();
  EXPECT_TRUE(a_->jobs.Renew(leased.lease));
  EXPECT_EQ(a_->board.Claim("a", now_), std::nullopt);
  TestServer::Get()->Start();
  while (!a_->node->Beat().ok()) {
  }
  ASSERT_TRUE(a_->jobs.Finish(leased.lease, {}, {.succeeded = true}).ok());
  EXPECT_EQ(JobOf(id).state, JobState::kSucceeded);
  // A session that the outage ended may cost a try.
  auto of_b = b_->jobs.TryLease();
  while (!of_b.ok() || !of_b->has_value()) of_b = b_->jobs.TryLease();
  EXPECT_EQ((*of_b)->lease.job_id, next);
}

// The answer of Claim was lost.
TEST_F(PgBoardTest, AClaimThatNobodyKnowsEnds) {
  const std::string id = Submit(*a_);
  ASSERT_TRUE(
      a_->sessions.Read("SELECT * FROM claim_next($1, 'a', false)", {a_->node->incarnation()})
          .ok());
  EXPECT_FALSE((*b_->jobs.TryLease()).has_value());
  while (!b_->board.Claim("b", now_).has_value()) a_->board.Maintain(now_);
  EXPECT_EQ(PlaceOf(id), BoardView::Place::kClaimed);
}

class PgQuotaTest : public PgBoardTest {
 protected:
  void SetUp() override {
    NPUC_SKIP_WITHOUT_POSTGRES();
    options_ = TestServer::Get()->NewDatabase();
    for (auto* daemon : {&a_, &b_}) {
      *daemon = std::make_unique<Daemon>(options_, daemon == &a_ ? "a" : "b", &now_,
                                         PgBoardOptions{.ttl = kTtl,
                                                        .policy =
                                                            [](absl::string_view tenant) {
                                                              scheduler::TenantPolicy policy;
                                                              if (tenant == "bounded") {
                                                                policy = {.max_queued = 5,
                                                                          .max_running = 3};
                                                              }
                                                              if (tenant == "heavy")
                                                                policy.weight = 3;
                                                              return policy;
                                                            },
                                                        .view_period = kEachTime,
                                                        .care_period = kEachTime,
                                                        .common_period = kEachTime});
    }
  }
};

TEST_F(PgQuotaTest, NoMoreThanItsBoundOfATenantRunOnAllNodes) {
  for (int i = 0; i < 5; ++i) Submit(*a_, "", "", 0, "bounded");
  std::atomic<int> claimed = 0;
  std::vector<std::thread> threads;
  for (Daemon* daemon : {a_.get(), b_.get(), a_.get(), b_.get()}) {
    threads.emplace_back([&, daemon] {
      for (int i = 0; i < 10; ++i) {
        if (daemon->board.Claim(daemon->node->name(), now_).has_value()) ++claimed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(claimed, 3);
}

// A node tells the database its limits when it starts and when they change, also those of tenants
// that it never met.
TEST_F(PgQuotaTest, LimitsReachTenantsThatOnlyWait) {
  const auto bound_of = [&](const std::string& tenant) {
    const auto rows = a_->sessions.Read("SELECT max_running FROM tenant WHERE tenant = $1",
                                        {absl::string_view(tenant)});
    return rows.ok() && !rows->empty() ? rows->Int(0, 0) : -1;
  };
  for (const char* tenant : {"bounded", "other"}) {
    ASSERT_TRUE(a_->sessions
                    .Run(Sessions::Repeat::kOnce,
                         "INSERT INTO tenant (tenant, max_running) VALUES ($1, 7)",
                         {absl::string_view(tenant)})
                    .ok());
  }
  b_->board.Maintain(now_);
  EXPECT_EQ(bound_of("bounded"), 3);
  EXPECT_EQ(bound_of("other"), 0);
  const auto change = [&] {
    return a_->sessions.Run(Sessions::Repeat::kOnce, "UPDATE tenant SET max_running = 7", {});
  };
  ASSERT_TRUE(change().ok());
  b_->board.Maintain(now_);
  EXPECT_EQ(bound_of("bounded"), 7) << "no policy has changed";
  b_->board.RefreshPolicies();
  EXPECT_EQ(bound_of("bounded"), 3);
  EXPECT_EQ(bound_of("other"), 0);
  // PostgreSQL is away: it is tried again.
  ASSERT_TRUE(change().ok());
  const auto rename = [&](const char* from, const char* to) {
    const std::string sql = absl::StrCat("ALTER TABLE ", from, " RENAME TO ", to);
    ASSERT_TRUE(a_->sessions.Run(Sessions::Repeat::kOnce, sql.c_str(), {}).ok());
  };
  rename("tenant", "gone");
  b_->board.RefreshPolicies();
  rename("gone", "tenant");
  EXPECT_EQ(bound_of("bounded"), 7);
  b_->board.Maintain(now_);
  EXPECT_EQ(bound_of("bounded"), 3);
}

TEST_F(PgQuotaTest, NoMoreThanItsBoundOfATenantWaitOnAllNodes) {
  std::atomic<int> accepted = 0, refused = 0;
  std::vector<std::thread> threads;
  for (Daemon* daemon : {a_.get(), b_.get(), a_.get(), b_.get()}) {
    threads.emplace_back([&, daemon] {
      for (int i = 0; i < 10; ++i) {
        jobs::NewJob request;
        request.tenant = "bounded";
        request.output_file = "model.h";
        request.spec.inputs = {{.role = "MODEL_FILE", .name = "m", .sha256 = "s", .md5 = "m"}};
        request.spec.timeout = absl::Hours(1);
        const auto submitted = daemon->jobs.SubmitAndWait(std::move(request));
        ++(submitted.ok() ? accepted : refused);
        EXPECT_TRUE(submitted.ok() || absl::IsResourceExhausted(submitted.status()));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(accepted, 5);
  EXPECT_EQ(refused, 35);
  // Nothing of the promises is left.
  EXPECT_EQ(a_->sessions.Read("SELECT count(*) FROM reservation", {})->Int(0, 0), 0);
}

TEST_F(PgQuotaTest, TenantsShareByTheirWeights) {
  for (int i = 0; i < 60; ++i) {
    Submit(*a_, "", "", 0, "heavy");
    Submit(*b_, "", "", 9, "light");
  }
  std::map<std::string, int> claimed;
  for (int i = 0; i < 60; ++i) {
    Daemon& daemon = i % 2 == 0 ? *a_ : *b_;
    const std::optional<BoardClaim> claim = daemon.board.Claim(daemon.node->name(), now_);
    ASSERT_TRUE(claim.has_value());
    ++claimed[JobOf(claim->job_id).tenant];
  }
  EXPECT_EQ(claimed["heavy"], 45);
  EXPECT_EQ(claimed["light"], 15);
  // Somebody new does not wait behind what others had.
  Submit(*a_, "", "", 0, "new");
  const auto claim = a_->board.Claim("a", now_);
  const auto next = a_->board.Claim("a", now_);
  ASSERT_TRUE(claim.has_value() && next.has_value());
  EXPECT_TRUE(JobOf(claim->job_id).tenant == "new" || JobOf(next->job_id).tenant == "new");
}

// Random calls on this board and on the one in memory, which must answer alike.
class LockstepTest : public PgBoardTest {
 protected:
  int64_t Draw(size_t n) { return static_cast<int64_t>(random_() % n); }
  template <typename Map>
  auto Pick(const Map& map) {
    return std::next(map.begin(), Draw(map.size()));
  }
  PgBoard& BoardOf(jobs::ClaimId shared) {
    return a_->board.Renew(shared, now_) ? a_->board : b_->board;
  }

  void Accept(Daemon& daemon, int number) {
    Job job;
    job.id = absl::StrCat("j", number);
    job.tenant = "t";
    job.revision = 1;
    job.spec.inputs = {{.role = "MODEL_FILE", .name = "m", .sha256 = "s", .md5 = "m"}};
    job.spec.priority = static_cast<int32_t>(Draw(5));
    if (Draw(8) == 0) job.spec.pinned_to = daemon.node->name();
    if (Draw(3) != 0) job.cache_key = absl::StrCat("key", Draw(3));
    job.create_time = now_;
    job.deadline = now_ + absl::Seconds(Draw(600));
    job.accept_order = static_cast<uint64_t>(number);
    ASSERT_TRUE(local_.Reserve("t").ok() && daemon.board.Reserve("t").ok());
    ASSERT_TRUE(daemon.store.ApplyAndWait({.job = job}).ok());
    const jobs::BoardJob place{.place = {.id = job.id,
                                         .priority = job.spec.priority,
                                         .accept_order = job.accept_order,
                                         .tenant = "t",
                                         .create_time = job.create_time},
                               .flight_key = job.flight_key(),
                               .pinned_to = job.spec.pinned_to,
                               .due = job.deadline};
    local_.Accept(place, /*reserved=*/true);
    daemon.board.Accept(place, /*reserved=*/true);
    live_[job.id] = job;
  }
  void Claim(Daemon& daemon) {
    const auto in_memory = local_.Claim(daemon.node->name(), now_);
    const auto shared = daemon.board.Claim(daemon.node->name(), now_);
    ASSERT_EQ(in_memory.has_value(), shared.has_value());
    if (!shared.has_value()) return;
    ASSERT_EQ(in_memory->job_id, shared->job_id);
    claims_[in_memory->id] = shared->id;
  }
  void EndJob() {
    const auto found = Pick(live_);
    Job job = found->second;
    job.revision = 2;
    job.state = JobState::kCancelled;
    job.end_time = now_;
    ASSERT_TRUE(b_->store.ApplyAndWait({.job = job}).ok());
    local_.Forget(job.id);
    live_.erase(found);
  }
  void UseClaim(int64_t what) {
    const auto [in_memory, shared] = *Pick(claims_);
    PgBoard& own = BoardOf(shared);
    if (what == 6) {
      ++fence_;
      ASSERT_EQ(local_.Start(in_memory, fence_, now_), own.Start(shared, fence_, now_));
      return;
    }
    if (what == 7) {
      const auto next = local_.PassOn(in_memory, now_);
      const auto shared_next = own.PassOn(shared, now_);
      ASSERT_EQ(next.has_value(), shared_next.has_value());
      ASSERT_EQ(next.value_or(BoardClaim()).job_id, shared_next.value_or(BoardClaim()).job_id);
      if (next.has_value()) return;  // else it ends, as a service ends a claim without a job
    }
    if (what == 8) {
      ASSERT_EQ(local_.Close(in_memory, now_), own.Close(shared, now_));
    }
    local_.End(in_memory, now_);
    own.End(shared, now_);
    claims_.erase(in_memory);
  }
  void Compare(const PgBoard& board) {
    // The shared one gives some at a time.
    ASSERT_EQ(std::min<size_t>(local_.Due(now_).size(), 200), board.Due(now_).size());
    if (live_.empty()) return;
    const std::string& id = Pick(live_)->first;
    const auto here = local_.Look(id), there = board.Look(id);
    ASSERT_TRUE(here.has_value() && there.has_value());
    ASSERT_EQ(here->place, there->place) << id;
  }

  std::mt19937_64 random_;
  scheduler::FairQueue queue_{{.max_queued = 1 << 20}};
  jobs::LocalBoard local_{&queue_, kTtl};
  std::map<std::string, Job> live_;
  std::map<jobs::ClaimId, jobs::ClaimId> claims_;  // in memory -> shared
  uint64_t fence_ = 0;
};

TEST_F(LockstepTest, AnswersAsTheBoardInMemory) {
  const char* const wanted = getenv("NPUC_PG_OPERATIONS");
  const int operations = wanted == nullptr ? 400 : atoi(wanted);
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  random_.seed(seed);
  for (int i = 0; i < operations && !HasFailure(); ++i) {
    now_ += absl::Milliseconds(Draw(1000));
    if (i % 4 == 0) {
      ASSERT_TRUE(a_->node->Beat().ok() && b_->node->Beat().ok());
    }
    Daemon& daemon = Draw(2) == 0 ? *a_ : *b_;
    const int64_t what = Draw(10);
    if (what < 3) Accept(daemon, i);
    if (what == 3 || what == 4) Claim(daemon);
    if (what == 5 && !live_.empty()) EndJob();
    if (what > 5 && !claims_.empty()) UseClaim(what);
    if (!HasFailure()) Compare(daemon.board);
  }
}

}  // namespace
}  // namespace npuc::pg
