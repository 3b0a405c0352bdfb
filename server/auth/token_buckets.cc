#include "server/auth/token_buckets.h"

#include <algorithm>
#include <utility>

namespace npuc::auth {
namespace {

constexpr absl::Duration kSweepPeriod = absl::Minutes(1);

}  // namespace

TokenBuckets::TokenBuckets(std::function<absl::Time()> steady_now)
    : steady_now_(std::move(steady_now)) {}

std::optional<absl::Duration> TokenBuckets::Take(absl::string_view name, int64_t count,
                                                 int64_t rate_per_second, int64_t burst) {
  const absl::Time now = steady_now_();
  const auto capacity = static_cast<double>(burst);
  const auto rate = static_cast<double>(rate_per_second);
  const double wanted = std::min(static_cast<double>(count), capacity);
  const MutexLock lock(mutex_);
  if (now >= next_sweep_) {
    // A full bucket is as good as none.
    std::erase_if(buckets_, [now](const auto& entry) { return entry.second.full <= now; });
    next_sweep_ = now + kSweepPeriod;
  }
  const auto [it, is_new] = buckets_.try_emplace(std::string(name), Bucket{capacity, now, now});
  Bucket& bucket = it->second;
  bucket.tokens =
      std::min(capacity, bucket.tokens + absl::ToDoubleSeconds(now - bucket.filled) * rate);
  bucket.filled = now;
  const bool enough = bucket.tokens >= wanted;
  if (enough) bucket.tokens -= wanted;
  bucket.full = now + absl::Seconds((capacity - bucket.tokens) / rate);
  if (enough) return std::nullopt;
  return absl::Seconds((std::max(wanted, capacity / 2) - bucket.tokens) / rate);
}

size_t TokenBuckets::size() const {
  const MutexLock lock(mutex_);
  return buckets_.size();
}

}  // namespace npuc::auth
