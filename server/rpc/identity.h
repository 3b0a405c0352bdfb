#ifndef NPUC_SERVER_RPC_IDENTITY_H_
#define NPUC_SERVER_RPC_IDENTITY_H_

#include <optional>

#include "absl/status/statusor.h"
#include "grpcpp/server_context.h"
#include "server/auth/authenticator.h"

namespace npuc {

// What a call brings: its bearer token, and the names in its client certificate where TLS has
// verified one.
Credentials CredentialsOf(const grpc::ServerContextBase& context);

// Who calls; UNAUTHENTICATED, or PERMISSION_DENIED where `right` is given and missing. The first
// thing that every call does, before its request is looked at.
absl::StatusOr<Caller> CallerOf(const grpc::ServerContextBase& context,
                                const Authenticator& authenticator, std::optional<Right> right);

}  // namespace npuc

#endif  // NPUC_SERVER_RPC_IDENTITY_H_
