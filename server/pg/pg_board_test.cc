#include "server/pg/pg_board.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/jobs/job_service.h"
#include "server/jobs/local_board.h"
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
    return std::make_unique<Daemon>(options_, name, &now_, PgBoardOptions{.ttl = kTtl});
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
      *daemon = std::make_unique<Daemon>(
          options_, daemon == &a_ ? "a" : "b", &now_,
          PgBoardOptions{.ttl = kTtl, .policy = [](absl::string_view tenant) {
                           scheduler::TenantPolicy policy;
                           if (tenant == "bounded") policy = {.max_queued = 5, .max_running = 3};
                           if (tenant == "heavy") policy.weight = 3;
                           return policy;
                         }});
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

// No statement reads a large table as a whole, whatever is known of the tables.
class PlansTest : public PgBoardTest {
 protected:
  static constexpr absl::Duration kLimit = absl::Minutes(5);

  void SetUp() override {
    PgBoardTest::SetUp();
    if (IsSkipped()) return;
    session_ = *Connection::Open(options_);
  }
  // Rows of each kind, beside those that a first call has made.
  void Fill(int rows) {
    RunScript(absl::StrReplaceAll(
        "INSERT INTO job SELECT 'j' || g, 't' || g % 7, 1, 1, 0, NULL, '', '' "
        "FROM generate_series(1, $rows) g ON CONFLICT DO NOTHING;"
        "INSERT INTO job SELECT 'k' || g, 't', 3, 1, 0, g, '', '' "
        "FROM generate_series(1, $rows) g ON CONFLICT DO NOTHING;"
        "INSERT INTO job_queue SELECT 'j' || g, 't' || g % 7, g, g, 'f' || g / 4, "
        "NULL, g FROM generate_series(1, $rows) g ON CONFLICT DO NOTHING;"
        "INSERT INTO job_input SELECT 'blob/t/' || g, 'j' || g FROM generate_series(1, $rows) g "
        "ON CONFLICT DO NOTHING;"
        "INSERT INTO change SELECT 99, g, '{}' FROM generate_series(1, 1024) g "
        "ON CONFLICT DO NOTHING;"
        "INSERT INTO tenant (tenant) SELECT 't' || g FROM generate_series(0, 6) g "
        "ON CONFLICT DO NOTHING;",
        {{"$rows", absl::StrCat(rows)}}));
  }
  static int ManyRows() {
    const char* const given = std::getenv("NPUC_PG_PLAN_ROWS");
    return given == nullptr ? 20000 : std::max(20000, std::atoi(given));
  }
  void RunScript(const std::string& script) {
    const absl::Status status = session_->RunScript(script, kLimit);
    ASSERT_TRUE(status.ok()) << status;
  }
  Rows Explain(const char* sql, const std::vector<Value>& parameters) {
    session_->TakeNotices();
    absl::StatusOr<Rows> rows = session_->Run(sql, parameters, kLimit);
    EXPECT_TRUE(rows.ok()) << sql << ": " << rows.status();
    const std::string plans = absl::StrJoin(session_->TakeNotices(), "\n");
    EXPECT_THAT(plans, ::testing::HasSubstr("actual time")) << sql;
    for (const char* table : {"job", "job_queue", "job_event", "request", "job_input", "change"}) {
      EXPECT_THAT(
          plans,
          ::testing::Not(::testing::ContainsRegex(absl::StrCat("Seq Scan on ", table, "( |$)"))))
          << sql;
    }
    return rows.ok() ? *std::move(rows) : Rows();
  }
  // Every hot statement; `job` is live.
  template <typename Call>
  void CallEach(const std::string& job, Call call) {
    RunScript("UPDATE lane SET epoch = 1, commit_no = 0");
    const int64_t incarnation = a_->node->incarnation();
    const Rows claimed = call("SELECT * FROM claim_next($1, 'a', false)", {incarnation});
    ASSERT_EQ(claimed.size(), 1u);
    const int64_t claim = claimed.Int(0, 0);
    call("SELECT start_claim($1, $2, 1, 1)", {claim, incarnation});
    call("SELECT * FROM pass_claim_on($1, $2, 1)", {claim, incarnation});
    call("SELECT * FROM close_claim($1, $2, 1)", {claim, incarnation});
    call("SELECT * FROM end_claim($1, $2, 1)", {claim, incarnation});
    call("SELECT * FROM take_claims($1, 'a', false, 0)", {incarnation});
    call("SELECT * FROM look_at_job($1)", {absl::string_view(job)});
    call("SELECT * FROM reserve_place('t1', $1, 5)", {incarnation});
    call("SELECT prune_jobs(1, 10)", {});
    call("SELECT record FROM job WHERE job_id = $1", {absl::string_view(job)});
    call(
        "SELECT apply_batch($1, 1, 1, ARRAY[$2, 'z1'], '{t,t}', '{4,1}', '{2,1}', '{0,0}', "
        "'{0,0}', '{5,-1}', '{\"\",r}', '{a,b}', '{a,b}', '{1,2}', '{1,2}', '{NULL,k}', "
        "'{NULL,NULL}', '{1,2}', ARRAY[$2], '{1}', '{e}', '{z1}', '{blob/t/1}', '{0,0}')",
        {incarnation, absl::string_view(job)});
    call("SELECT * FROM changes_since(0, '{0}', '{0}', 64)", {});
    call("SELECT record FROM job WHERE job_id = ANY ($1)", {TextArray{job, "j2"}});
    // The rows of apply_batch go again.
    RunScript(absl::StrCat(
        "DELETE FROM job WHERE job_id = 'z1'; DELETE FROM request; DELETE FROM job_event; "
        "DELETE FROM job_config; DELETE FROM job_queue WHERE job_id = 'z1'; "
        "DELETE FROM job_input WHERE job_id = 'z1'; DELETE FROM change; "
        "UPDATE job SET revision = 1 WHERE job_id = '",
        job, "'"));
  }
  void ExplainAll() {
    RunScript(
        "LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; "
        "SET auto_explain.log_nested_statements = on; SET auto_explain.log_analyze = on; "
        "SET client_min_messages = log");
    CallEach("j19999", [&](const char* sql, const std::vector<Value>& parameters) {
      return Explain(sql, parameters);
    });
  }
  void PrintTimeOfClaims() {
    RunScript("SET auto_explain.log_min_duration = -1");
    constexpr size_t kClaims = 300;
    std::vector<double> times;
    for (size_t i = 0; i < kClaims; ++i) {
      const absl::Time begin = absl::Now();
      const auto claimed = session_->Run("SELECT * FROM claim_next($1, 'a', false)",
                                         {a_->node->incarnation()}, kLimit);
      times.push_back(absl::ToDoubleMilliseconds(absl::Now() - begin));
      ASSERT_TRUE(claimed.ok()) << claimed.status();
      ASSERT_EQ(claimed->size(), 1u);
    }
    std::sort(times.begin(), times.end());
    std::printf("FIGURE: a claim among %d queued jobs: p50 %.2f ms, p99 %.2f ms\n", ManyRows(),
                times[kClaims / 2], times[kClaims * 99 / 100]);
  }

  std::unique_ptr<Connection> session_;
};

TEST_F(PlansTest, TouchWhatTheyNeedWithFreshStatistics) {
  Fill(ManyRows());
  RunScript("ANALYZE");
  ExplainAll();
  PrintTimeOfClaims();
}

TEST_F(PlansTest, TouchWhatTheyNeedWithoutStatistics) {
  Fill(ManyRows());
  RunScript(
      "DELETE FROM pg_statistic; "
      "UPDATE pg_class SET reltuples = -1 WHERE relnamespace = 'npuc'::regnamespace");
  ExplainAll();
}

// A session keeps the plans that it made while the tables were all but empty.
TEST_F(PlansTest, MadeForOneRowServeMany) {
  RunScript("ANALYZE");
  // More often than plans are made for the parameters.
  for (int i = 0; i < 7; ++i) {
    Fill(1);
    CallEach("j1", [&](const char* sql, const std::vector<Value>& parameters) {
      auto rows = session_->Run(sql, parameters, kLimit);
      EXPECT_TRUE(rows.ok()) << sql << ": " << rows.status();
      return rows.ok() ? *std::move(rows) : Rows();
    });
  }
  Fill(ManyRows());
  ExplainAll();
}

}  // namespace
}  // namespace npuc::pg
