#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/pg/node.h"
#include "server/pg/pg_test_util.h"
#include "server/pg/sessions.h"

namespace npuc::pg {
namespace {

// No statement reads a large table as a whole, whatever is known of the tables.
class PlansTest : public ::testing::Test {
 protected:
  static constexpr absl::Duration kLimit = absl::Minutes(5);
  static constexpr char kClaimOne[] = "SELECT * FROM claim_jobs($1, 'a', 't1', 0, 'infinity', 1)";

  void SetUp() override {
    NPUC_SKIP_WITHOUT_POSTGRES();
    const ConnectionOptions options = TestServer::Get()->NewDatabase();
    sessions_.emplace(options);
    auto node = Node::Join(&*sessions_, {.name = "a", .slots = 2, .steady_now = absl::Now});
    ASSERT_TRUE(node.ok()) << node.status();
    node_ = *std::move(node);
    session_ = *Connection::Open(options);
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
  // Rows of claims that were, which a snapshot keeps.
  void AddDeadClaims() {
    reader_ = *Connection::Open(sessions_->options());
    ASSERT_TRUE(reader_->Run("BEGIN ISOLATION LEVEL REPEATABLE READ", {}, kLimit).ok());
    ASSERT_TRUE(reader_->Run("SELECT count(*) FROM claim", {}, kLimit).ok());
    RunScript(
        absl::StrReplaceAll("INSERT INTO claim (id, incarnation, owner, job_id, tenant) "
                            "SELECT -g, $node, 'a', 'c' || g, 't' FROM generate_series(1, 20000) g;"
                            "DELETE FROM claim",
                            {{"$node", absl::StrCat(node_->incarnation())}}));
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
    // A plan for an empty table may step over all rows of a full one, by an index, too.
    EXPECT_THAT(plans, ::testing::Not(::testing::ContainsRegex("Rows Removed by .*: [0-9]{4}")))
        << sql;
    // A bitmap scan counts dead rows, too. Places are counted up to 1,000.
    EXPECT_THAT(
        plans,
        ::testing::Not(::testing::ContainsRegex("[(]actual [^)]*rows=([2-9][0-9]{3}|[0-9]{5})")))
        << sql;
    // Without a condition a scan of an index steps over all rows, also those that are dead.
    EXPECT_THAT(
        plans,
        ::testing::Not(::testing::ContainsRegex(
            "Scan using (claim|flight|job|job_queue)_pkey on [^\n]*[(]actual [^\n]*\n *[^ I]")))
        << sql;
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
    const int64_t incarnation = node_->incarnation();
    call("SELECT * FROM read_claimable('a')", {});
    call("SELECT * FROM claim_jobs($1, 'a', NULL, 0, 0, 2)", {incarnation});
    const Rows claimed = call(kClaimOne, {incarnation});
    ASSERT_EQ(claimed.size(), 2u);
    call("SELECT * FROM claim_next($1, 'a', false)", {incarnation});
    const int64_t claim = claimed.Int(0, 0);
    call(
        "SELECT apply_batch($1, 1, 1, ARRAY[$2], '{t}', '{2}', '{2}', '{0}', '{0}', '{-1}', "
        "'{\"\"}', '{a}', '{a}', '{1}', '{1}', '{NULL}', '{NULL}', '{1}', '{}', '{}', '{}', '{}', "
        "'{}', '{7}')",
        {incarnation, claimed.Text(0, 1)});
    RunScript(
        absl::StrCat("DELETE FROM change; UPDATE lane SET commit_no = 0; "
                     "UPDATE job SET revision = 1, state = 1 WHERE job_id = '",
                     claimed.Text(0, 1), "'"));
    call("SELECT start_claim($1, $2, 1, 1)", {claim, incarnation});
    call("SELECT * FROM pass_claim_on($1, $2, 1)", {claim, incarnation});
    call("SELECT * FROM close_claim($1, $2, 1)", {claim, incarnation});
    call("SELECT * FROM end_claim($1, $2, 1)", {claim, incarnation});
    call("SELECT * FROM take_claims($1, 'a', false, 0)", {incarnation});
    call("SELECT charge_tenants('{t1,t2}', '{1,1}', '{1,1}', '{1,1}')", {});
    call("SELECT * FROM look_at_jobs($1)", {TextArray{job, "j2"}});
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
  void ExplainAll(const std::string& job = "j19999") {
    RunScript(
        "LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; "
        "SET auto_explain.log_nested_statements = on; SET auto_explain.log_analyze = on; "
        "SET client_min_messages = log");
    CallEach(job, [&](const char* sql, const std::vector<Value>& parameters) {
      return Explain(sql, parameters);
    });
  }
  void PrintTimeOfClaims() {
    RunScript("SET auto_explain.log_min_duration = -1");
    constexpr size_t kClaims = 300;
    std::vector<double> times;
    for (size_t i = 0; i < kClaims; ++i) {
      const absl::Time begin = absl::Now();
      const auto claimed = session_->Run(kClaimOne, {node_->incarnation()}, kLimit);
      times.push_back(absl::ToDoubleMilliseconds(absl::Now() - begin));
      ASSERT_TRUE(claimed.ok()) << claimed.status();
      ASSERT_EQ(claimed->size(), 2u);
    }
    std::sort(times.begin(), times.end());
    std::printf("FIGURE: a claim among %d queued jobs: p50 %.2f ms, p99 %.2f ms\n", ManyRows(),
                times[kClaims / 2], times[kClaims * 99 / 100]);
  }

  std::optional<Sessions> sessions_;
  std::unique_ptr<Node> node_;
  std::unique_ptr<Connection> session_;
  std::unique_ptr<Connection> reader_;
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

// An old snapshot keeps the rows of all claims that were. Their index by node is smaller than that
// by id, and where the statistics know of no live claim to read the whole of an index seems to cost
// a page.
TEST_F(PlansTest, FindAClaimAmongManyDeadOnes) {
  Fill(ManyRows());
  AddDeadClaims();
  RunScript("ANALYZE");
  ExplainAll();
}

// A session keeps the plans that it made while the tables were all but empty.
TEST_F(PlansTest, MadeForOneRowServeMany) {
  // ANALYZE learns nothing from an empty table, and the planner guesses that it has some rows.
  Fill(1);
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
