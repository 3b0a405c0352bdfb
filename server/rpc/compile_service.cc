#include <memory>

#include "npuc/v1/compile.grpc.pb.h"
#include "server/rpc/call.h"
#include "server/rpc/services.h"

namespace npuc::rpc {
namespace {

class CompileService : public v1::CompileService::CallbackService {
 public:
  CompileService(const RpcDependencies* dependencies, base::WorkPool* pool,
                 const WatchContext& watch)
      : deps_(*dependencies), pool_(pool), watch_(watch) {}

  grpc::ServerUnaryReactor* CreateCompileJob(grpc::CallbackServerContext* context,
                                             const v1::CreateCompileJobRequest* request,
                                             v1::CreateCompileJobResponse* response) override {
    return RunUnary(context, *pool_, deps_, api::kCreateCompileJob, request, response);
  }

  grpc::ServerUnaryReactor* GetCompileJob(grpc::CallbackServerContext* context,
                                          const v1::GetCompileJobRequest* request,
                                          v1::GetCompileJobResponse* response) override {
    return RunUnary(context, *pool_, deps_, api::kGetCompileJob, request, response);
  }

  grpc::ServerUnaryReactor* ListCompileJobs(grpc::CallbackServerContext* context,
                                            const v1::ListCompileJobsRequest* request,
                                            v1::ListCompileJobsResponse* response) override {
    return RunUnary(context, *pool_, deps_, api::kListCompileJobs, request, response);
  }

  grpc::ServerWriteReactor<v1::WatchCompileJobResponse>* WatchCompileJob(
      grpc::CallbackServerContext* context, const v1::WatchCompileJobRequest* request) override {
    return StartWatch(watch_, *context, *request);
  }

  grpc::ServerUnaryReactor* CancelCompileJob(grpc::CallbackServerContext* context,
                                             const v1::CancelCompileJobRequest* request,
                                             v1::CancelCompileJobResponse* response) override {
    return RunUnary(context, *pool_, deps_, api::kCancelCompileJob, request, response);
  }

  grpc::ServerUnaryReactor* InspectModel(grpc::CallbackServerContext* context,
                                         const v1::InspectModelRequest* request,
                                         v1::InspectModelResponse* response) override {
    return RunUnary(context, *pool_, deps_, api::kInspectModel, request, response);
  }

 private:
  const RpcDependencies& deps_;
  base::WorkPool* const pool_;
  const WatchContext watch_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeCompileService(const RpcDependencies* dependencies,
                                                  base::WorkPool* pool, const WatchContext& watch) {
  return std::make_unique<CompileService>(dependencies, pool, watch);
}

}  // namespace npuc::rpc
