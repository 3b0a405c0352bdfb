#include <memory>

#include "npuc/v1/server_info.grpc.pb.h"
#include "server/rpc/call.h"
#include "server/rpc/services.h"

namespace npuc::rpc {
namespace {

// Nothing here blocks, so nothing goes to the pool: it answers also where that is full.
class ServerInfoService : public v1::ServerInfoService::CallbackService {
 public:
  explicit ServerInfoService(const RpcDependencies* dependencies) : deps_(*dependencies) {}

  grpc::ServerUnaryReactor* GetServerInfo(grpc::CallbackServerContext* context,
                                          const v1::GetServerInfoRequest* request,
                                          v1::GetServerInfoResponse* response) override {
    return Answer(context, api::kGetServerInfo, *request, response);
  }

  grpc::ServerUnaryReactor* GetCaller(grpc::CallbackServerContext* context,
                                      const v1::GetCallerRequest* request,
                                      v1::GetCallerResponse* response) override {
    return Answer(context, api::kGetCaller, *request, response);
  }

  grpc::ServerUnaryReactor* ListOperators(grpc::CallbackServerContext* context,
                                          const v1::ListOperatorsRequest* request,
                                          v1::ListOperatorsResponse* response) override {
    return Answer(context, api::kListOperators, *request, response);
  }

 private:
  template <typename Request, typename Response>
  grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context,
                                   const api::Method<Request, Response>& method,
                                   const Request& request, Response* response) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    const auto caller = CallerOf(*context, deps_, method.name, method.right);
    if (!caller.ok()) Refused(*context, deps_, method.name, caller.status());
    reactor->Finish(EndCall(
        *deps_.log, method.name,
        caller.ok() ? method.RunAndWait(deps_, *caller, request, response) : caller.status()));
    return reactor;
  }

  const RpcDependencies& deps_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeServerInfoService(const RpcDependencies* dependencies) {
  return std::make_unique<ServerInfoService>(dependencies);
}

}  // namespace npuc::rpc
