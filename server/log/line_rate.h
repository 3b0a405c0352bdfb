#ifndef NPUC_SERVER_LOG_LINE_RATE_H_
#define NPUC_SERVER_LOG_LINE_RATE_H_

#include <cstdint>
#include <utility>

#include "absl/time/time.h"

namespace npuc::log {

// Bounds the lines a second that strangers can cause: so many are written, the others are counted.
// Not thread-safe.
class LineRate {
 public:
  explicit LineRate(int per_second) : per_second_(per_second) {}

  // False: this one is only counted.
  bool Takes(absl::Time now) {
    const int64_t second = absl::ToUnixSeconds(now);
    if (second != second_) {
      second_ = second;
      taken_ = 0;
    }
    if (taken_ < per_second_) {
      ++taken_;
      return true;
    }
    ++left_out_;
    return false;
  }
  // Returns the number of those that were only counted, and begins anew.
  uint64_t TakeLeftOut() { return std::exchange(left_out_, 0); }

 private:
  const int per_second_;
  int64_t second_ = 0;
  int taken_ = 0;
  uint64_t left_out_ = 0;
};

}  // namespace npuc::log

#endif  // NPUC_SERVER_LOG_LINE_RATE_H_
