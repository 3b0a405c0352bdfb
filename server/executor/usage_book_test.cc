#include "server/executor/usage_book.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::executor {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

// The sums of counters of one tenant.
class Sums : public observe::NoMetrics {
 public:
  void Add(observe::Metric metric, Labels labels, double amount) override {
    sums[{metric, std::string(*labels.begin())}] += amount;
  }
  std::map<std::pair<observe::Metric, std::string>, double> sums;
};

class UsageBookTest : public ::testing::Test {
 protected:
  UsageBookTest() : path_(::testing::TempDir() + "/usage") { std::filesystem::remove(path_); }
  std::unique_ptr<UsageBook> Open() {
    auto book = UsageBook::Open(
        path_, [this] { return now_; }, &metrics_);
    EXPECT_TRUE(book.ok()) << book.status();
    return *std::move(book);
  }

  const std::string path_;
  Sums metrics_;
  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);  // 2027-01-15
};

TEST_F(UsageBookTest, SumsByDayAndTenantOverRestarts) {
  auto first = Open();
  first->Add("audio", {.jobs = 1, .succeeded = 1, .processor_micros = 5});
  first->Add("audio", {.jobs = 1, .failed = 1, .uploaded_bytes = 7});
  first->Add("video", {.downloaded_bytes = 9});
  ASSERT_TRUE(first->Save().ok());
  now_ += absl::Hours(24);
  auto second = Open();
  second->Add("audio", {.jobs = 1, .cache_hits = 1});
  const auto all = second->Find("", "", "");
  ASSERT_THAT(all, SizeIs(3));
  EXPECT_EQ(all[0].day, "2027-01-15");
  EXPECT_EQ(
      all[0].usage,
      (Usage{.jobs = 2, .succeeded = 1, .failed = 1, .processor_micros = 5, .uploaded_bytes = 7}));
  EXPECT_EQ(all[1].usage, Usage{.downloaded_bytes = 9});
  EXPECT_EQ(all[2].day, "2027-01-16");
  EXPECT_THAT(second->Find("2027-01-16", "", ""), SizeIs(1));
  EXPECT_THAT(second->Find("", "2027-01-15", "audio"), SizeIs(1));
  EXPECT_THAT(second->Find("2027-01-17", "", ""), IsEmpty());
}

TEST_F(UsageBookTest, CountsByTenant) {
  auto book = Open();
  book->Add("audio", {.jobs = 1, .processor_micros = 1'500'000, .uploaded_bytes = 7});
  book->Add("audio", {.cache_hits = 1, .processor_micros = 500'000, .downloaded_bytes = 9});
  const auto sum = [&](observe::Metric metric) { return metrics_.sums[{metric, "audio"}]; };
  EXPECT_EQ(sum(observe::Metric::kTenantHits), 1);
  EXPECT_EQ(sum(observe::Metric::kTenantProcessorSeconds), 2);
  EXPECT_EQ(sum(observe::Metric::kTenantUploadedBytes), 7);
  EXPECT_EQ(sum(observe::Metric::kTenantDownloadedBytes), 9);
}

TEST_F(UsageBookTest, OldDaysGoAndADamagedFileIsTold) {
  auto book = Open();
  for (size_t i = 0; i < kMaxUsageDays + 3; ++i) {
    book->Add("a", {.jobs = 1});
    now_ += absl::Hours(24);
  }
  ASSERT_TRUE(book->Save().ok());
  EXPECT_THAT(Open()->Find("", "", ""), SizeIs(kMaxUsageDays));
  std::ofstream(path_) << "2027-01-15\ta\t1\n";
  EXPECT_FALSE(UsageBook::Open(
                   path_, [] { return absl::UnixEpoch(); }, &metrics_)
                   .ok());
}

}  // namespace
}  // namespace npuc::executor
