#ifndef NPUC_SERVER_API_ADMIN_H_
#define NPUC_SERVER_API_ADMIN_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cache/artifact_cache.h"
#include "cache/blob_store.h"
#include "npuc/v1/admin.pb.h"
#include "server/api/methods.h"
#include "server/auth/issued_tokens.h"
#include "server/auth/temporary_limits.h"
#include "server/auth/tenants.h"
#include "server/executor/operator_switch.h"
#include "server/executor/usage_book.h"
#include "server/jobs/service_error.h"

namespace npuc::api {

// The parts of the daemon that AdminService works with, beside the jobs.
struct AdminControls {
  executor::OperatorSwitch* dispatch = nullptr;
  executor::OperatorSwitch* cordon = nullptr;
  executor::UsageBook* usage = nullptr;
  auth::IssuedTokens* tokens = nullptr;
  auth::TemporaryLimits* limits = nullptr;
  cache::InputStore* inputs = nullptr;
  cache::ResultCache* results = nullptr;
  // The clock of what the two above end by.
  std::function<absl::Time()> now = nullptr;
  struct TenantNow {
    auth::Tenant tenant;
    int64_t queued = 0;
    int64_t running = 0;
    int64_t stored_bytes = 0;
    int64_t open_uploads = 0;
  };
  // By name.
  std::function<std::vector<TenantNow>()> tenants = nullptr;
  // One tenant, whether or not it has jobs.
  std::function<TenantNow(const std::string& name)> tenant = nullptr;
  // Weights or limits are others than before.
  std::function<void()> refresh_policies = nullptr;
  // As BlobStore::DropUploads.
  std::function<cache::BlobStore::Dropped(const std::string& tenant, absl::Duration idle)>
      drop_uploads = nullptr;
};

extern const Method<v1::SetDispatchRequest, v1::SetDispatchResponse> kSetDispatch;
extern const Method<v1::SetCordonRequest, v1::SetCordonResponse> kSetCordon;
extern const Method<v1::CancelJobsRequest, v1::CancelJobsResponse> kCancelJobs;
extern const Method<v1::RequeueJobsRequest, v1::RequeueJobsResponse> kRequeueJobs;
extern const Method<v1::ListTenantsRequest, v1::ListTenantsResponse> kListTenants;
extern const Method<v1::ListConnectionsRequest, v1::ListConnectionsResponse> kListConnections;
extern const Method<v1::SetTenantLimitsRequest, v1::SetTenantLimitsResponse> kSetTenantLimits;
extern const Method<v1::RotateTokenRequest, v1::RotateTokenResponse> kRotateToken;
extern const Method<v1::DropUploadsRequest, v1::DropUploadsResponse> kDropUploads;
extern const Method<v1::EvictContentRequest, v1::EvictContentResponse> kEvictContent;
extern const Method<v1::ListAuditEntriesRequest, v1::ListAuditEntriesResponse> kListAuditEntries;
extern const Method<v1::GetUsageRequest, v1::GetUsageResponse> kGetUsage;
extern const Method<v1::GetQuotaRequest, v1::GetQuotaResponse> kGetQuota;

template <typename Visit>
void ForEachAdminMethod(Visit visit) {
  visit(kSetDispatch);
  visit(kSetCordon);
  visit(kCancelJobs);
  visit(kRequeueJobs);
  visit(kListTenants);
  visit(kListConnections);
  visit(kSetTenantLimits);
  visit(kRotateToken);
  visit(kDropUploads);
  visit(kEvictContent);
  visit(kListAuditEntries);
  visit(kGetUsage);
  visit(kGetQuota);
}

// The reason of an action is not too long.
void CheckReason(absl::string_view reason, jobs::FieldChecker& check);
// A tenant's name as the tenants file may have it.
void CheckTenantName(absl::string_view tenant, jobs::FieldChecker& check);
void ControlToProto(const executor::OperatorSwitch::State& state, v1::DispatchState* out);
void ControlToProto(const ApiDependencies& deps, const executor::OperatorSwitch::State& state,
                    v1::CordonState* out);

// Adds to what the tenant used today, where that is kept.
void CountUsage(const ApiDependencies& deps, absl::string_view tenant, const base::Usage& usage);

}  // namespace npuc::api

#endif  // NPUC_SERVER_API_ADMIN_H_
