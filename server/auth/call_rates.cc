#include "server/auth/call_rates.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "server/auth/client_address.h"
#include "server/jobs/service_error.h"

namespace npuc::auth {
namespace {

// Takes one call out of the bucket of `name`.
absl::Status TakeCall(absl::string_view what, absl::string_view name, absl::string_view limit,
                      int64_t rate, TokenBuckets& buckets) {
  const int64_t burst = rate * absl::ToInt64Seconds(kCallBurst);
  const std::optional<absl::Duration> wait = buckets.Take(name, 1, rate, burst);
  if (!wait.has_value()) return absl::OkStatus();
  const std::string allowed = absl::StrCat(rate, " calls a second");
  return RateExceeded(absl::StrCat(what, " '", name, "' may make ", allowed, "; come back in "),
                      *wait, limit, allowed);
}

}  // namespace

absl::Status RateExceeded(absl::string_view begin, absl::Duration wait, absl::string_view limit,
                          absl::string_view allowed) {
  wait = absl::Ceil(wait, absl::Milliseconds(1));
  return jobs::ServiceError(absl::StatusCode::kResourceExhausted,
                            absl::StrCat(begin, absl::FormatDuration(wait)),
                            {.reason = "RATE_EXCEEDED",
                             .retry_delay = wait,
                             .quota_violations = {{std::string(limit), std::string(allowed)}}});
}

CallRates::CallRates(int64_t address_rate, const std::function<absl::Time()>& steady_now)
    : address_rate_(address_rate), addresses_(steady_now), tenants_(steady_now) {}

absl::Status CallRates::OnCall(absl::string_view address, absl::string_view tenant,
                               std::optional<int64_t> tenant_rate) {
  if (address_rate_ > 0) {
    RETURN_IF_ERROR(
        TakeCall("address", AddressGroup(address), "address_call_rate", address_rate_, addresses_));
  }
  if (!tenant_rate.has_value()) return absl::OkStatus();
  return TakeCall("tenant", tenant, "call_rate", *tenant_rate, tenants_);
}

}  // namespace npuc::auth
