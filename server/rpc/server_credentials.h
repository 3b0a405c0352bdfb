#ifndef NPUC_SERVER_RPC_SERVER_CREDENTIALS_H_
#define NPUC_SERVER_RPC_SERVER_CREDENTIALS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "grpcpp/security/server_credentials.h"
#include "server/rpc/rpc_server.h"

namespace npuc::rpc {

// Credentials that read the files again every minute, so that a renewed certificate needs no
// restart. With a client_ca_file, clients may show a certificate, which must then be signed by it.
// Without a certificate file: no encryption. INVALID_ARGUMENT: a file that cannot be read, or that
// holds no PEM of its kind, or a key that is not the certificate's.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const api::TlsFiles& files);

}  // namespace npuc::rpc

#endif  // NPUC_SERVER_RPC_SERVER_CREDENTIALS_H_
