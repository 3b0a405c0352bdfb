#include "server/pg/pg_job_store.h"

#include <array>
#include <random>

#include "absl/time/clock.h"
#include "server/jobs/job_store_conformance_test_util.h"
#include "server/jobs/service_error.h"
#include "server/pg/pg_test_util.h"

namespace npuc::pg {
namespace {

using jobs::Job;
using jobs::JobChange;
using jobs::JobState;
using jobs::conformance::FullJob;
using jobs::conformance::JobStoreTest;
using jobs::conformance::LogLine;
using jobs::conformance::Names;
using jobs::conformance::NewJob;
using ::testing::HasSubstr;

// A node of a database with its store.
struct StoreOfNode {
  StoreOfNode(const ConnectionOptions& options, const std::string& name,
              std::function<absl::Time()> steady_now = absl::Now)
      : sessions(options) {
    auto joined = Node::Join(&sessions, {.name = name, .steady_now = std::move(steady_now)});
    EXPECT_TRUE(joined.ok()) << joined.status();
    node = *std::move(joined);
    store.emplace(&sessions, node.get(), PgJobStoreOptions{});
  }
  Sessions sessions;
  std::unique_ptr<Node> node;
  std::optional<PgJobStore> store;
};

class PgHarness : public jobs::conformance::StoreHarness {
 public:
  explicit PgHarness(bool crashes) : crashes_(crashes) {
    if (TestServer::Get() == nullptr) return;
    options_ = TestServer::Get()->NewDatabase();
    Restart();
  }
  bool is_missing() const override { return TestServer::Get() == nullptr; }
  jobs::JobStore& store() override { return *node_->store; }
  void Restart() override {
    if (crashes_ && node_ != nullptr) {
      TestServer::Get()->Kill();
      TestServer::Get()->Start();
    }
    node_.reset();
    node_ = std::make_unique<StoreOfNode>(options_, "a");
  }

 private:
  const bool crashes_;
  ConnectionOptions options_;
  std::unique_ptr<StoreOfNode> node_;
};

}  // namespace
}  // namespace npuc::pg

