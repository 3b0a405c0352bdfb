#ifndef NPUC_SERVER_RPC_CALL_H_
#define NPUC_SERVER_RPC_CALL_H_

#include <functional>
#include <string>
#include <utility>

#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "server/api/audit.h"
#include "server/api/methods.h"
#include "server/auth/client_address.h"
#include "server/base/work_pool.h"
#include "server/log/log.h"
#include "server/rpc/grpc_status.h"
#include "server/rpc/identity.h"
#include "server/rpc/rpc_server.h"

namespace npuc::rpc {

// Logs what is the server's own fault and turns it into what the client gets.
inline grpc::Status EndCall(const log::Logger& log, const char* method,
                            const absl::Status& status) {
  api::LogFault(log, method, status);
  return ToGrpcStatus(status);
}

// Notes that a call was refused for who calls.
inline void Refused(const grpc::CallbackServerContext& context, const RpcDependencies& deps,
                    absl::string_view method, const absl::Status& status) {
  api::AuditRefusal(deps, auth::AddressOfGrpcPeer(context.peer()), method, status);
}

// Runs a unary method on the pool. Request and response live until the
// reactor is finished. Who lacks the right does not get that far.
template <typename Request, typename Response>
grpc::ServerUnaryReactor* RunUnary(grpc::CallbackServerContext* context, base::WorkPool& pool,
                                   const RpcDependencies& deps,
                                   const api::Method<Request, Response>& method,
                                   const Request* request, Response* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  absl::StatusOr<auth::Caller> caller = CallerOf(*context, deps, method.name, method.right);
  if (!caller.ok()) {
    Refused(*context, deps, method.name, caller.status());
    reactor->Finish(ToGrpcStatus(caller.status()));
    return reactor;
  }
  const auto finish = [reactor, &deps, &method](const absl::Status& status) {
    reactor->Finish(EndCall(*deps.log, method.name, status));
  };
  const bool posted =
      pool.TryPost([finish, &deps, &method, request, response, caller = *std::move(caller)] {
        method.Start(deps, caller, *request, response, finish);
      });
  if (!posted) reactor->Finish(ToGrpcStatus(api::ServerBusy()));
  return reactor;
}

// A stream's reactor that only says no.
template <typename Reactor>
class RefusedStream : public Reactor {
 public:
  explicit RefusedStream(const absl::Status& status) { this->Finish(ToGrpcStatus(status)); }
  void OnDone() override { delete this; }
};

// The reactor that `make` gives for the caller of a stream, or one that refuses who lacks the
// right. Either deletes itself.
template <typename Reactor, typename Make>
Reactor* StartStream(const grpc::CallbackServerContext& context, const RpcDependencies& deps,
                     const char* method, auth::Right right, Make make) {
  absl::StatusOr<auth::Caller> caller = CallerOf(context, deps, method, right);
  if (!caller.ok()) Refused(context, deps, method, caller.status());
  if (!caller.ok()) return new RefusedStream<Reactor>(caller.status());
  return make(*std::move(caller));
}

}  // namespace npuc::rpc

#endif  // NPUC_SERVER_RPC_CALL_H_
