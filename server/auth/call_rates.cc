#include "server/auth/call_rates.h"

#include <chrono>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "server/jobs/service_error.h"

namespace npuc::auth {
namespace {

absl::Time MachineNow() {
  return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

// Takes one call out of the bucket of `name`.
absl::Status TakeCall(absl::string_view what, absl::string_view name, absl::string_view limit,
                      int64_t rate, TokenBuckets& buckets) {
  const int64_t burst = rate * absl::ToInt64Seconds(kCallBurst);
  std::optional<absl::Duration> wait = buckets.Take(name, 1, rate, burst);
  if (!wait.has_value()) return absl::OkStatus();
  wait = absl::Ceil(*wait, absl::Milliseconds(1));
  return jobs::ServiceError(
      absl::StatusCode::kResourceExhausted,
      absl::StrCat(what, " '", name, "' may make ", rate, " calls a second; come back in ",
                   absl::FormatDuration(*wait)),
      {.reason = "RATE_EXCEEDED",
       .retry_delay = *wait,
       .quota_violations = {{std::string(limit), absl::StrCat(rate, " calls a second")}}});
}

}  // namespace

CallRates::CallRates(int64_t address_rate, const std::function<absl::Time()>& steady_now)
    : address_rate_(address_rate),
      addresses_(steady_now != nullptr ? steady_now : MachineNow),
      tenants_(steady_now != nullptr ? steady_now : MachineNow) {}

absl::Status CallRates::OnCall(absl::string_view address, absl::string_view tenant,
                               std::optional<int64_t> tenant_rate) {
  if (address_rate_ > 0) {
    RETURN_IF_ERROR(TakeCall("address", address, "address_call_rate", address_rate_, addresses_));
  }
  if (!tenant_rate.has_value()) return absl::OkStatus();
  return TakeCall("tenant", tenant, "call_rate", *tenant_rate, tenants_);
}

}  // namespace npuc::auth
