#ifndef NPUC_CLIENT_LIB_RETRY_H_
#define NPUC_CLIENT_LIB_RETRY_H_

#include <cstddef>
#include <functional>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace npuc::client {

// How long to go on with a server that does not answer.
struct RetryPolicy {
  absl::Duration first_delay = absl::Milliseconds(50);
  absl::Duration max_delay = absl::Seconds(2);
  // Nothing has ever come from the server: it is probably not there.
  absl::Duration connect_wait = absl::Seconds(5);
  // The server was there: it is probably being restarted. Counts from the first failure after the
  // last sign of life.
  absl::Duration reconnect_wait = absl::Seconds(60);
  // Failures in a row, without progress, that are neither "not reachable" nor "later".
  int max_odd_failures = 5;

  // Replaced in tests.
  std::function<absl::Time()> now = [] { return absl::Now(); };
  std::function<void(absl::Duration)> sleep = [](absl::Duration d) { absl::SleepFor(d); };
  // Asked at least every 100 ms of any wait; true ends it with CANCELLED. May be empty.
  std::function<bool()> is_interrupted;
  // Told once per outage, before the first wait. May be empty.
  std::function<void(const absl::Status& failure, absl::Duration patience)> on_outage;
};

// What a failed call says about trying it again.
enum class RetryClass {
  kNever,        // the service refused it
  kUnreachable,  // UNAVAILABLE: not there, starting, draining
  kLater,        // the service invites a retry: queue full, storage full
  kOdd,          // the connection broke in a way that only a network or a crash explains
};
RetryClass Classify(const absl::Status& failure);

// The tries of one operation. Not thread-safe.
class Retrier {
 public:
  // `policy` and `had_contact` (whether a server ever answered) must outlive this. `servers`: so
  // many the caller goes to in turn, after each failure that may be a server's own.
  Retrier(const RetryPolicy& policy, bool& had_contact, size_t servers = 1)
      : policy_(policy), had_contact_(had_contact), servers_(servers) {}

  // After a failure: waits (not before each server was tried once) and returns OK where another try
  // is due; else the status to give up with: `failure` itself, or CANCELLED after an interrupt.
  absl::Status Wait(const absl::Status& failure);
  // After a sign of life: the next failure begins a new outage.
  void Progress();

 private:
  absl::Status Sleep(absl::Duration duration);

  const RetryPolicy& policy_;
  bool& had_contact_;
  const size_t servers_;
  size_t tried_ = 0;  // servers, since all of them were
  bool failing_ = false;
  absl::Time failing_since_;
  int failures_ = 0;
  int odd_failures_ = 0;
};

}  // namespace npuc::client

#endif  // NPUC_CLIENT_LIB_RETRY_H_