namespace npuc::jobs::conformance {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Stores, JobStoreTest,
    ::testing::Values(
        Implementation{"Pg", [] { return std::make_unique<pg::PgHarness>(/*crashes=*/false); }},
        Implementation{"PgThatCrashes",
                       [] { return std::make_unique<pg::PgHarness>(/*crashes=*/true); }}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace npuc::jobs::conformance

namespace npuc::pg {
namespace {

class PgJobStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    NPUC_SKIP_WITHOUT_POSTGRES();
    options_ = TestServer::Get()->NewDatabase();
    a_ = std::make_unique<StoreOfNode>(options_, "a", [this] { return now_; });
    b_ = std::make_unique<StoreOfNode>(options_, "b", [this] { return now_; });
  }
  // `a` says nothing while b watches.
  void DeclareADead() {
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(b_->node->Beat().ok());
      ASSERT_TRUE(b_->node->Observe().ok());
      now_ += absl::Seconds(1);
    }
  }

  ConnectionOptions options_;
  absl::Time now_ = absl::UnixEpoch();
  std::unique_ptr<StoreOfNode> a_, b_;
};

TEST_F(PgJobStoreTest, OneOfTwoNodesMakesTheNextChange) {
  Job job = NewJob("j1", "r");
  ASSERT_TRUE(a_->store->ApplyAndWait({.job = job}).ok());
  EXPECT_EQ(b_->store->ApplyAndWait({.job = NewJob("j2", "r")}).code(),
            absl::StatusCode::kAlreadyExists);
  job.revision = 2;
  int made = 0;
  std::vector<std::thread> threads;
  std::array<absl::Status, 2> results;
  for (const auto& [node, result] : {std::pair(a_.get(), &results[0]), {b_.get(), &results[1]}}) {
    threads.emplace_back(
        [&, node = node, result = result] { *result = node->store->ApplyAndWait({.job = job}); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& result : results) {
    if (result.ok()) ++made;
    EXPECT_TRUE(result.ok() || absl::IsAborted(result)) << result;
  }
  EXPECT_EQ(made, 1);
}

TEST_F(PgJobStoreTest, WhatANewerNodeWroteIsReportedAndHidesNothingElse) {
  ASSERT_TRUE(a_->store->ApplyAndWait({.job = NewJob("j1")}).ok());
  ASSERT_TRUE(a_->store->ApplyAndWait({.job = NewJob("j2")}).ok());
  // A failure kind and an event of kinds that this build does not know.
  for (const char* change :
       {"UPDATE job SET record = record || '\\x880163'::bytea WHERE job_id = 'j1'",
        "INSERT INTO job_event VALUES ('j2', 1, '\\x0a050801c00c01')"}) {
    ASSERT_TRUE(a_->sessions.Run(Sessions::Repeat::kOnce, change, {}).ok()) << change;
  }
  std::vector<std::string> reported;
  const PgJobStore store(&a_->sessions, a_->node.get(),
                         {.on_newer = [&](absl::string_view job_id, const absl::Status& status) {
                           EXPECT_TRUE(jobs::IsRecordTooNew(status)) << status;
                           reported.emplace_back(job_id);
                         }});
  EXPECT_TRUE(jobs::IsRecordTooNew(store.Read("j1").status()));
  EXPECT_TRUE(jobs::IsRecordTooNew(store.ReadEvents("j2", 1, 10, 1000).status()));
  const auto page = store.List({.limit = 10});
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(Names(*page), "j2 ");
  std::vector<std::string> live;
  EXPECT_TRUE(store
                  .ForEachLive([&](const jobs::LiveJob& job) {
                    live.push_back(job.id);
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_EQ(live, std::vector<std::string>{"j2"});
  EXPECT_EQ(reported, (std::vector<std::string>{"j1", "j2", "j1", "j1"}));
}

// All send the same request ids through both nodes.
TEST_F(PgJobStoreTest, OneJobPerRequestIdOnTwoNodes) {
  std::atomic<int> accepted = 0, taken = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      PgJobStore& store = t % 2 == 0 ? *a_->store : *b_->store;
      for (int i = 0; i < 25; ++i) {
        const absl::Status status =
            store.ApplyAndWait({.job = NewJob(absl::StrCat("j", t, "-", i), absl::StrCat(i))});
        ++(status.ok() ? accepted : taken);
        EXPECT_TRUE(status.ok() || absl::IsAlreadyExists(status)) << status;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(accepted, 25);
  EXPECT_EQ(taken, 7 * 25);
  EXPECT_EQ(a_->store->List({.limit = 1000})->jobs.size(), 25u);
}

TEST_F(PgJobStoreTest, ANodeThatWasDeclaredDeadWritesNothingMore) {
  Job job = NewJob("j1");
  ASSERT_TRUE(a_->store->ApplyAndWait({.job = job}).ok());
  const int64_t first_life = a_->node->incarnation();
  DeclareADead();
  job.revision = 2;
  const absl::Status status = a_->store->ApplyAndWait({.job = job});
  // The write in the old lane was refused; the node has joined again.
  EXPECT_NE(a_->node->incarnation(), first_life) << status;
  EXPECT_TRUE(b_->store->Read("j1").ok());
  if (!status.ok()) {
    EXPECT_EQ(b_->store->Read("j1")->revision, 1u);
    ASSERT_TRUE(a_->store->ApplyAndWait({.job = job}).ok());
  }
}

TEST_F(PgJobStoreTest, NobodyIsDeclaredDeadWhoBeatsOrWhileNobodyCanRead) {
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(a_->node->Beat().ok());
    ASSERT_TRUE(b_->node->Observe().ok());
    now_ += absl::Seconds(9);
  }
  EXPECT_EQ(b_->node->Peers()->size(), 2u);
  // The first look after an outage begins to count anew.
  TestServer::Get()->Kill();
  EXPECT_FALSE(b_->node->Observe().ok());
  now_ += absl::Hours(1);
  TestServer::Get()->Start();
  while (!b_->node->Observe().ok()) {
  }
  EXPECT_EQ(b_->node->Peers()->size(), 2u);
  EXPECT_FALSE(a_->node->IsHeard()) << "itself it takes for dead first";
}

// The session of each write is ended once, anywhere in it, and `then` runs; the write must learn
// its true end.
void EndSessionsOfWrites(const ConnectionOptions& options, PgJobStore& store, const char* then) {
  constexpr int kJobs = 200;
  std::atomic<int> current = 0;
  int ended = 0;
  std::thread ender([&] {
    const auto admin = *Connection::Open(options);
    for (int last = -1; current < kJobs;) {
      const int now = current;
      if (now == last) continue;
      const auto rows = admin->Run(
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'active' AND "
          "query LIKE '%apply_batch%' AND pid <> pg_backend_pid()",
          {}, absl::Seconds(5));
      if (!rows.ok() || rows->empty()) continue;
      EXPECT_TRUE(admin->RunScript(then, absl::Seconds(5)).ok());
      last = now;
      ++ended;
    }
  });
  for (; current < kJobs; ++current) {
    const std::string name = absl::StrCat(current.load());
    const absl::Status status = store.ApplyAndWait({.job = NewJob("j" + name, "r" + name)});
    EXPECT_TRUE(status.ok()) << status;
  }
  ender.join();
  EXPECT_GT(ended, 0);
  EXPECT_EQ(store.List({.limit = 1000})->jobs.size(), static_cast<size_t>(kJobs));
}

TEST_F(PgJobStoreTest, LostAnswersAreSettled) {
  EndSessionsOfWrites(options_, *a_->store, "SELECT 1");
}

TEST_F(PgJobStoreTest, LostAnswersAreSettledAfterTheNodeWasDeclaredDead) {
  const int64_t first_life = a_->node->incarnation();
  EndSessionsOfWrites(options_, *a_->store,
                      "SELECT declare_dead(incarnation, beat) FROM node WHERE name = 'a'");
  EXPECT_NE(a_->node->incarnation(), first_life);
}

TEST_F(PgJobStoreTest, LostCommitsAreFound) {
  ASSERT_TRUE(a_->store->ApplyAndWait({.job = NewJob("j1")}).ok());
  ASSERT_TRUE(a_->store->ApplyAndWait({.job = NewJob("j2")}).ok());
  // As a standby that took over without the last write.
  const auto admin = *Connection::Open(options_);
  ASSERT_TRUE(admin
                  ->RunScript("UPDATE lane SET commit_no = commit_no - 1; "
                              "DELETE FROM job WHERE job_id = 'j2'",
                              absl::Seconds(5))
                  .ok());
  const absl::Status status = a_->store->ApplyAndWait({.job = NewJob("j3")});
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(status.message(), HasSubstr("has lost commits"));
  EXPECT_TRUE(absl::IsDataLoss(a_->store->Read("j1").status()));
  EXPECT_TRUE(b_->store->Read("j1").ok());
}

TEST_F(PgJobStoreTest, LostCommitsAreFoundWithoutAWrite) {
  ASSERT_TRUE(a_->store->ApplyAndWait({.job = NewJob("j1")}).ok());
  EXPECT_TRUE(a_->store->Probe().ok());
  const auto admin = *Connection::Open(options_);
  ASSERT_TRUE(admin->RunScript("UPDATE lane SET commit_no = 0", absl::Seconds(5)).ok());
  EXPECT_TRUE(absl::IsDataLoss(a_->store->Probe()));
  EXPECT_TRUE(absl::IsDataLoss(a_->store->Read("j1").status()));
  EXPECT_TRUE(b_->store->Probe().ok()) << "it has written nothing";
}

TEST_F(PgJobStoreTest, LostCommitsAreFoundWhereTheNodeIsLostWithThem) {
  ASSERT_TRUE(a_->store->ApplyAndWait({.job = NewJob("j1")}).ok());
  const auto admin = *Connection::Open(options_);
  ASSERT_TRUE(admin
                  ->RunScript("DELETE FROM job; DELETE FROM request; "
                              "DELETE FROM lane WHERE incarnation = (SELECT incarnation FROM node "
                              "WHERE name = 'a'); DELETE FROM node WHERE name = 'a'",
                              absl::Seconds(5))
                  .ok());
  const absl::Status status = a_->store->ApplyAndWait({.job = NewJob("j2")});
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
}

// One change that PostgreSQL refuses does not take those beside it down.
TEST_F(PgJobStoreTest, ARefusedChangeIsRefusedAlone) {
  std::atomic<int> made = 0, refused = 0;
  const auto count = [&](const absl::Status& status) { ++(status.ok() ? made : refused); };
  for (int i = 0; i < 50; ++i) {
    Job job = NewJob(absl::StrCat("j", i));
    // Larger than a row of an index may be.
    if (i == 17) {
      std::mt19937 random(1);
      for (int k = 0; k < 100000; ++k) job.request_id += static_cast<char>('a' + random() % 26);
    }
    if (i == 23) job.tenant = std::string("a\0b", 3);
    if (i == 31) job.tenant = "\xff";
    a_->store->Apply(std::make_shared<JobChange>(JobChange{.job = job}), count);
  }
  EXPECT_TRUE(a_->store->ApplyAndWait({.job = NewJob("last")}).ok());
  EXPECT_EQ(made, 47);
  EXPECT_EQ(refused, 3);
}

TEST_F(PgJobStoreTest, WithoutAServerWritesFailInTimeAndGoOnLater) {
  PgJobStore store(&a_->sessions, a_->node.get(), {.write_limit = absl::Seconds(4)});
  ASSERT_TRUE(store.ApplyAndWait({.job = NewJob("j1")}).ok());
  TestServer::Get()->Kill();
  // A session may outlive its server for a moment.
  absl::Status status;
  for (std::string id = "j2"; status.ok(); id += "x") {
    status = store.ApplyAndWait({.job = NewJob(id)});
  }
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_TRUE(absl::IsUnavailable(store.Read("j1").status()));
  TestServer::Get()->Start();
  std::string id = "j3";
  while (!store.ApplyAndWait({.job = NewJob(id)}).ok()) id += "x";
  EXPECT_TRUE(b_->store->Read(id).ok());
}

// Random calls on this store through two nodes, and on the one in memory: the same answers.
TEST_F(PgJobStoreTest, AnswersAsTheStoreInMemory) {
  const char* const wanted = getenv("NPUC_PG_OPERATIONS");
  const int operations = wanted == nullptr ? 1000 : atoi(wanted);
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  const auto draw = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  jobs::MemoryJobStore memory;
  for (int i = 0; i < operations && !HasFailure(); ++i) {
    PgJobStore& store = draw(2) == 0 ? *a_->store : *b_->store;
    const std::string id = absl::StrCat("j", draw(40));
    const int64_t what = draw(20);
    if (what < 12) {
      // The next change of a job, or one that is wrong in some way.
      const auto stored = memory.Read(id);
      JobChange change{.job = stored.ok() ? *stored : NewJob(id)};
      Job& job = change.job;
      if (stored.ok() && jobs::IsTerminal(job.state)) continue;
      if (stored.ok()) ++job.revision;
      if (draw(10) == 0) ++job.revision;
      if (!stored.ok()) {
        job.tenant = absl::StrCat("t", draw(2));
        if (draw(2) == 0) job.request_id = absl::StrCat("r", draw(10));
        change.config_text = absl::StrCat("config ", i);
      }
      for (int64_t k = draw(4); k > 0; --k) {
        change.events.push_back(LogLine(++job.last_seq, std::string(draw(40), 'x')));
      }
      if (draw(10) == 0) ++job.last_seq;
      job.state = static_cast<JobState>(1 + draw(6));
      if (jobs::IsTerminal(job.state)) job.end_time = absl::FromUnixSeconds(i);
      job.stage = absl::StrCat("stage ", i);
      ASSERT_EQ(memory.ApplyAndWait(change).code(), store.ApplyAndWait(change).code()) << i;
    } else if (what < 14) {
      const auto here = memory.Read(id), there = store.Read(id);
      ASSERT_EQ(here.status().code(), there.status().code());
      if (!here.ok()) continue;
      ASSERT_EQ(jobs::EncodeJobRecord(*here), jobs::EncodeJobRecord(*there));
      ASSERT_EQ(*memory.ReadConfig(id), *store.ReadConfig(id));
    } else if (what < 16) {
      // The sizes of the stored forms differ.
      const int64_t from = draw(10);
      const auto count = static_cast<size_t>(1 + draw(5));
      ASSERT_EQ(*memory.ReadEvents(id, from, count, 1 << 20),
                *store.ReadEvents(id, from, count, 1 << 20));
    } else if (what < 18) {
      jobs::JobListQuery query{.before_id = draw(2) == 0 ? "" : id,
                               .limit = static_cast<size_t>(1 + draw(10))};
      if (draw(2) == 0) query.tenant = absl::StrCat("t", draw(2));
      if (draw(2) == 0) query.states = {JobState::kQueued, JobState::kFailed};
      const auto here = memory.List(query), there = store.List(query);
      ASSERT_EQ(Names(*here), Names(*there));
    } else if (what == 18) {
      const std::string tenant = absl::StrCat("t", draw(2)), request = absl::StrCat("r", draw(10));
      ASSERT_EQ(*memory.FindRequest(tenant, request), *store.FindRequest(tenant, request));
    } else if (draw(5) == 0) {
      const absl::Time before = absl::FromUnixSeconds(i - draw(400));
      ASSERT_EQ(*memory.Prune(before, 3), *store.Prune(before, 3));
    }
  }
}

}  // namespace
}  // namespace npuc::pg
