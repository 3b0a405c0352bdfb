#include "server/auth/attempt_brake.h"

#include <algorithm>
#include <utility>

#include "server/auth/client_address.h"

namespace npuc::auth {

AttemptBrake::Verdict AttemptBrake::OnWrongToken(absl::string_view address, absl::Time now) {
  const std::string group = AddressGroup(address);
  const MutexLock lock(mutex_);
  if (addresses_.size() >= kMaxAddresses && addresses_.count(group) == 0) {
    addresses_.erase(std::min_element(
        addresses_.begin(), addresses_.end(),
        [](const auto& a, const auto& b) { return a.second.seen < b.second.seen; }));
  }
  Address& entry = addresses_.try_emplace(group, Address{.seen = now}).first->second;
  entry.left = std::min(kBurst, entry.left + absl::FDivDuration(now - entry.seen, kPeriod));
  entry.seen = now;
  ++entry.untold;
  Verdict verdict;
  if (entry.reminder.IsDue(now)) verdict.tell = std::exchange(entry.untold, 0);
  if (entry.left >= 1) {
    entry.left -= 1;
  } else {
    verdict.wait = (1 - entry.left) * kPeriod;
  }
  return verdict;
}

}  // namespace npuc::auth
