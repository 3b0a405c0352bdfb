#include "server/auth/call_rates.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/jobs/service_error.h"

namespace npuc::auth {
namespace {

using ::testing::HasSubstr;

class CallRatesTest : public ::testing::Test {
 protected:
  // Calls that are let in before one is refused; at most 1000.
  static int Admitted(CallRates& rates, absl::string_view address, absl::string_view tenant,
                      std::optional<int64_t> rate) {
    int count = 0;
    while (count < 1000 && rates.OnCall(address, tenant, rate).ok()) ++count;
    return count;
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  const std::function<absl::Time()> clock_ = [this] { return now_; };
};

TEST_F(CallRatesTest, ATenantsCallsAreBoundedAndOthersAreNot) {
  CallRates rates(/*address_rate=*/0, clock_);
  EXPECT_EQ(Admitted(rates, "10.0.0.1", "audio", 5), 50);
  const absl::Status status = rates.OnCall("10.0.0.2", "audio", 5);
  const jobs::ErrorDetails details = *jobs::ErrorDetailsOf(status);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(details.reason, "RATE_EXCEEDED");
  EXPECT_EQ(details.retry_delay, absl::Seconds(5));  // until half of the burst is there
  EXPECT_THAT(std::string(status.message()), HasSubstr("tenant 'audio' may make 5 calls a second"));
  EXPECT_EQ(Admitted(rates, "10.0.0.1", "video", std::nullopt), 1000);
  now_ += *details.retry_delay;
  EXPECT_EQ(Admitted(rates, "10.0.0.1", "audio", 5), 25);
}

TEST_F(CallRatesTest, AnAddressIsBoundedWhoeverCallsFromIt) {
  CallRates rates(/*address_rate=*/2, clock_);
  EXPECT_EQ(Admitted(rates, "10.0.0.1", "audio", std::nullopt), 20);
  EXPECT_THAT(std::string(rates.OnCall("10.0.0.1", "video", std::nullopt).message()),
              HasSubstr("address '10.0.0.1' may make 2 calls a second"));
  EXPECT_EQ(Admitted(rates, "10.0.0.2", "audio", std::nullopt), 20);
}

TEST_F(CallRatesTest, AMachineWithManyAddressesIsOne) {
  CallRates rates(/*address_rate=*/2, clock_);
  EXPECT_EQ(Admitted(rates, "2001:db8::1", "audio", std::nullopt), 20);
  EXPECT_EQ(Admitted(rates, "2001:db8::2", "audio", std::nullopt), 0);
  EXPECT_EQ(Admitted(rates, "::ffff:10.0.0.1", "audio", std::nullopt), 20);
  EXPECT_EQ(Admitted(rates, "10.0.0.1", "audio", std::nullopt), 0);
}

}  // namespace
}  // namespace npuc::auth
