#ifndef NPUC_SERVER_AUTH_CALL_RATES_H_
#define NPUC_SERVER_AUTH_CALL_RATES_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/auth/token_buckets.h"
#include "server/base/steady_clock.h"

namespace npuc::auth {

// Calls a second that one client address and one tenant may make. Each may save up the calls of
// kCallBurst. Thread-safe.
class CallRates {
 public:
  // address_rate: of each address; 0: no bound. `steady_now` never falls and does not jump.
  explicit CallRates(int64_t address_rate,
                     const std::function<absl::Time()>& steady_now = base::SteadyNow);

  // Counts a call. RESOURCE_EXHAUSTED (RATE_EXCEEDED, with when to come back) where one of the two
  // makes too many. tenant_rate: of the tenant's quota.
  absl::Status OnCall(absl::string_view address, absl::string_view tenant,
                      std::optional<int64_t> tenant_rate);

 private:
  const int64_t address_rate_;
  TokenBuckets addresses_;
  TokenBuckets tenants_;
};

// RESOURCE_EXHAUSTED for a caller that must come back after `wait`, which ends the message that
// `begin` begins. limit and allowed: the quota's name, and what it lets in.
absl::Status RateExceeded(absl::string_view begin, absl::Duration wait, absl::string_view limit,
                          absl::string_view allowed);

inline constexpr absl::Duration kCallBurst = absl::Seconds(10);

}  // namespace npuc::auth

#endif  // NPUC_SERVER_AUTH_CALL_RATES_H_
