#ifndef NPUC_SERVER_RPC_IDENTITY_H_
#define NPUC_SERVER_RPC_IDENTITY_H_

#include <optional>

#include "absl/status/statusor.h"
#include "grpcpp/server_context.h"
#include "server/auth/authenticator.h"
#include "server/rpc/rpc_server.h"

namespace npuc::rpc {

// What a call brings: its bearer token, and the names in its client certificate where TLS has
// verified one.
auth::Credentials CredentialsOf(const grpc::ServerContextBase& context);

// Who calls; UNAUTHENTICATED, or PERMISSION_DENIED where `right` is given and missing. The first
// thing that every call does, before its request is looked at.
absl::StatusOr<auth::Caller> CallerOf(const grpc::ServerContextBase& context,
                                      const RpcDependencies& deps, const char* method,
                                      std::optional<auth::Right> right);

}  // namespace npuc::rpc

#endif  // NPUC_SERVER_RPC_IDENTITY_H_
