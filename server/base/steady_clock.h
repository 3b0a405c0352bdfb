#ifndef NPUC_SERVER_BASE_STEADY_CLOCK_H_
#define NPUC_SERVER_BASE_STEADY_CLOCK_H_

#include <chrono>

#include "absl/time/time.h"

namespace npuc::base {

// The clock that never jumps. Its zero is the machine's own: for distances and limits, not for
// dates.
inline absl::Time SteadyNow() {
  return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace npuc::base

#endif  // NPUC_SERVER_BASE_STEADY_CLOCK_H_
