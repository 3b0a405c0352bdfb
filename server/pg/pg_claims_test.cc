// Claims of several nodes among many tenants.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/pg/pg_board.h"
#include "server/pg/pg_test_util.h"

namespace npuc::pg {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int kNodes = 4;
constexpr int kSlots = 2;

struct ClaimingNode {
  ClaimingNode(const ConnectionOptions& options, const std::string& name,
               PgBoardOptions board_options = {})
      : sessions(options),
        node(*Node::Join(&sessions, {.name = name, .slots = kSlots, .steady_now = absl::Now})),
        board(&sessions, node.get(), std::move(board_options)) {}

  Sessions sessions;
  std::unique_ptr<Node> node;
  PgBoard board;
};

class ClaimsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    NPUC_SKIP_WITHOUT_POSTGRES();
    options_ = TestServer::Get()->NewDatabase();
    for (int i = 0; i < kNodes; ++i) {
      nodes_.push_back(std::make_unique<ClaimingNode>(options_, absl::StrCat("n", i)));
    }
    for (const auto& node : nodes_) ASSERT_TRUE(node->node->Observe().ok());
  }
  void Run(const std::string& script) {
    const absl::Status status = (*Connection::Open(options_))->RunScript(script, absl::Minutes(5));
    ASSERT_TRUE(status.ok()) << status;
  }
  void Fill(int tenants, int jobs_of_each) {
    Run(absl::StrReplaceAll(
        "INSERT INTO tenant (tenant) SELECT 't' || g FROM generate_series(1, $tenants) g;"
        "INSERT INTO job_queue SELECT 'j' || g, 't' || g % $tenants + 1, g, g, NULL, NULL, g "
        "FROM generate_series(1, $tenants * $jobs) g; ANALYZE",
        {{"$tenants", absl::StrCat(tenants)}, {"$jobs", absl::StrCat(jobs_of_each)}}));
  }
  // All slots of all nodes claim, until the time is over or nothing is left. Returns how many.
  int ClaimFor(absl::Duration time) {
    std::atomic<int> claimed = 0;
    const absl::Time end = absl::Now() + time;
    std::vector<std::thread> slots;
    for (int i = 0; i < kNodes * kSlots; ++i) {
      slots.emplace_back([&, node = nodes_[static_cast<size_t>(i % kNodes)].get()] {
        while (absl::Now() < end && node->board.Claim(node->node->name(), absl::Now())) ++claimed;
      });
    }
    for (std::thread& slot : slots) slot.join();
    return claimed;
  }

  ConnectionOptions options_;
  std::vector<std::unique_ptr<ClaimingNode>> nodes_;
};

// The statement behind a claim, by rows of the queue that stand in it.
class ClaimJobsTest : public ClaimsTest {
 protected:
  void SetUp() override {
    ClaimsTest::SetUp();
    if (IsSkipped()) return;
    session_ = *Connection::Open(options_);
    incarnation_ = nodes_[0]->node->incarnation();
    Run("INSERT INTO tenant (tenant, weight) VALUES ('t', 2), ('u', 1);"
        "UPDATE tenant_clock SET virtual_s = 100 WHERE tenant = 't'");
  }
  // `columns`: flight_key, pinned_to.
  void Add(const std::string& id, const std::string& columns = "NULL, NULL",
           const std::string& tenant = "t") {
    ++order_;
    Run(absl::StrCat("INSERT INTO job_queue VALUES ('", id, "', '", tenant, "', ", order_, ", ",
                     order_, ", ", columns, ", 0)"));
  }
  struct Answer {
    std::vector<std::string> jobs;
    double clock_s = 0;
    int64_t room = 0;
    bool has_more = false;
  };
  // `arguments`: the tenant, the floor, the latest clock, the number of jobs.
  Answer Claim(const std::string& arguments) {
    const std::string sql =
        absl::StrCat("SELECT claimed_job, clock_s, room, has_more FROM claim_jobs(", incarnation_,
                     ", 'n0', ", arguments, ")");
    const auto rows = session_->Run(sql.c_str(), {}, absl::Seconds(10));
    EXPECT_TRUE(rows.ok()) << rows.status();
    Answer answer;
    for (size_t row = 0; rows.ok() && row < rows->size(); ++row) {
      if (!rows->IsNull(row, 0)) {
        answer.jobs.emplace_back(rows->Text(row, 0));
        continue;
      }
      answer.has_more = rows->Bool(row, 3);
      if (rows->IsNull(row, 1)) continue;  // pinned jobs have no clock
      answer.clock_s = rows->Double(row, 1);
      answer.room = rows->Int(row, 2);
    }
    return answer;
  }
  double ReadDouble(const char* sql) {
    const auto rows = session_->Run(sql, {}, absl::Seconds(10));
    EXPECT_TRUE(rows.ok()) << rows.status();
    return rows.ok() ? rows->Double(0, 0) : 0;
  }

