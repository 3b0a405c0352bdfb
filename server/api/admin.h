#ifndef NPUC_SERVER_API_ADMIN_H_
#define NPUC_SERVER_API_ADMIN_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "npuc/v1/admin.pb.h"
#include "server/api/methods.h"
#include "server/auth/tenants.h"
#include "server/executor/dispatch_switch.h"
#include "server/executor/usage_book.h"

namespace npuc::api {

// The parts of the daemon that AdminService works with, beside the jobs.
struct AdminControls {
  executor::DispatchSwitch* dispatch = nullptr;
  executor::UsageBook* usage = nullptr;
  struct TenantNow {
    auth::Tenant tenant;
    int64_t queued = 0;
    int64_t running = 0;
  };
  // By name.
  std::function<std::vector<TenantNow>()> tenants = nullptr;
};

extern const Method<v1::SetDispatchRequest, v1::SetDispatchResponse> kSetDispatch;
extern const Method<v1::CancelJobsRequest, v1::CancelJobsResponse> kCancelJobs;
extern const Method<v1::RequeueJobsRequest, v1::RequeueJobsResponse> kRequeueJobs;
extern const Method<v1::ListTenantsRequest, v1::ListTenantsResponse> kListTenants;
extern const Method<v1::ListConnectionsRequest, v1::ListConnectionsResponse> kListConnections;
extern const Method<v1::GetUsageRequest, v1::GetUsageResponse> kGetUsage;

template <typename Visit>
void ForEachAdminMethod(Visit visit) {
  visit(kSetDispatch);
  visit(kCancelJobs);
  visit(kRequeueJobs);
  visit(kListTenants);
  visit(kListConnections);
  visit(kGetUsage);
}

// Adds to what the tenant used today, where that is kept.
void CountUsage(const ApiDependencies& deps, absl::string_view tenant,
                const executor::Usage& usage);

}  // namespace npuc::api

#endif  // NPUC_SERVER_API_ADMIN_H_
