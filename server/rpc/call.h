#ifndef NPUC_SERVER_RPC_CALL_H_
#define NPUC_SERVER_RPC_CALL_H_

#include <string>
#include <utility>

#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "server/jobs/service_error.h"
#include "server/log/log.h"
#include "server/rpc/grpc_status.h"
#include "server/rpc/identity.h"
#include "server/rpc/rpc_server.h"
#include "server/rpc/work_pool.h"

namespace npuc {

inline absl::Status ServerBusy() {
  return ServiceError(absl::StatusCode::kResourceExhausted, "too many calls wait; try again later",
                      {.reason = "SERVER_BUSY", .retry_delay = absl::Seconds(1)});
}

// Logs what is the server's own fault and turns it into what the client gets.
inline grpc::Status EndCall(const Logger& log, const char* method, const absl::Status& status) {
  if (absl::IsInternal(status) || absl::IsDataLoss(status) || absl::IsUnknown(status)) {
    log.Error("call failed", {{"method", method}, {"error", status.message()}});
  }
  return ToGrpcStatus(status);
}

// Runs a unary handler, a function of the caller that gives an absl::Status, on the pool. Request
// and response live until the reactor is finished. Who lacks the right does not get that far.
template <typename Handler>
grpc::ServerUnaryReactor* RunUnary(grpc::CallbackServerContext* context, WorkPool& pool,
                                   const RpcDependencies& deps, const char* method, Right right,
                                   Handler handler) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  absl::StatusOr<Caller> caller = CallerOf(*context, *deps.authenticator, right);
  if (!caller.ok()) {
    reactor->Finish(ToGrpcStatus(caller.status()));
    return reactor;
  }
  const Logger& log = *deps.log;
  const bool posted = pool.TryPost(
      [reactor, &log, method, caller = *std::move(caller), handler = std::move(handler)]() {
        reactor->Finish(EndCall(log, method, handler(caller)));
      });
  if (!posted) reactor->Finish(ToGrpcStatus(ServerBusy()));
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
                     Right right, Make make) {
  absl::StatusOr<Caller> caller = CallerOf(context, *deps.authenticator, right);
  if (!caller.ok()) return new RefusedStream<Reactor>(caller.status());
  return make(*std::move(caller));
}

}  // namespace npuc

#endif  // NPUC_SERVER_RPC_CALL_H_