  std::unique_ptr<Connection> session_;
  int64_t incarnation_ = 0;
  int order_ = 0;
};

TEST_F(ClaimJobsTest, JobsStartUpToAClock) {
  for (const char* id : {"a", "b", "c", "d"}) Add(id);
  // A run of 2 s moves the clock of weight 2 by 1 s.
  Answer answer = Claim("'t', 0, 99.5, 4");
  EXPECT_THAT(answer.jobs, IsEmpty());
  EXPECT_EQ(answer.clock_s, 100);
  EXPECT_TRUE(answer.has_more) << "it was refused";
  answer = Claim("'t', 0, 101.5, 4");
  EXPECT_THAT(answer.jobs, ElementsAre("a", "b"));
  EXPECT_EQ(answer.clock_s, 102);
  answer = Claim("'t', 0, 'infinity', 4");
  EXPECT_THAT(answer.jobs, ElementsAre("c", "d"));
  EXPECT_FALSE(answer.has_more);
}

TEST_F(ClaimJobsTest, ATenantThatComesBackBringsNoOldCredit) {
  Add("a", "NULL, NULL", "u");
  EXPECT_EQ(Claim("'u', 50, 'infinity', 1").clock_s, 52);
  EXPECT_EQ(ReadDouble("SELECT start_s FROM tenant_now WHERE tenant = 'u'"), 50)
      << "the next floor";
}

TEST_F(ClaimJobsTest, TheBoundOnRunsHoldsForSeveralAtOnce) {
  Run("UPDATE tenant SET max_running = 3 WHERE tenant = 't'");
  for (const char* id : {"a", "b", "c", "d"}) Add(id);
  EXPECT_EQ(Claim("'t', 0, 'infinity', 2").room, 1);
  const Answer answer = Claim("'t', 0, 'infinity', 2");
  EXPECT_THAT(answer.jobs, ElementsAre("c"));
  EXPECT_EQ(answer.room, 0);
  EXPECT_THAT(Claim("'t', 0, 'infinity', 2").jobs, IsEmpty());
}

TEST_F(ClaimJobsTest, EqualJobsOfOneClaimRunOnce) {
  Add("a", "'y', NULL");
  Add("b", "'x', NULL");
  Add("c", "'y', NULL");
  EXPECT_THAT(Claim("'t', 0, 'infinity', 3").jobs, ElementsAre("b", "a"));
  EXPECT_EQ(ReadDouble("SELECT state::double precision FROM job_queue WHERE job_id = 'c'"), 2)
      << "it follows";
  EXPECT_EQ(ReadDouble("SELECT virtual_s FROM tenant_now WHERE tenant = 't'"), 102) << "two runs";
  Add("d", "'y', NULL");
  const Answer answer = Claim("'t', 0, 'infinity', 1");
  EXPECT_THAT(answer.jobs, IsEmpty()) << "it follows the run of an earlier claim";
  EXPECT_TRUE(answer.has_more);
}

