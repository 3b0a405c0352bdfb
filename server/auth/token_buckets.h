#ifndef NPUC_SERVER_AUTH_TOKEN_BUCKETS_H_
#define NPUC_SERVER_AUTH_TOKEN_BUCKETS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "compiler_core/base/mutex.h"

namespace npuc::auth {

// A token bucket for each name: so many tokens a second, saved up to `burst`. Holds no more names
// than have taken tokens within the time in which a bucket fills. Thread-safe.
class TokenBuckets {
 public:
  // `steady_now` never falls and does not jump.
  explicit TokenBuckets(std::function<absl::Time()> steady_now);

  // Takes `count` tokens (at most `burst`; more are taken as so many) and gives nullopt; or takes
  // none and gives how long to wait. That is until half the bucket is full or `count` are there,
  // whichever is later, so that who comes back need not come back at once again. rate_per_second
  // and burst must be positive.
  std::optional<absl::Duration> Take(absl::string_view name, int64_t count, int64_t rate_per_second,
                                     int64_t burst);

  size_t size() const;

 private:
  struct Bucket {
    double tokens = 0;
    absl::Time filled;  // up to when `tokens` counts
    absl::Time full;    // when it will be full, if nobody takes any
  };

  const std::function<absl::Time()> steady_now_;
  mutable Mutex mutex_;
  std::map<std::string, Bucket, std::less<>> buckets_ NPUC_GUARDED_BY(mutex_);
  absl::Time next_sweep_ NPUC_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace npuc::auth

#endif  // NPUC_SERVER_AUTH_TOKEN_BUCKETS_H_
