#include "client/lib/retry.h"

#include <algorithm>
#include <cmath>

#include "client/lib/service_error.h"

namespace npuc::client {

RetryClass Classify(const absl::Status& failure) {
  const ServiceError error = ServiceErrorOf(failure);
  switch (failure.code()) {
    case absl::StatusCode::kUnavailable:
      return RetryClass::kUnreachable;
    case absl::StatusCode::kResourceExhausted:
      return error.retry_delay.has_value() ? RetryClass::kLater : RetryClass::kNever;
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kDeadlineExceeded:
      // The service names a reason with each of its own errors; these come from a broken stream.
      return error.reason.empty() ? RetryClass::kOdd : RetryClass::kNever;
    default:
      return RetryClass::kNever;
  }
}

void Retrier::Progress() {
  had_contact_ = true;
  failing_ = false;
  failures_ = 0;
  odd_failures_ = 0;
  tried_ = 0;
}

absl::Status Retrier::Sleep(absl::Duration duration) {
  constexpr absl::Duration kSlice = absl::Milliseconds(100);
  while (true) {
    if (policy_.is_interrupted && policy_.is_interrupted()) {
      return absl::CancelledError("interrupted");
    }
    if (duration <= absl::ZeroDuration()) return absl::OkStatus();
    policy_.sleep(std::min(duration, kSlice));
    duration -= kSlice;
  }
}

absl::Status Retrier::Wait(const absl::Status& failure) {
  if (policy_.is_interrupted && policy_.is_interrupted()) {
    return absl::CancelledError("interrupted");
  }
  const RetryClass retry_class = Classify(failure);
  if (retry_class == RetryClass::kNever) return failure;
  if (retry_class != RetryClass::kLater && ++tried_ < servers_) return absl::OkStatus();
  tried_ = 0;
  const ServiceError error = ServiceErrorOf(failure);
  if (!error.reason.empty()) had_contact_ = true;
  if (retry_class == RetryClass::kOdd && ++odd_failures_ > policy_.max_odd_failures) {
    return failure;
  }
  const absl::Duration patience = had_contact_ ? policy_.reconnect_wait : policy_.connect_wait;
  const absl::Time now = policy_.now();
  if (!failing_) {
    failing_ = true;
    failing_since_ = now;
    if (policy_.on_outage) policy_.on_outage(failure, patience);
  }
  absl::Duration delay =
      std::min(policy_.max_delay, policy_.first_delay * std::pow(1.6, std::min(failures_, 20)));
  ++failures_;
  if (error.retry_delay.has_value()) delay = std::max(delay, *error.retry_delay);
  if (now + delay - failing_since_ > patience) return failure;
  return Sleep(delay);
}

}  // namespace npuc::client
