#include "server/auth/attempt_brake.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace npuc::auth {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'000'000);

TEST(AttemptBrakeTest, ManyAtOnceAreToldToWaitAndOthersAreNot) {
  AttemptBrake brake;
  for (int i = 0; i < AttemptBrake::kBurst; ++i) {
    EXPECT_FALSE(brake.OnWrongToken("10.0.0.1", kStart).wait.has_value()) << i;
  }
  EXPECT_EQ(brake.OnWrongToken("10.0.0.1", kStart).wait, AttemptBrake::kPeriod);
  EXPECT_FALSE(brake.OnWrongToken("10.0.0.2", kStart).wait.has_value());
  const absl::Time later = kStart + AttemptBrake::kPeriod;
  EXPECT_FALSE(brake.OnWrongToken("10.0.0.1", later).wait.has_value());
  EXPECT_TRUE(brake.OnWrongToken("10.0.0.1", later).wait.has_value());
}

TEST(AttemptBrakeTest, ALineAtOnceThenRarelyWithTheirNumber) {
  AttemptBrake brake;
  EXPECT_EQ(brake.OnWrongToken("10.0.0.1", kStart).tell, 1u);
  for (int i = 0; i < 2460; ++i) {
    EXPECT_FALSE(brake.OnWrongToken("10.0.0.1", kStart).tell.has_value());
  }
  EXPECT_EQ(brake.OnWrongToken("10.0.0.1", kStart + observe::Reminder::kPeriod).tell, 2461u);
}

TEST(AttemptBrakeTest, AddressesAreBoundedAndTheNewestAreKept) {
  AttemptBrake brake;
  for (int i = 0; i < 3 * static_cast<int>(AttemptBrake::kMaxAddresses); ++i) {
    const std::string address = absl::StrCat("10.", i / 65536, ".", i / 256 % 256, ".", i % 256);
    EXPECT_TRUE(brake.OnWrongToken(address, kStart + absl::Milliseconds(i)).tell.has_value());
    EXPECT_FALSE(brake.OnWrongToken(address, kStart + absl::Milliseconds(i)).tell.has_value());
  }
}

}  // namespace
}  // namespace npuc::auth
