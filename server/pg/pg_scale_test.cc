// The board holds very many jobs: NPUC_PG_QUEUE_ROWS=10000000 loads as many.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "server/base/steady_clock.h"
#include "server/jobs/job_service.h"
#include "server/pg/pg_board.h"
#include "server/pg/pg_job_store.h"
#include "server/pg/pg_test_util.h"

namespace npuc::pg {
namespace {

constexpr absl::Duration kLoadLimit = absl::Hours(1);
constexpr int kTenants = 7;

double Milliseconds(absl::Time begin) { return absl::ToDoubleMilliseconds(absl::Now() - begin); }

struct Times {
  std::vector<double> ms;

  double At(double share) {
    std::sort(ms.begin(), ms.end());
    return ms[static_cast<size_t>(static_cast<double>(ms.size() - 1) * share)];
  }
};

class ScaleTest : public ::testing::Test {
 protected:
  void SetUp() override {
    NPUC_SKIP_WITHOUT_POSTGRES();
    const char* const given = std::getenv("NPUC_PG_QUEUE_ROWS");
    is_long_ = given != nullptr;
    if (is_long_) rows_ = std::atoll(given);
    options_ = TestServer::Get()->NewDatabase();
    const auto session = *Connection::Open(options_);
    const absl::Status loaded = session->RunScript(
        absl::StrReplaceAll(
            "INSERT INTO tenant (tenant) SELECT 't' || g FROM generate_series(0, $tenants - 1) g;"
            "INSERT INTO job_queue SELECT 'j' || lpad(g::text, 26, '0'), 't' || g % $tenants, "
            "1000 * g::bigint, g, 'f' || g, NULL, 9223372036854775807 FROM generate_series(1, "
            "$rows) g",
            {{"$rows", absl::StrCat(rows_)}, {"$tenants", absl::StrCat(kTenants)}}),
        kLoadLimit);
    ASSERT_TRUE(loaded.ok()) << loaded;
    const auto vacuumed = session->Run("VACUUM ANALYZE job_queue", {}, kLoadLimit);
    ASSERT_TRUE(vacuumed.ok()) << vacuumed.status();
  }
  static std::string JobAt(int64_t number) { return absl::StrFormat("j%026d", number); }
  // A limit for one figure on a quiet machine; ctest's machine has others' work, too.
  double Limit(double ms) const { return is_long_ ? ms : 10 * ms; }

  bool is_long_ = false;
  int64_t rows_ = 20000;
  ConnectionOptions options_;
};

TEST_F(ScaleTest, ManyJobsWait) {
  const absl::Time begin = absl::Now();
  Sessions sessions(options_);
  const auto node = *Node::Join(&sessions, {.name = "a", .steady_now = base::SteadyNow});
  PgJobStore store(&sessions, node.get());
  PgBoard board(&sessions, node.get());
  jobs::JobService service({.owner = "a",
                            .now = [&] { return node->ClusterNow(); },
                            .random = std::mt19937_64(1),
                            .retry = {}},
                           &store, &board);
  ASSERT_TRUE(service.Recover(nullptr).ok());
  const double start_ms = Milliseconds(begin);

  // The counts are read by the first of these.
  ASSERT_TRUE(board.Look(JobAt(rows_)).has_value());
  Times last, exact;
  for (int i = 0; i < 100; ++i) {
    absl::Time before = absl::Now();
    const auto view = board.Look(JobAt(rows_ - i));
    last.ms.push_back(Milliseconds(before));
    ASSERT_TRUE(view.has_value());
    EXPECT_GT(view->queue.position, 0.9 * static_cast<double>(rows_));
    EXPECT_LE(view->queue.position, rows_);
    before = absl::Now();
    const auto near = board.Look(JobAt(kTenants * (i + 1)));  // number i of its tenant
    exact.ms.push_back(Milliseconds(before));
    ASSERT_TRUE(near.has_value());
    // The others have started as many.
    EXPECT_GE(near->queue.position, i);
    EXPECT_LE(near->queue.position, kTenants * (i + 1));
  }
  Times claims;
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(node->Beat().ok());
    const absl::Time before = absl::Now();
    const auto claim = board.Claim("a", node->ClusterNow());
    claims.ms.push_back(Milliseconds(before));
    ASSERT_TRUE(claim.has_value());
  }
  std::printf(
      "FIGURE: %lld queued jobs: start of a node %.0f ms; a claim p50 %.2f ms, p99 %.2f ms; "
      "place of the last job p50 %.2f ms, p99 %.2f ms, of an early one p99 %.2f ms\n",
      static_cast<long long>(rows_), start_ms, claims.At(0.5), claims.At(0.99), last.At(0.5),
      last.At(0.99), exact.At(0.99));
  EXPECT_LT(start_ms, Limit(2000));
  EXPECT_LT(claims.At(0.99), Limit(10));
  EXPECT_LT(last.At(0.99), Limit(20));
  EXPECT_LT(exact.At(0.99), Limit(20));
}

}  // namespace
}  // namespace npuc::pg
