#include "server/auth/temporary_limits.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/kept_text_test_util.h"

namespace npuc::auth {
namespace {

using ::testing::HasSubstr;

class TemporaryLimitsTest : public ::testing::Test {
 protected:
  std::unique_ptr<TemporaryLimits> Open() {
    auto limits = std::make_unique<TemporaryLimits>([this] { return now_; });
    EXPECT_TRUE(limits->Attach(&text_).ok());
    return limits;
  }
  TemporaryLimits::Entry ForAnHour(std::optional<int32_t> weight, TenantQuota quota) {
    return {.weight = weight,
            .quota = quota,
            .end = now_ + absl::Hours(1),
            .by = "ops",
            .reason = "release\tday"};
  }
  static Tenant Audio() { return {.name = "audio", .weight = 2, .quota = {.running_jobs = 4}}; }

  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
  base::MemoryText text_;
};

TEST_F(TemporaryLimitsTest, StandInPlaceOfTheFileOverARestartAndEnd) {
  ASSERT_TRUE(Open()->Set("audio", ForAnHour(7, {.queued_jobs = 5, .call_rate = 9})).ok());
  const auto again = Open();  // as after a restart
  const Tenant audio = again->Apply(Audio());
  EXPECT_EQ(audio.weight, 7);
  EXPECT_EQ(audio.quota.queued_jobs, 5);
  EXPECT_EQ(audio.quota.call_rate, 9);
  EXPECT_EQ(audio.quota.running_jobs, 4);  // the file's
  EXPECT_EQ(again->Apply({.name = "other"}).weight, 1);
  EXPECT_EQ(again->Find("audio")->by, "ops");
  EXPECT_EQ(again->Find("audio")->reason, "release\\x09day");
  EXPECT_FALSE(*again->Refresh());
  now_ += absl::Hours(1);
  EXPECT_EQ(again->Apply(Audio()).weight, 2);  // at once
  EXPECT_NE(text_.text, "");
  EXPECT_TRUE(*again->Refresh());
  EXPECT_FALSE(*again->Refresh());
  EXPECT_EQ(text_.text, "");
}

TEST_F(TemporaryLimitsTest, AnEntryThatSetsNothingGoesBackToTheFile) {
  const auto limits = Open();
  ASSERT_TRUE(limits->Set("audio", ForAnHour(7, {})).ok());
  ASSERT_TRUE(limits->Set("vision", ForAnHour(std::nullopt, {.upload_rate = 1 << 20})).ok());
  ASSERT_TRUE(limits->Set("audio", ForAnHour(std::nullopt, {})).ok());
  EXPECT_FALSE(limits->Find("audio").has_value());
  EXPECT_TRUE(limits->Find("vision").has_value());
}

TEST_F(TemporaryLimitsTest, NodesHaveTheSame) {
  const auto here = Open();
  const auto there = Open();
  ASSERT_TRUE(there->Set("audio", ForAnHour(7, {})).ok());
  // It sets another tenant's limits without a look; the other entry stays.
  ASSERT_TRUE(here->Set("vision", ForAnHour(3, {})).ok());
  EXPECT_EQ(here->Find("audio")->weight, 7);
  EXPECT_TRUE(*there->Refresh());
  EXPECT_EQ(there->Find("vision")->weight, 3);
}

TEST_F(TemporaryLimitsTest, SoManyTenantsHaveSome) {
  const auto limits = Open();
  for (size_t i = 0; i < TemporaryLimits::kMaxEntries; ++i) {
    ASSERT_TRUE(limits->Set("t" + std::to_string(i), ForAnHour(2, {})).ok());
  }
  EXPECT_TRUE(absl::IsResourceExhausted(limits->Set("more", ForAnHour(2, {}))));
  EXPECT_TRUE(limits->Set("t7", ForAnHour(3, {})).ok());  // in place of its own
}

TEST_F(TemporaryLimitsTest, WhatCannotBeKeptOrReadIsToldAndChangesNothing) {
  const auto limits = Open();
  ASSERT_TRUE(limits->Set("audio", ForAnHour(7, {})).ok());
  text_.error = absl::InternalError("no disk");
  EXPECT_FALSE(limits->Set("audio", ForAnHour(9, {})).ok());
  EXPECT_FALSE(limits->Refresh().ok());
  EXPECT_EQ(limits->Find("audio")->weight, 7);
  text_.error = absl::OkStatus();
  const std::string good = text_.text;
  for (const std::string& bad : {std::string("nonsense\n"), good + "x\ty\n",
                                 "audio\t1\tops\t\t0\t-\t-\t-\t-\t-\t-\t-\n" + good,
                                 "audio\tsoon\tops\t\t-\t-\t-\t-\t-\t-\t-\t-\n" + good}) {
    text_.text = bad;
    TemporaryLimits damaged([this] { return now_; });
    EXPECT_THAT(std::string(damaged.Attach(&text_).message()), HasSubstr("damaged")) << bad;
  }
}

}  // namespace
}  // namespace npuc::auth