TEST_F(ClaimJobsTest, APinnedJobIsChargedWhenItEnds) {
  Add("a", "NULL, 'n0'");
  Add("b", "NULL, 'n1'");
  const Answer answer = Claim("NULL, 0, 0, 2");
  EXPECT_THAT(answer.jobs, ElementsAre("a"));
  EXPECT_FALSE(answer.has_more);
  EXPECT_EQ(ReadDouble("SELECT charged_s FROM claim"), 0);
  EXPECT_EQ(ReadDouble("SELECT virtual_s FROM tenant_now WHERE tenant = 't'"), 100);
}

// Pages that a statement touches, the second time.
class OldVersionsTest : public ClaimJobsTest {
 protected:
  static constexpr absl::Duration kLimit = absl::Minutes(1);
  int64_t PagesOf(const std::string& sql) {
    int64_t pages = -1;
    for (int i = 0; i < 2; ++i) {
      const auto rows = session_->Run(
          absl::StrCat("EXPLAIN (ANALYZE, BUFFERS) SELECT * FROM ", sql).c_str(), {}, kLimit);
      EXPECT_TRUE(rows.ok()) << sql << ": " << rows.status();
      if (!rows.ok()) return -1;
      constexpr char kHits[] = "Buffers: shared hit=";
      pages = 0;
      // The first line of the kind is that of all.
      for (size_t row = rows->size(); row-- > 0;) {
        const std::string line(rows->Text(row, 0));
        const size_t hits = line.find(kHits);
        if (hits != std::string::npos) pages = std::atoll(line.c_str() + hits + sizeof(kHits) - 1);
      }
    }
    return pages;
  }
};

TEST_F(OldVersionsTest, HotStatementsDoNotStepOverThem) {
  for (const char* id : {"a", "b", "c", "d", "e", "f", "g"}) Add(id);
  const std::vector<std::string> statements = {
      "read_claimable('n0')",
      absl::StrCat("claim_jobs(", incarnation_, ", 'n0', 't', 0, 'infinity', 1)"),
      "charge_tenants('{t,u}', '{1,1}', '{1,1}', '{1,1}')",
      "look_at_jobs('{g}')",
      absl::StrCat("take_claims(", incarnation_, ", 'n0', false, 0)"),
      "floor_of('t')"};
  std::vector<int64_t> before;
  for (const std::string& sql : statements) before.push_back(PagesOf(sql));
  const auto reader = *Connection::Open(options_);
  ASSERT_TRUE(reader->RunScript("BEGIN ISOLATION LEVEL REPEATABLE READ", kLimit).ok());
  ASSERT_TRUE(reader->Run("SELECT count(*) FROM tenant", {}, kLimit).ok());
  Run("DO $$ BEGIN FOR i IN 1 .. 20000 LOOP "
      "UPDATE tenant_clock c SET version = t.version + 1 FROM tenant_now t "
      "WHERE t.tenant = 't' AND c.tenant = 't' AND c.version = t.version; "
      "DELETE FROM queue_floor; INSERT INTO queue_floor VALUES ('t', 0, server_us() + i); "
      "END LOOP; END $$;"
      "INSERT INTO claim (id, incarnation, owner, job_id, tenant, has_slot) "
      "SELECT -g, 1, 'n0', 'x', 'u', false FROM generate_series(1, 20000) g");
  Run("DELETE FROM claim WHERE id < 0");
  // Statistics that know of the rows that live: all versions seem to be one row.
  Run("ANALYZE");
  for (size_t i = 0; i < statements.size(); ++i) {
    EXPECT_LT(PagesOf(statements[i]), before[i] + 50) << statements[i];
  }
}

TEST_F(ClaimJobsTest, ANodeOfAnOlderVersionClaimsTheLeastClockToo) {
  Add("a");
  Add("b", "NULL, NULL", "u");
  const auto next = [&] {
    const auto rows = session_->Run("SELECT claim_id, claimed_job FROM claim_next($1, 'n0', false)",
                                    {incarnation_}, absl::Seconds(10));
    EXPECT_TRUE(rows.ok() && rows->size() <= 1u) << rows.status();
    return rows.ok() && rows->size() == 1 ? std::string(rows->Text(0, 1)) : "none";
  };
  EXPECT_EQ(next(), "b");
  EXPECT_EQ(next(), "a");
  EXPECT_EQ(next(), "none");
}

