#ifndef NPUC_SERVER_TENANT_POLICIES_H_
#define NPUC_SERVER_TENANT_POLICIES_H_

#include <functional>

#include "absl/strings/string_view.h"
#include "server/daemon_context.h"
#include "server/scheduler/fair_queue.h"

namespace npuc::daemon {

// The shares and bounds of tenants, as the tenants file has them. `context.rules` must outlive it.
inline std::function<scheduler::TenantPolicy(absl::string_view tenant)> TenantPolicies(
    const DaemonContext& context) {
  return [rules = context.rules](absl::string_view tenant) {
    const auth::TenantQuota quota = rules->QuotaOf(tenant);
    return scheduler::TenantPolicy{.weight = static_cast<double>(rules->WeightOf(tenant)),
                                   .max_queued = quota.queued_jobs.value_or(0),
                                   .max_running = quota.running_jobs.value_or(0)};
  };
}

// One place in so many of --max-queued is kept for tenants with nothing queued.
inline constexpr int kKeptForIdle = 10;
inline int PlacesKeptForIdle(const DaemonContext& context) {
  return context.flags.max_queued / kKeptForIdle;
}

}  // namespace npuc::daemon

#endif  // NPUC_SERVER_TENANT_POLICIES_H_
