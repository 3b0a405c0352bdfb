#ifndef NPUC_SERVER_RPC_SERVICES_H_
#define NPUC_SERVER_RPC_SERVICES_H_

#include <memory>

#include "grpcpp/impl/service_type.h"
#include "server/base/work_pool.h"
#include "server/rpc/rpc_server.h"
#include "server/rpc/watch_stream.h"

namespace npuc::rpc {

// The gRPC services. Each converts, calls and converts back; blocking calls run on the pool. All
// that is passed must outlive the service.
std::unique_ptr<grpc::Service> MakeCompileService(const RpcDependencies* dependencies,
                                                  base::WorkPool* pool, const WatchContext& watch);
std::unique_ptr<grpc::Service> MakeBlobService(const RpcDependencies* dependencies,
                                               base::WorkPool* pool);
std::unique_ptr<grpc::Service> MakeAdminService(const RpcDependencies* dependencies,
                                                base::WorkPool* pool);
std::unique_ptr<grpc::Service> MakeServerInfoService(const RpcDependencies* dependencies);

}  // namespace npuc::rpc

#endif  // NPUC_SERVER_RPC_SERVICES_H_
