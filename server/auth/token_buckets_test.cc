#include "server/auth/token_buckets.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace npuc::auth {
namespace {

class TokenBucketsTest : public ::testing::Test {
 protected:
  std::optional<absl::Duration> Take(int64_t count, absl::string_view name = "a") {
    return buckets_.Take(name, count, /*rate_per_second=*/100, /*burst=*/1000);
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  TokenBuckets buckets_{[this] { return now_; }};
};

TEST_F(TokenBucketsTest, ABurstThenTheRate) {
  EXPECT_EQ(Take(600), std::nullopt);
  EXPECT_EQ(Take(400), std::nullopt);
  EXPECT_EQ(Take(1), absl::Seconds(5));  // until half is full
  now_ += absl::Seconds(1);
  EXPECT_EQ(Take(101), absl::Seconds(4));
  EXPECT_EQ(Take(100), std::nullopt);
  EXPECT_EQ(Take(800), absl::Seconds(8));  // more than half: until they are there
  EXPECT_EQ(Take(5000), absl::Seconds(10));
  now_ += absl::Seconds(10);
  EXPECT_EQ(Take(5000), std::nullopt);  // more than a bucket holds is a bucket
}

TEST_F(TokenBucketsTest, WhoWaitsAsToldIsLetIn) {
  for (int i = 0; i < 100; ++i) {
    if (const auto wait = Take(333)) {
      now_ += *wait;
      EXPECT_EQ(Take(333), std::nullopt) << i;
    }
  }
  // 100 takes of 333 less the burst, at 100 a second.
  EXPECT_GE(absl::ToDoubleSeconds(now_ - absl::FromUnixSeconds(1000)), (33300 - 1000) / 100.0);
}

TEST_F(TokenBucketsTest, OneNameDoesNotTakeAnothers) {
  EXPECT_EQ(Take(1000, "a"), std::nullopt);
  EXPECT_EQ(Take(1000, "b"), std::nullopt);
  EXPECT_NE(Take(1, "a"), std::nullopt);
}

TEST_F(TokenBucketsTest, ForgetsFullBuckets) {
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(Take(1000, absl::StrCat(i)), std::nullopt);
  EXPECT_EQ(buckets_.size(), 1000u);
  now_ += absl::Minutes(2);
  EXPECT_EQ(Take(1000, "new"), std::nullopt);
  EXPECT_EQ(buckets_.size(), 1u);
}

}  // namespace
}  // namespace npuc::auth