// A node whose view does not become old.
TEST_F(ClaimsTest, ANodeClaimsWhatItHearsOf) {
  ClaimingNode node(options_, "n",
                    {.view_period = {.least = absl::Hours(1), .per_node = absl::ZeroDuration()}});
  const auto claim = [&] { return node.board.Claim("n", absl::UnixEpoch()); };
  EXPECT_FALSE(claim().has_value());
  Fill(2, 4);
  EXPECT_FALSE(claim().has_value());
  jobs::Job job;
  job.tenant = "t1";
  node.board.HearOf({job});
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(claim().has_value());
  EXPECT_FALSE(claim().has_value());
  node.board.Accept({.place = {.id = "j1", .tenant = "t2"}}, /*reserved=*/false);
  EXPECT_TRUE(claim().has_value());
}

TEST_F(ClaimsTest, ManyPlacesAreReadAsOneIs) {
  Run("INSERT INTO tenant (tenant) SELECT 't' || g FROM generate_series(0, 4) g;"
      "UPDATE tenant_clock SET virtual_s = substr(tenant, 2)::int * 1.5, "
      "mean_s = 1 + substr(tenant, 2)::int % 2;"
      "INSERT INTO job_queue SELECT 'j' || g, 't' || g % 5, g * g % 977, g, NULL, NULL, g "
      "FROM generate_series(1, 2000) g;"
      "UPDATE job_queue SET state = 2, follows = 1 WHERE accept_order % 9 = 0;"
      "INSERT INTO queue_floor VALUES ('t2', 300, server_us() + 1000000000)");
  const auto rows = nodes_[0]->sessions.Read(
      "SELECT count(*), count(DISTINCT one.ahead), "
      "count(*) FILTER (WHERE ROW(one.*) IS DISTINCT FROM ROW(l.place, l.ahead, l.share, l.limited,"
      " l.running, l.slots, l.mean_s, l.of_tenant)) "
      "FROM look_at_jobs(ARRAY(SELECT job_id FROM job_queue WHERE accept_order % 7 = 0)) AS l, "
      "LATERAL look_at_job(l.job) AS one",
      {});
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->Int(0, 0), 285);
  EXPECT_GT(rows->Int(0, 1), 50) << "places differ";
  EXPECT_EQ(rows->Int(0, 2), 0) << "answers that differ";
}

// NPUC_PG_CLAIM_SECONDS=5 for a figure that can be compared.
TEST_F(ClaimsTest, AThousandTenantsShare) {
  const char* const given = std::getenv("NPUC_PG_CLAIM_SECONDS");
  const absl::Duration time = absl::Seconds(given == nullptr ? 1 : std::atoi(given));
  Fill(1000, 100);
  const int claimed = ClaimFor(time);
  std::printf("FIGURE: %d nodes of %d slots made %.0f claims/s of jobs of 1,000 tenants\n", kNodes,
              kSlots, claimed / absl::ToDoubleSeconds(time));
  const auto session = Connection::Open(options_);
  const auto rows = (*session)->Run(
      "SELECT count(*), count(DISTINCT job_id), "
      "(SELECT coalesce(max(n), 0) FROM "
      "(SELECT count(*) AS n FROM claim GROUP BY tenant) AS c) FROM claim",
      {}, absl::Seconds(10));
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->Int(0, 0), claimed);
  EXPECT_EQ(rows->Int(0, 1), claimed) << "a job was claimed twice";
  std::printf("FIGURE: of the tenant with most %d were claimed, %.1f of each on average\n",
              static_cast<int>(rows->Int(0, 2)), claimed / 1000.0);
}

}  // namespace
}  // namespace npuc::pg
