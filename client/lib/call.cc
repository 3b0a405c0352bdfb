#include "client/lib/call.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "client/lib/service_error.h"

namespace npuc::client {
namespace {

// "00-TRACE_ID-SPAN_ID-FLAGS": other bytes would break the call, other meanings the server ignores.
bool IsTraceparent(absl::string_view text) {
  constexpr size_t kBytes = 55;
  return text.size() == kBytes && std::all_of(text.begin(), text.end(), [](char c) {
           return c == '-' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace

absl::Status ToAbslStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  return WithServiceError(static_cast<absl::StatusCode>(status.error_code()),
                          status.error_message(), status.error_details());
}

Call::Call(const ClientOptions& options) : options_(options) {
  if (!options.token.empty()) {
    context_.AddMetadata("authorization", absl::StrCat("Bearer ", options.token));
  }
  if (IsTraceparent(options.traceparent)) {
    context_.AddMetadata("traceparent", options.traceparent);
  }
}

Call::~Call() {
  context_.TryCancel();
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

void Call::CancelIf(bool condition, bool& cause) {
  if (!condition || interrupted_ || timed_out_) return;
  cause = true;
  context_.TryCancel();
}

bool Call::Wait(absl::Duration timeout) {
  constexpr absl::Duration kSlice = absl::Milliseconds(100);
  const absl::Time deadline = absl::Now() + timeout;
  // Asked here, too: on a busy stream there is always an event at once.
  CancelIf(options_.retry.is_interrupted && options_.retry.is_interrupted(), interrupted_);
  while (true) {
    const bool cancelled = interrupted_ || timed_out_;
    const absl::Time until =
        cancelled ? absl::InfiniteFuture() : std::min(deadline, absl::Now() + kSlice);
    void* tag = nullptr;
    bool ok = false;
    const auto next = cancelled ? (queue_.Next(&tag, &ok) ? grpc::CompletionQueue::GOT_EVENT
                                                          : grpc::CompletionQueue::SHUTDOWN)
                                : queue_.AsyncNext(&tag, &ok, absl::ToChronoTime(until));
    if (next == grpc::CompletionQueue::GOT_EVENT) return ok;
    if (next == grpc::CompletionQueue::SHUTDOWN) return false;
    CancelIf(options_.retry.is_interrupted && options_.retry.is_interrupted(), interrupted_);
    CancelIf(absl::Now() >= deadline, timed_out_);
  }
}

absl::Status Call::Status(const grpc::Status& status) const {
  if (status.ok()) return absl::OkStatus();
  if (interrupted_) return absl::CancelledError("interrupted");
  if (timed_out_) return absl::DeadlineExceededError("the server did not answer in time");
  return ToAbslStatus(status);
}

}  // namespace npuc::client
