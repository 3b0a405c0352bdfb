#include "server/pg/janitor.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/pg/pg_test_util.h"

namespace npuc::pg {
namespace {

constexpr absl::Duration kLimit = absl::Seconds(10);

class JanitorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    NPUC_SKIP_WITHOUT_POSTGRES();
    options_ = TestServer::Get()->NewDatabase();
    sessions_ = std::make_unique<Sessions>(options_);
    janitor_ = std::make_unique<Janitor>(
        sessions_.get(), JanitorOptions{.dead_rows = 10, .steady_now = [this] { return now_; }});
    writer_ = *Connection::Open(options_);
  }

  void Write(const std::string& sql) {
    const absl::Status status = writer_->RunScript(sql, kLimit);
    ASSERT_TRUE(status.ok()) << status;
  }
  // Sometime later, with writes in between.
  void StepAfter(absl::Duration time) {
    Write("UPDATE cluster SET schema_version = schema_version");
    now_ += time;
    const absl::Status status = janitor_->Step();
    ASSERT_TRUE(status.ok()) << status;
  }
  void TakeSnapshot() {
    Write("UPDATE cluster SET schema_version = schema_version");
    reader_ = *Connection::Open(options_);
    ASSERT_TRUE(reader_->Run("BEGIN ISOLATION LEVEL REPEATABLE READ", {}, kLimit).ok());
    ASSERT_TRUE(reader_->Run("SELECT count(*) FROM job_queue", {}, kLimit).ok());
  }
  int64_t Number(const std::string& sql) {
    const auto rows = writer_->Run(sql.c_str(), {}, kLimit);
    EXPECT_TRUE(rows.ok()) << rows.status();
    return rows.ok() && !rows->empty() ? rows->Int(0, 0) : -1;
  }

  ConnectionOptions options_;
  absl::Time now_ = absl::UnixEpoch();
  std::unique_ptr<Sessions> sessions_;
  std::unique_ptr<Janitor> janitor_;
  std::unique_ptr<Connection> writer_, reader_;
};

TEST_F(JanitorTest, KnowsTheAgeOfTheOldestSnapshot) {
  StepAfter(absl::Seconds(1));
  EXPECT_EQ(janitor_->OldestSnapshotAge(), absl::ZeroDuration());
  StepAfter(absl::Hours(1));
  EXPECT_EQ(janitor_->OldestSnapshotAge(), absl::ZeroDuration()) << "each look sees another one";
  TakeSnapshot();
  StepAfter(absl::Seconds(1));
  StepAfter(absl::Seconds(20));
  StepAfter(absl::Seconds(50));
  EXPECT_EQ(janitor_->OldestSnapshotAge(), absl::Seconds(70));
  reader_.reset();
  // The server sees the end of a session in its own time.
  while (janitor_->OldestSnapshotAge() > absl::ZeroDuration()) StepAfter(absl::Seconds(1));
}

// A look reads all sessions of the server, and each node looks.
TEST_F(JanitorTest, LooksAsSeldomAsManyNodesAllow) {
  janitor_ = std::make_unique<Janitor>(
      sessions_.get(),
      JanitorOptions{.nodes = [] { return 1000; }, .steady_now = [this] { return now_; }});
  StepAfter(absl::Seconds(1));
  StepAfter(absl::Seconds(2));
  EXPECT_EQ(janitor_->OldestSnapshotAge(), absl::Seconds(2)) << "it has not looked again";
  TakeSnapshot();
  StepAfter(absl::Seconds(3));
  EXPECT_EQ(janitor_->OldestSnapshotAge(), absl::ZeroDuration()) << "after old_snapshot it has";
  StepAfter(absl::Seconds(5));
  EXPECT_EQ(janitor_->OldestSnapshotAge(), absl::Seconds(5));
}

