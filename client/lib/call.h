#ifndef NPUC_CLIENT_LIB_CALL_H_
#define NPUC_CLIENT_LIB_CALL_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/lib/client.h"

// Internal to the library: one gRPC call, driven on the caller's thread through a completion queue,
// so that silence and interrupts end it.

namespace npuc::client {

absl::Status ToAbslStatus(const grpc::Status& status);

class Call {
 public:
  // `options` must outlive this.
  explicit Call(const ClientOptions& options);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  grpc::ClientContext* context() { return &context_; }
  grpc::CompletionQueue* queue() { return &queue_; }
  // The tag of the one operation that may be under way.
  void* tag() { return this; }

  // Waits for the operation under way; whether it went well. Where it does not end within `timeout`
  // or an interrupt comes, the call is cancelled, and the operation fails soon after.
  bool Wait(absl::Duration timeout);

  // The call's status: an interrupt or timeout of Wait says more than gRPC's CANCELLED.
  absl::Status Status(const grpc::Status& status) const;

 private:
  // Cancels the call, once, and notes the cause.
  void CancelIf(bool condition, bool& cause);

  const ClientOptions& options_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  bool interrupted_ = false;
  bool timed_out_ = false;
};

// A call with one request and one response. PREPARE: &Stub::PrepareAsyncX.
template <typename Stub, typename Prepare, typename Request, typename Response>
absl::Status CallOnce(const ClientOptions& options, Stub& stub, Prepare prepare,
                      const Request& request, Response& response) {
  Call call(options);
  auto reader = (stub.*prepare)(call.context(), request, call.queue());
  reader->StartCall();
  grpc::Status status;
  reader->Finish(&response, &status, call.tag());
  call.Wait(options.call_timeout);
  return call.Status(status);
}

}  // namespace npuc::client

#endif  // NPUC_CLIENT_LIB_CALL_H_
