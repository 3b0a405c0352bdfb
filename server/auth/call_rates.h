#ifndef NPUC_SERVER_AUTH_CALL_RATES_H_
#define NPUC_SERVER_AUTH_CALL_RATES_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/auth/token_buckets.h"

namespace npuc::auth {

// Calls a second that one client address and one tenant may make. Each may save up the calls of
// kCallBurst. Thread-safe.
class CallRates {
 public:
  // address_rate: of each address; 0: no bound. `steady_now` never falls and does not jump; by
  // default the machine's steady clock.
  explicit CallRates(int64_t address_rate, const std::function<absl::Time()>& steady_now = nullptr);

  // Counts a call. RESOURCE_EXHAUSTED (RATE_EXCEEDED, with when to come back) where one of the two
  // makes too many. tenant_rate: of the tenant's quota.
  absl::Status OnCall(absl::string_view address, absl::string_view tenant,
                      std::optional<int64_t> tenant_rate);

 private:
  const int64_t address_rate_;
  TokenBuckets addresses_;
  TokenBuckets tenants_;
};

inline constexpr absl::Duration kCallBurst = absl::Seconds(10);

}  // namespace npuc::auth

#endif  // NPUC_SERVER_AUTH_CALL_RATES_H_
