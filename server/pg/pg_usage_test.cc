#include "server/pg/pg_usage.h"

#include <string>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "server/pg/pg_test_util.h"

namespace npuc::pg {
namespace {

using base::UsageDays;

std::string Day(int64_t days_ago) {
  return absl::FormatTime("%Y-%m-%d", absl::Now() - days_ago * absl::Hours(24),
                          absl::UTCTimeZone());
}

TEST(PgUsageTest, BooksAddUp) {
  NPUC_SKIP_WITHOUT_POSTGRES();
  Sessions sessions(TestServer::Get()->NewDatabase());
  PgUsage here(&sessions);
  PgUsage there(&sessions);
  const std::string today = Day(0);
  const std::string yesterday = Day(1);
  const UsageDays first = {{yesterday, {{"audio", {.jobs = 1, .downloaded_bytes = 7}}}},
                           {today, {{"audio", {.jobs = 2}}, {"video", {.failed = 3}}}}};
  ASSERT_TRUE(here.Write(first, first).ok());
  ASSERT_TRUE(here.Write(first, first).ok()) << "a repeated call changes nothing";
  const UsageDays newer = {{today, {{"audio", {.jobs = 5}}}}};
  ASSERT_TRUE(here.Write(newer, newer).ok());
  EXPECT_TRUE(here.ReadOthers({})->empty()) << "its own are in its book";
  UsageDays expected = first;
  expected[today]["audio"].jobs = 5;
  EXPECT_EQ(*there.ReadOthers({}), expected);
  EXPECT_EQ(*there.ReadOthers({.from_day = today, .tenant = "audio"}), newer);
  EXPECT_EQ(there.ReadOthers({.to_day = yesterday})->size(), 1);
  ASSERT_TRUE(there.Write(newer, newer).ok());
  expected[today]["audio"].jobs = 10;
  EXPECT_EQ(*PgUsage(&sessions).ReadOthers({}), expected) << "as after a restart";
}

TEST(PgUsageTest, DaysThatAreOverBecomeOneSum) {
  NPUC_SKIP_WITHOUT_POSTGRES();
  Sessions sessions(TestServer::Get()->NewDatabase());
  const std::string over = Day(9);
  const auto insert = [&](const std::string& day, int64_t life, const IntArray& sums) {
    return sessions
        .Run(Sessions::Repeat::kOnce, "INSERT INTO usage VALUES ($1, 'audio', $2, $3)",
             {absl::string_view(day), life, sums})
        .status();
  };
  ASSERT_TRUE(insert(over, 7, {1, 0, 0, 0, 0, 0, 5}).ok());
  ASSERT_TRUE(insert(over, 8, {2, 0, 0, 0, 0, 0, 6}).ok());
  ASSERT_TRUE(insert(Day(3), 8, {4}).ok());
  ASSERT_TRUE(insert(Day(base::kMaxUsageDays + 2), 8, {4}).ok());
  PgUsage book(&sessions);
  const UsageDays late = {{over, {{"audio", {.jobs = 100}}}}};
  ASSERT_TRUE(book.Write(late, late).ok());
  const UsageDays expected = {{over, {{"audio", {.jobs = 3, .downloaded_bytes = 11}}}},
                              {Day(3), {{"audio", {.jobs = 4}}}}};
  const auto rows = [&] { return sessions.Read("SELECT 1 FROM usage", {})->size(); };
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(PgUsage::Fold(sessions).ok());
    EXPECT_EQ(*book.ReadOthers({}), expected);
    EXPECT_EQ(rows(), 2);
  }
  // A row that came all the same, from a version with fewer columns.
  ASSERT_TRUE(insert(over, 9, {1, 1}).ok());
  ASSERT_TRUE(PgUsage::Fold(sessions).ok());
  EXPECT_EQ(book.ReadOthers({.from_day = over, .to_day = over})->at(over).at("audio"),
            (base::Usage{.jobs = 4, .succeeded = 1, .downloaded_bytes = 11}));
  EXPECT_EQ(rows(), 2);
}

}  // namespace
}  // namespace npuc::pg
