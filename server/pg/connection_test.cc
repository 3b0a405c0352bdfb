#include "server/pg/connection.h"

#include <thread>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/pg/pg_test_util.h"
#include "server/pg/schema.h"
#include "server/pg/schema_sql.h"

namespace npuc::pg {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::Duration kLimit = absl::Minutes(1);  // beside other tests, under sanitizers

class ConnectionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    NPUC_SKIP_WITHOUT_POSTGRES();
    options_ = TestServer::Get()->NewDatabase();
    connection_ = Open();
  }
  std::unique_ptr<Connection> Open() const {
    auto opened = Connection::Open(options_);
    EXPECT_TRUE(opened.ok()) << opened.status();
    return opened.ok() ? *std::move(opened) : nullptr;
  }
  Rows MustRun(const char* sql, const std::vector<Value>& parameters = {}) {
    absl::StatusOr<Rows> rows = connection_->Run(sql, parameters, kLimit);
    EXPECT_TRUE(rows.ok()) << rows.status();
    return rows.ok() ? *std::move(rows) : Rows();
  }

  ConnectionOptions options_;
  std::unique_ptr<Connection> connection_;
};

TEST_F(ConnectionTest, ParametersComeBackAsTheyWere) {
  const std::string bytes("\0\\x{}\"\xff', NULL", 14);
  const Rows rows = MustRun(
      "SELECT $1, $2, $3, $4, $5, $6",
      {true, int64_t{INT64_MIN}, -0.1, absl::string_view("{\"ä\\', NULL}"), Bytes{bytes}, nullptr});
  EXPECT_TRUE(rows.Bool(0, 0));
  EXPECT_EQ(rows.Int(0, 1), INT64_MIN);
  EXPECT_EQ(rows.Double(0, 2), -0.1);
  EXPECT_EQ(rows.Text(0, 3), "{\"ä\\', NULL}");
  EXPECT_EQ(rows.Text(0, 4), bytes);
  EXPECT_TRUE(rows.IsNull(0, 5));
  EXPECT_FALSE(rows.IsNull(0, 4));
}

TEST_F(ConnectionTest, ArraysComeBackAsTheyWere) {
  const std::string bytes("\0,{}\"", 5);
  const Rows rows = MustRun("SELECT * FROM unnest($1, $2, $3, $4) AS t(a, b, c, d)",
                            {TextArray{"", "NULL", "{\"\\"}, IntArray{1, -1, INT64_MAX},
                             BytesArray{Bytes{""}, Bytes{bytes}, Bytes{"x"}},
                             OptionalTextArray{{std::nullopt, "", "NULL"}}});
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows.Text(0, 0), "");
  EXPECT_EQ(rows.Text(1, 0), "NULL");
  EXPECT_EQ(rows.Text(2, 0), "{\"\\");
  EXPECT_EQ(rows.Int(2, 1), INT64_MAX);
  EXPECT_EQ(rows.Text(0, 2), "");
  EXPECT_EQ(rows.Text(1, 2), bytes);
  EXPECT_TRUE(rows.IsNull(0, 3));
  EXPECT_FALSE(rows.IsNull(1, 3));
  EXPECT_EQ(rows.Text(2, 3), "NULL");
  EXPECT_EQ(MustRun("SELECT cardinality($1)", {TextArray{}}).Int(0, 0), 0);
  EXPECT_THAT(MustRun("SELECT $1", {IntArray{7, 8}}).Ints(0, 0), ElementsAre(7, 8));
  EXPECT_THAT(MustRun("SELECT $1", {IntArray{}}).Ints(0, 0), IsEmpty());
}

// Both sides' buffers are full at once.
TEST_F(ConnectionTest, LargeParametersAndAnswersPass) {
  const std::string large(32 << 20, 'x');
  EXPECT_EQ(MustRun("SELECT $1", {Bytes{large}}).Text(0, 0), large);
}

