#include "server/rpc/identity.h"

#include <iterator>
#include <string>

#include "compiler_core/base/status.h"
#include "grpc/grpc_security_constants.h"
#include "grpcpp/security/auth_context.h"
#include "server/auth/client_address.h"

namespace npuc::rpc {
namespace {

constexpr char kAuthorization[] = "authorization";

absl::string_view ToView(const grpc::string_ref& text) { return {text.data(), text.size()}; }

}  // namespace

auth::Credentials CredentialsOf(const grpc::ServerContextBase& context) {
  auth::Credentials credentials;
  const auto& metadata = context.client_metadata();
  const auto [header, end] = metadata.equal_range(kAuthorization);
  if (header != end) {
    credentials.token = auth::TokenOfHeader(ToView(header->second));
    credentials.has_two_tokens = std::next(header) != end;
  }
  credentials.peer = auth::AddressOfGrpcPeer(context.peer());
  const auto peer = context.auth_context();
  if (peer == nullptr || !peer->IsPeerAuthenticated()) return credentials;
  for (const char* property : {GRPC_X509_SAN_PROPERTY_NAME, GRPC_X509_CN_PROPERTY_NAME}) {
    for (const grpc::string_ref& value : peer->FindPropertyValues(property)) {
      credentials.certificate_names.emplace_back(value.data(), value.size());
    }
  }
  return credentials;
}

absl::StatusOr<auth::Caller> CallerOf(const grpc::ServerContextBase& context,
                                      const RpcDependencies& deps, const char* method,
                                      std::optional<auth::Right> right) {
  const auth::Credentials credentials = CredentialsOf(context);
  ASSIGN_OR_RETURN(auth::Caller caller, deps.authenticator->Authenticate(credentials));
  caller.peer = credentials.peer;
  if (right.has_value()) RETURN_IF_ERROR(caller.Require(*right));
  // Two of them are none: which one counts is nobody's guess.
  const auto [trace, end] = context.client_metadata().equal_range("traceparent");
  if (trace != end && std::next(trace) == end) {
    caller.trace = base::ParseTraceparent(ToView(trace->second)).value_or(base::TraceContext{});
  }
  if (deps.connections != nullptr) {
    deps.connections->Note(api::kGrpc, auth::EndpointOfGrpcPeer(context.peer()), caller, method);
  }
  return caller;
}

}  // namespace npuc::rpc
