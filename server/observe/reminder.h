#ifndef NPUC_SERVER_OBSERVE_REMINDER_H_
#define NPUC_SERVER_OBSERVE_REMINDER_H_

#include "absl/time/time.h"

namespace npuc::observe {

// Of what is seen again and again while it lasts: when the log should have it. Not thread-safe.
class Reminder {
 public:
  static constexpr absl::Duration kPeriod = absl::Minutes(10);

  // True at once, then every kPeriod.
  bool IsDue(absl::Time now) {
    if (now < next_) return false;
    Said(now);
    return true;
  }
  // It was said otherwise.
  void Said(absl::Time now) { next_ = now + kPeriod; }
  // It is over: the next time is another thing.
  void Reset() { next_ = absl::InfinitePast(); }

 private:
  absl::Time next_ = absl::InfinitePast();
};

}  // namespace npuc::observe

#endif  // NPUC_SERVER_OBSERVE_REMINDER_H_
