#include <memory>
#include <optional>

#include "compiler_core/base/status.h"
#include "npuc/v1/server_info.grpc.pb.h"
#include "server/catalog/catalog.h"
#include "server/rpc/call.h"
#include "server/rpc/services.h"

namespace npuc {
namespace {

// Nothing here blocks, so nothing goes to the pool: it answers also where that is full.
class ServerInfoService : public v1::ServerInfoService::CallbackService {
 public:
  explicit ServerInfoService(const RpcDependencies* dependencies) : deps_(*dependencies) {}

  grpc::ServerUnaryReactor* GetServerInfo(grpc::CallbackServerContext* context,
                                          const v1::GetServerInfoRequest* request,
                                          v1::GetServerInfoResponse* response) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    const auto caller = CallerOf(*context, *deps_.authenticator, std::nullopt);
    if (!caller.ok()) {
      reactor->Finish(ToGrpcStatus(caller.status()));
      return reactor;
    }
    response->set_version(deps_.facts.version);
    response->set_compiler_build_id(deps_.facts.compiler_build_id);
    for (std::string& core : ListCoreNames()) response->add_cores(std::move(core));
    response->set_workers(deps_.facts.workers);
    response->set_max_blob_bytes(deps_.facts.max_blob_bytes);
    response->set_max_queued_jobs(deps_.facts.max_queued_jobs);
    response->mutable_default_timeout()->set_seconds(
        absl::ToInt64Seconds(deps_.facts.default_timeout));
    const JobService::Counts counts = deps_.jobs->GetCounts();
    response->set_queued_jobs(counts.queued);
    response->set_running_jobs(counts.running);
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  grpc::ServerUnaryReactor* ListOperators(grpc::CallbackServerContext* context,
                                          const v1::ListOperatorsRequest* request,
                                          v1::ListOperatorsResponse* response) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    const auto caller = CallerOf(*context, *deps_.authenticator, std::nullopt);
    reactor->Finish(EndCall(*deps_.log, "ListOperators",
                            caller.ok() ? List(*request, response) : caller.status()));
    return reactor;
  }

 private:
  static absl::Status List(const v1::ListOperatorsRequest& request,
                           v1::ListOperatorsResponse* response) {
    ASSIGN_OR_RETURN(std::vector<OperatorEntry> entries,
                     npuc::ListOperators(request.core(), request.framework()));
    for (OperatorEntry& entry : entries) {
      v1::Operator* out = response->add_operators();
      out->set_core(std::move(entry.core));
      out->set_framework(std::move(entry.framework));
      out->set_op(std::move(entry.op));
      for (std::string& text : entry.restrictions) out->add_restrictions(std::move(text));
    }
    return absl::OkStatus();
  }

  const RpcDependencies& deps_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeServerInfoService(const RpcDependencies* dependencies) {
  return std::make_unique<ServerInfoService>(dependencies);
}

}  // namespace npuc
