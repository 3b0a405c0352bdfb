#include "server/base/usage_store.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace npuc::base {
namespace {

TEST(FileUsageStoreTest, KeepsAllSumsAndTellsOfDamage) {
  const std::string path = ::testing::TempDir() + "/usage_store";
  std::filesystem::remove(path);
  FileUsageStore store(path);
  EXPECT_TRUE(store.Read()->empty());
  UsageDays days;
  int64_t number = 0;
  for (const auto column : kUsageColumns) days["2027-01-15"]["audio"].*column = ++number;
  days["2027-01-16"]["video"].jobs = INT64_MAX;
  ASSERT_TRUE(store.Write(days, {}).ok());
  EXPECT_EQ(*FileUsageStore(path).Read(), days);
  EXPECT_TRUE(store.ReadOthers({})->empty());
  std::ofstream(path) << "2027-01-15\ta\t1\n";
  EXPECT_EQ(store.Read().status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(UsageFilterTest, BoundsAreIncluded) {
  const UsageFilter filter{.from_day = "2027-01-15", .to_day = "2027-01-16", .tenant = "a"};
  EXPECT_TRUE(filter.Takes("2027-01-15", "a"));
  EXPECT_TRUE(filter.Takes("2027-01-16", "a"));
  EXPECT_FALSE(filter.Takes("2027-01-14", "a"));
  EXPECT_FALSE(filter.Takes("2027-01-17", "a"));
  EXPECT_FALSE(filter.Takes("2027-01-15", "b"));
  EXPECT_TRUE(UsageFilter().Takes("2027-01-15", "b"));
}

}  // namespace
}  // namespace npuc::base
