#include <memory>

#include "npuc/v1/admin.grpc.pb.h"
#include "server/api/admin.h"
#include "server/rpc/call.h"
#include "server/rpc/services.h"

namespace npuc::rpc {
namespace {

class AdminService : public v1::AdminService::CallbackService {
 public:
  AdminService(const RpcDependencies* dependencies, base::WorkPool* pool)
      : deps_(*dependencies), pool_(pool) {}

  grpc::ServerUnaryReactor* SetDispatch(grpc::CallbackServerContext* context,
                                        const v1::SetDispatchRequest* request,
                                        v1::SetDispatchResponse* response) override {
    return RunUnary(context, *pool_, deps_, api::kSetDispatch, request, response);
  }

  grpc::ServerUnaryReactor* CancelJobs(grpc::CallbackServerContext* context,
                                       const v1::CancelJobsRequest* request,
                                       v1::CancelJobsResponse* response) override {
    return RunUnary(context, *pool_, deps_, api::kCancelJobs, request, response);
  }

  grpc::ServerUnaryReactor* RequeueJobs(grpc::CallbackServerContext* context,
                                        const v1::RequeueJobsRequest* request,
                                        v1::RequeueJobsResponse* response) override {
    return RunUnary(context, *pool_, deps_, api::kRequeueJobs, request, response);
  }

  grpc::ServerUnaryReactor* ListTenants(grpc::CallbackServerContext* context,
                                        const v1::ListTenantsRequest* request,
                                        v1::ListTenantsResponse* response) override {
    return RunUnary(context, *pool_, deps_, api::kListTenants, request, response);
  }

  grpc::ServerUnaryReactor* ListConnections(grpc::CallbackServerContext* context,
                                            const v1::ListConnectionsRequest* request,
                                            v1::ListConnectionsResponse* response) override {
    return RunUnary(context, *pool_, deps_, api::kListConnections, request, response);
  }

  grpc::ServerUnaryReactor* ListAuditEntries(grpc::CallbackServerContext* context,
                                             const v1::ListAuditEntriesRequest* request,
                                             v1::ListAuditEntriesResponse* response) override {
    return RunUnary(context, *pool_, deps_, api::kListAuditEntries, request, response);
  }

  grpc::ServerUnaryReactor* GetUsage(grpc::CallbackServerContext* context,
                                     const v1::GetUsageRequest* request,
                                     v1::GetUsageResponse* response) override {
    return RunUnary(context, *pool_, deps_, api::kGetUsage, request, response);
  }

  grpc::ServerUnaryReactor* SetCordon(grpc::CallbackServerContext* context,
                                      const v1::SetCordonRequest* request,
                                      v1::SetCordonResponse* response) override {
    return RunUnary(context, *pool_, deps_, api::kSetCordon, request, response);
  }

  grpc::ServerUnaryReactor* SetTenantLimits(grpc::CallbackServerContext* context,
                                            const v1::SetTenantLimitsRequest* request,
                                            v1::SetTenantLimitsResponse* response) override {
    return RunUnary(context, *pool_, deps_, api::kSetTenantLimits, request, response);
  }

  grpc::ServerUnaryReactor* RotateToken(grpc::CallbackServerContext* context,
                                        const v1::RotateTokenRequest* request,
                                        v1::RotateTokenResponse* response) override {
    return RunUnary(context, *pool_, deps_, api::kRotateToken, request, response);
  }

  grpc::ServerUnaryReactor* DropUploads(grpc::CallbackServerContext* context,
                                        const v1::DropUploadsRequest* request,
                                        v1::DropUploadsResponse* response) override {
    return RunUnary(context, *pool_, deps_, api::kDropUploads, request, response);
  }

  grpc::ServerUnaryReactor* EvictContent(grpc::CallbackServerContext* context,
                                         const v1::EvictContentRequest* request,
                                         v1::EvictContentResponse* response) override {
    return RunUnary(context, *pool_, deps_, api::kEvictContent, request, response);
  }

  grpc::ServerUnaryReactor* GetQuota(grpc::CallbackServerContext* context,
                                     const v1::GetQuotaRequest* request,
                                     v1::GetQuotaResponse* response) override {
    return RunUnary(context, *pool_, deps_, api::kGetQuota, request, response);
  }

 private:
  const RpcDependencies& deps_;
  base::WorkPool* const pool_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeAdminService(const RpcDependencies* dependencies,
                                                base::WorkPool* pool) {
  return std::make_unique<AdminService>(dependencies, pool);
}

}  // namespace npuc::rpc
