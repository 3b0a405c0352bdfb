#ifndef NPUC_SERVER_AUTH_ATTEMPT_BRAKE_H_
#define NPUC_SERVER_AUTH_ATTEMPT_BRAKE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "compiler_core/base/mutex.h"
#include "server/observe/reminder.h"

namespace npuc::auth {

// Wrong tokens by client address: some at once are a mistake and are answered as such; more are
// answered with when to come back. Right tokens never pass here, so that a client behind the same
// proxy as a guesser is served. Thread-safe.
class AttemptBrake {
 public:
  static constexpr double kBurst = 20;
  static constexpr absl::Duration kPeriod = absl::Seconds(1);  // in which one more is allowed
  static constexpr size_t kMaxAddresses =
      1024;  // beyond, the one seen last longest ago is forgotten

  struct Verdict {
    std::optional<absl::Duration> wait;  // set: too many
    // Set where the log should have it: wrong tokens of this address since the last time.
    std::optional<uint64_t> tell;
  };
  Verdict OnWrongToken(absl::string_view address, absl::Time now);

 private:
  struct Address {
    double left = kBurst;
    absl::Time seen = {};
    uint64_t untold = 0;
    observe::Reminder reminder = {};
  };
  Mutex mutex_;
  std::map<std::string, Address, std::less<>> addresses_ NPUC_GUARDED_BY(mutex_);
};

}  // namespace npuc::auth

#endif  // NPUC_SERVER_AUTH_ATTEMPT_BRAKE_H_
