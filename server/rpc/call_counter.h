#ifndef NPUC_SERVER_RPC_CALL_COUNTER_H_
#define NPUC_SERVER_RPC_CALL_COUNTER_H_

#include <memory>

#include "grpcpp/support/server_interceptor.h"
#include "server/observe/metrics.h"

namespace npuc::rpc {

// Counts every call of every service where its status goes out: by method and code, and errors by
// the reason that they carry. `metrics` must outlive the server.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> CountCalls(
    observe::Metrics* metrics);

}  // namespace npuc::rpc

#endif  // NPUC_SERVER_RPC_CALL_COUNTER_H_
