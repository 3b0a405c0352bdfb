#ifndef NPUC_SERVER_RPC_GRPC_STATUS_H_
#define NPUC_SERVER_RPC_GRPC_STATUS_H_

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace npuc::rpc {

// The status as it goes to a client: code, message, and a google.rpc.Status with ErrorInfo and what
// else the error has (ErrorDetailsOf). An error without a reason of its own gets one by its code,
// and INTERNAL ones keep their text for the log (RpcServices logs it).
grpc::Status ToGrpcStatus(const absl::Status& status);

}  // namespace npuc::rpc

#endif  // NPUC_SERVER_RPC_GRPC_STATUS_H_
