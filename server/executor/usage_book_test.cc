#include "server/executor/usage_book.h"

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compiler_core/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::executor {
namespace {

using base::FileUsageStore;
using base::Usage;
using ::testing::ElementsAre;
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

// A store that may fail, and that has sums of others.
class Store : public base::UsageStore {
 public:
  absl::StatusOr<base::UsageDays> Read() override { return base::UsageDays(); }
  absl::Status Write(const base::UsageDays& /*days*/, const base::UsageDays& changed) override {
    RETURN_IF_ERROR(status);
    written.push_back(changed);
    return absl::OkStatus();
  }
  absl::StatusOr<base::UsageDays> ReadOthers(const base::UsageFilter& filter) override {
    RETURN_IF_ERROR(status);
    EXPECT_EQ(filter.tenant, "audio");
    return others;
  }

  absl::Status status;
  base::UsageDays others;
  std::vector<base::UsageDays> written;
};

class UsageBookTest : public ::testing::Test {
 protected:
  std::unique_ptr<UsageBook> Open(std::unique_ptr<base::UsageStore> store) {
    auto book = UsageBook::Open(
        std::move(store), [this] { return now_; }, &metrics_);
    EXPECT_TRUE(book.ok()) << book.status();
    return *std::move(book);
  }

  Sums metrics_;
  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);  // 2027-01-15
};

TEST_F(UsageBookTest, SumsByDayAndTenantOverRestarts) {
  const std::string path = ::testing::TempDir() + "/usage";
  std::filesystem::remove(path);
  auto first = Open(std::make_unique<FileUsageStore>(path));
  first->Add("audio", {.jobs = 1, .succeeded = 1, .processor_micros = 5});
  first->Add("audio", {.jobs = 1, .failed = 1, .uploaded_bytes = 7});
  first->Add("video", {.downloaded_bytes = 9});
  ASSERT_TRUE(first->Save().ok());
  now_ += absl::Hours(24);
  auto second = Open(std::make_unique<FileUsageStore>(path));
  second->Add("audio", {.jobs = 1, .cache_hits = 1});
  const base::UsageDays all = *second->Find({});
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(
      all.at("2027-01-15").at("audio"),
      (Usage{.jobs = 2, .succeeded = 1, .failed = 1, .processor_micros = 5, .uploaded_bytes = 7}));
  EXPECT_EQ(all.at("2027-01-15").at("video"), Usage{.downloaded_bytes = 9});
  EXPECT_EQ(all.at("2027-01-16").at("audio"), (Usage{.jobs = 1, .cache_hits = 1}));
  EXPECT_THAT(*second->Find({.from_day = "2027-01-16"}), SizeIs(1));
  EXPECT_THAT(*second->Find({.to_day = "2027-01-15", .tenant = "audio"}), SizeIs(1));
  EXPECT_THAT(*second->Find({.from_day = "2027-01-17"}), IsEmpty());
}

TEST_F(UsageBookTest, WritesWhatHasChangedUntilItIsWritten) {
  auto owned = std::make_unique<Store>();
  Store& store = *owned;
  auto book = Open(std::move(owned));
  book->Add("audio", {.jobs = 1});
  book->Add("video", {.jobs = 1});
  store.status = absl::UnavailableError("away");
  EXPECT_TRUE(absl::IsUnavailable(book->Save()));
  EXPECT_TRUE(absl::IsUnavailable(book->Find({.tenant = "audio"}).status()));
  book->Add("audio", {.jobs = 1});
  store.status = absl::OkStatus();
  ASSERT_TRUE(book->Save().ok());
  ASSERT_TRUE(book->Save().ok());
  book->Add("video", {.jobs = 5});
  ASSERT_TRUE(book->Save().ok());
  const std::string day = "2027-01-15";
  EXPECT_THAT(store.written,
              ElementsAre(base::UsageDays{{day, {{"audio", {.jobs = 2}}, {"video", {.jobs = 1}}}}},
                          base::UsageDays{{day, {{"video", {.jobs = 6}}}}}));
  store.others = {{"2027-01-14", {{"audio", {.jobs = 9}}}}, {day, {{"audio", {.jobs = 9}}}}};
  EXPECT_EQ(*book->Find({.tenant = "audio"}),
            (base::UsageDays{{"2027-01-14", {{"audio", {.jobs = 9}}}},
                             {day, {{"audio", {.jobs = 11}}}}}));
}

TEST_F(UsageBookTest, CountsByTenant) {
  auto book = Open(std::make_unique<Store>());
  book->Add("audio", {.jobs = 1, .processor_micros = 1'500'000, .uploaded_bytes = 7});
  book->Add("audio", {.cache_hits = 1, .processor_micros = 500'000, .downloaded_bytes = 9});
  const auto sum = [&](observe::Metric metric) { return metrics_.sums[{metric, "audio"}]; };
  EXPECT_EQ(sum(observe::Metric::kTenantHits), 1);
  EXPECT_EQ(sum(observe::Metric::kTenantProcessorSeconds), 2);
  EXPECT_EQ(sum(observe::Metric::kTenantUploadedBytes), 7);
  EXPECT_EQ(sum(observe::Metric::kTenantDownloadedBytes), 9);
}

TEST_F(UsageBookTest, OldDaysGo) {
  auto book = Open(std::make_unique<Store>());
  for (size_t i = 0; i < base::kMaxUsageDays + 3; ++i) {
    book->Add("audio", {.jobs = 1});
    now_ += absl::Hours(24);
  }
  ASSERT_TRUE(book->Save().ok());
  EXPECT_THAT(*book->Find({.tenant = "audio"}), SizeIs(base::kMaxUsageDays));
}

}  // namespace
}  // namespace npuc::executor