TEST_F(JanitorTest, ClaimsLookFromTheFloorWhileASnapshotIsOld) {
  const int64_t node = Number("SELECT join_node('a', 'build', '', 1)");
  const auto add = [&](const std::string& job, int rank) {
    Write(
        absl::StrCat("INSERT INTO job_queue (job_id, tenant, rank_us, accept_order, due_us) "
                     "VALUES ('",
                     job, "', 't', ", rank, ", 1, 1)"));
  };
  const auto claimed = [&] {
    const auto rows =
        writer_->Run("SELECT claimed_job FROM claim_next($1, 'a', false)", {node}, kLimit);
    return rows.ok() && !rows->empty() ? std::string(rows->Text(0, 0)) : "none";
  };
  Write("INSERT INTO tenant (tenant) VALUES ('t')");
  add("first", 10);
  add("second", 20);
  add("third", 30);
  StepAfter(absl::Seconds(1));
  StepAfter(absl::Seconds(10));
  EXPECT_EQ(Number("SELECT count(*) FROM queue_floor"), 0) << "no snapshot is old";
  EXPECT_EQ(claimed(), "first");
  TakeSnapshot();
  StepAfter(absl::Seconds(1));
  StepAfter(absl::Seconds(10));
  EXPECT_EQ(Number("SELECT rank_us FROM queue_floor WHERE tenant = 't'"), 20);
  // A job that comes below the floor waits until that is over, and not longer.
  add("urgent", 5);
  EXPECT_EQ(claimed(), "second");
  Write("UPDATE queue_floor SET until_us = 0");
  EXPECT_EQ(claimed(), "urgent");
  EXPECT_EQ(claimed(), "third");
  // A tenant without waiting jobs has a floor below what comes now.
  StepAfter(absl::Seconds(10));
  const int64_t above = Number("SELECT server_us() - rank_us FROM queue_floor");
  EXPECT_GE(above, 1'000'000);
  EXPECT_LT(above, 60'000'000);
}

// A queue that only grows leaves no dead rows, and plans for an empty one read all of it.
TEST_F(JanitorTest, RenewsTheStatisticsOfATableThatGrows) {
  Write("ANALYZE job_queue");
  Write(
      "INSERT INTO job_queue (job_id, tenant, rank_us, accept_order, due_us) "
      "SELECT 'j' || g, 't', g, g, g FROM generate_series(1, 5000) g");
  Write("SELECT pg_stat_force_next_flush()");
  const std::string rows = "SELECT reltuples::bigint FROM pg_class WHERE relname = 'job_queue'";
  // PostgreSQL counts changes in its own time.
  const std::string changes =
      "SELECT n_mod_since_analyze FROM pg_stat_user_tables WHERE relname = 'job_queue'";
  while (Number(changes) < 5000) {
  }
  StepAfter(absl::Seconds(20));
  StepAfter(absl::Seconds(20));
  EXPECT_EQ(Number(rows), 5000);
}

TEST_F(JanitorTest, CleansWhatNoSnapshotNeeds) {
  StepAfter(absl::Seconds(1));
  TakeSnapshot();
  StepAfter(absl::Seconds(1));
  Write(
      "INSERT INTO job_queue (job_id, tenant, rank_us, accept_order, due_us) "
      "SELECT 'j' || g, 't', g, g, g FROM generate_series(1, 1000) g");
  Write("DELETE FROM job_queue; SELECT pg_stat_force_next_flush()");
  do {
    StepAfter(absl::Seconds(20));
  } while (janitor_->DeadRows()["job_queue"] < 1000);
  StepAfter(absl::Seconds(20));
  const std::string vacuums =
      "SELECT vacuum_count FROM pg_stat_user_tables WHERE relname = 'job_queue'";
  EXPECT_EQ(Number(vacuums), 0) << "the reader needs all of them";
  reader_.reset();
  while (janitor_->OldestSnapshotAge() > absl::ZeroDuration()) StepAfter(absl::Seconds(20));
  StepAfter(absl::Seconds(20));
  EXPECT_GE(Number(vacuums), 1);
  do {
    StepAfter(absl::Seconds(1));
  } while (janitor_->DeadRows()["job_queue"] > 0);
}

}  // namespace
}  // namespace npuc::pg
