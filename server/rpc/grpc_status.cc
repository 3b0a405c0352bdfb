#include "server/rpc/grpc_status.h"

#include "server/api/status_details.h"

namespace npuc {

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const rpc::Status out = ToStatusProto(status);
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), out.message(),
                      out.SerializeAsString());
}

}  // namespace npuc