TEST_F(ConnectionTest, AStatementThatIsRefusedLeavesTheConnectionUsable) {
  const absl::Status refused = connection_->Run("SELECT 1/0", {}, kLimit).status();
  EXPECT_EQ(FaultOf(refused), Fault::kRefused);
  EXPECT_EQ(SqlStateOf(refused), "22012");
  EXPECT_EQ(refused.code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(connection_->is_usable());
  EXPECT_EQ(MustRun("SELECT 1").Int(0, 0), 1);
  EXPECT_EQ(FaultOf(absl::OkStatus()), Fault::kNone);
  EXPECT_EQ(FaultOf(absl::InternalError("of somebody else")), Fault::kNone);
}

TEST_F(ConnectionTest, ADeadlockMayBeTriedAgain) {
  MustRun("CREATE TABLE t AS SELECT g AS id, 0 AS n FROM generate_series(1, 2) AS g");
  const auto other = Open();
  ASSERT_TRUE(connection_->RunScript("BEGIN; UPDATE t SET n = 1 WHERE id = 1", kLimit).ok());
  ASSERT_TRUE(other->RunScript("BEGIN; UPDATE t SET n = 1 WHERE id = 2", kLimit).ok());
  absl::Status second;
  std::thread waits([&] { second = other->RunScript("UPDATE t SET n = 1 WHERE id = 1", kLimit); });
  const absl::Status first = connection_->RunScript("UPDATE t SET n = 1 WHERE id = 2", kLimit);
  if (!first.ok()) {
    EXPECT_TRUE(connection_->RunScript("ROLLBACK", kLimit).ok());
  }
  waits.join();
  EXPECT_NE(first.ok(), second.ok());
  EXPECT_EQ(FaultOf(first.ok() ? second : first), Fault::kRetry);
}

TEST_F(ConnectionTest, NoAnswerInTimeIsUnknownAndEndsTheConnection) {
  const absl::Time begin = absl::Now();
  const absl::Status late =
      connection_->Run("SELECT pg_sleep(30)", {}, absl::Milliseconds(100)).status();
  EXPECT_LT(absl::Now() - begin, absl::Seconds(10));
  EXPECT_EQ(FaultOf(late), Fault::kUnknown);
  EXPECT_EQ(late.code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(connection_->is_usable());
  EXPECT_EQ(FaultOf(connection_->Run("SELECT 1", {}, kLimit).status()), Fault::kLost);
}

TEST_F(ConnectionTest, ASessionThatIsEndedDuringAStatementIsUnknown) {
  const int64_t pid = MustRun("SELECT pg_backend_pid()").Int(0, 0);
  const auto other = Open();
  absl::Status status;
  std::thread waits([&] { status = connection_->Run("SELECT pg_sleep(30)", {}, kLimit).status(); });
  const Value of_session = pid;
  const char* const is_asleep =
      "SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND wait_event = 'PgSleep'";
  while (other->Run(is_asleep, {of_session}, kLimit)->Int(0, 0) == 0) {
  }
  EXPECT_TRUE(other->Run("SELECT pg_terminate_backend($1::int)", {of_session}, kLimit).ok());
  waits.join();
  EXPECT_EQ(FaultOf(status), Fault::kUnknown) << status;
  EXPECT_FALSE(connection_->is_usable());
}

TEST_F(ConnectionTest, ANotificationArrives) {
  const auto other = Open();
  ASSERT_TRUE(connection_->RunScript("LISTEN npuc", kLimit).ok());
  ASSERT_TRUE(other->Run("SELECT pg_notify('npuc', $1)", {absl::string_view("a;b")}, kLimit).ok());
  std::vector<Notification> all;
  while (all.empty()) {
    auto some = connection_->WaitForNotifications(kLimit);
    ASSERT_TRUE(some.ok()) << some.status();
    all = *std::move(some);
  }
  EXPECT_EQ(all[0].payload, "a;b");
  EXPECT_THAT(*connection_->WaitForNotifications(absl::Milliseconds(1)), IsEmpty());
}

// As after a failover that left the session on the old server.
TEST_F(ConnectionTest, AServerThatTakesNoWritesIsLost) {
  MustRun("CREATE TABLE t (n int)");
  ASSERT_TRUE(connection_->RunScript("SET default_transaction_read_only = on", kLimit).ok());
  const absl::Status status = connection_->Run("INSERT INTO t VALUES (1)", {}, kLimit).status();
  EXPECT_EQ(FaultOf(status), Fault::kLost);
  EXPECT_FALSE(connection_->is_usable());
}

TEST_F(ConnectionTest, WithoutAServerItIsLostInTime) {
  const absl::Time begin = absl::Now();
  for (const char* url : {"host=/nonexistent", "postgres://127.0.0.1:1/x", "no url at all"}) {
    const absl::Status status = Connection::Open({.url = url}).status();
    EXPECT_EQ(FaultOf(status), Fault::kLost) << url << ": " << status;
  }
  EXPECT_LT(absl::Now() - begin, absl::Seconds(10));
}

TEST_F(ConnectionTest, MigrationsMayBeRepeatedAndRunAtOnce) {
  ConnectionOptions empty = options_;
  MustRun("CREATE DATABASE empty");
  empty.url = empty.url.substr(0, empty.url.rfind('=')) + "=empty";
  auto before = Connection::Open(empty);
  ASSERT_TRUE(before.ok()) << before.status();
  EXPECT_THAT(CheckSchema(**before).ToString(), HasSubstr("npucd --migrate"));
  std::vector<absl::Status> results(4);
  std::vector<std::thread> threads;
  for (absl::Status& result : results) {
    threads.emplace_back([&] { result = Migrate(empty); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& result : results) EXPECT_TRUE(result.ok()) << result;
  EXPECT_TRUE(Migrate(empty).ok());
  // One that an older build made gets what it lacks.
  ASSERT_TRUE(
      (*before)
          ->RunScript("DROP SCHEMA npuc CASCADE; CREATE SCHEMA npuc; SET search_path = npuc",
                      kLimit)
          .ok());
  ASSERT_TRUE(
      (*before)
          ->RunScript(absl::StrCat(kTablesSql, "INSERT INTO cluster (schema_version) VALUES (1)"),
                      kLimit)
          .ok());
  EXPECT_THAT(CheckSchema(**before).ToString(), HasSubstr("tables of version 1"));
  ASSERT_TRUE(Migrate(empty).ok());
  EXPECT_TRUE((*before)->Run("SELECT * FROM job_input", {}, kLimit).ok());
  // The tests' server does without syncs, of which the check tells.
  EXPECT_THAT(CheckSchema(**before).ToString(), HasSubstr("fsync is off"));
  // Newer tables say whether they take this build's nodes.
  ASSERT_TRUE((*before)->RunScript("UPDATE npuc.cluster SET schema_version = 99", kLimit).ok());
  EXPECT_THAT(CheckSchema(**before).ToString(), HasSubstr("fsync is off"));
  EXPECT_THAT(Migrate(empty).ToString(), HasSubstr("version 99"));
  ASSERT_TRUE((*before)->RunScript("UPDATE npuc.cluster SET min_node_version = 99", kLimit).ok());
  EXPECT_THAT(CheckSchema(**before).ToString(), HasSubstr("version 99"));
  EXPECT_EQ(CheckSchema(**before).code(), absl::StatusCode::kFailedPrecondition);
}

// Tables of version 9 with tenants and a floor.
TEST_F(ConnectionTest, ClocksOfVersion9GoOn) {
  MustRun("CREATE DATABASE filled");
  ConnectionOptions filled = options_;
  filled.url = filled.url.substr(0, filled.url.rfind('=')) + "=filled";
  const auto session = *Connection::Open(filled);
  const auto run = [&](const std::string& script) {
    const absl::Status status = session->RunScript(script, kLimit);
    EXPECT_TRUE(status.ok()) << status;
  };
  std::string tables = "CREATE SCHEMA npuc; SET search_path = npuc;\n";
  absl::StrAppend(&tables, kTablesSql, "INSERT INTO cluster (schema_version) VALUES (9);\n");
  for (int version = 2; version <= 9; ++version) {
    absl::StrAppend(&tables, kUpgradesSql[version - 2]);
  }
  run(tables);
  run("INSERT INTO tenant VALUES ('a', 7, 5, 3, 2, 4), ('b', 9, 8, 1, 1, 0);"
      "INSERT INTO queue_floor VALUES ('a', 1, 2)");
  ASSERT_TRUE(Migrate(filled).ok());
  // A node of version 9 meets a new tenant.
  const std::string add =
      "INSERT INTO tenant (tenant, weight, max_running, virtual_s) "
      "VALUES ('c', 3, 6, coalesce((SELECT max(start_s) FROM tenant), 0)) "
      "ON CONFLICT (tenant) DO UPDATE SET weight = 3, max_running = 6;";
  run(add + add);
  const auto rows = session->Run(
      "SELECT string_agg(concat_ws(' ', tenant, weight, max_running, virtual_s, start_s, mean_s), "
      "', ' ORDER BY tenant) FROM tenant_now",
      {}, kLimit);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->Text(0, 0), "a 2 4 7 5 3, b 1 0 9 8 1, c 3 6 8 0 2");
}

TEST(CheckUrlTest, APasswordBelongsInAFile) {
  EXPECT_TRUE(CheckUrl("postgres://npucd@db.example:5432/npuc?sslmode=verify-full").ok());
  EXPECT_TRUE(CheckUrl("host=/run/postgresql user=npucd dbname=npuc").ok());
  for (const char* url : {"postgres://npucd:s3cret@db/npuc", "postgres://db/npuc?password=s3cret",
                          "host=db password=s3cret", "no url s3cret"}) {
    const absl::Status status = CheckUrl(url);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << url;
    EXPECT_THAT(status.ToString(), ::testing::Not(HasSubstr("s3cret"))) << url;
  }
}

}  // namespace
}  // namespace npuc::pg
