#ifndef NPUC_SERVER_BASE_FEATURES_H_
#define NPUC_SERVER_BASE_FEATURES_H_

#include <cstdint>
#include <functional>
#include <utility>

namespace npuc::base {

// Things that older nodes of a cluster cannot read, each by the feature level from which on they
// are written. A new field of a record needs none: nodes keep fields that they do not know. A new
// enumerator does, and anything else that an older build takes for damage.
enum class Feature : int64_t {
  kProviderSessions = 2,  // sessions that began at a sign-in provider (server/auth/sessions.h)
  kPackedResults = 3,     // results in the shared store (server/pg/shared_results.h)
};

// The highest level that this build reads and writes: that of the newest feature. Level 1 is all
// that nodes without levels know.
inline constexpr int64_t kFeatureLevel = static_cast<int64_t>(Feature::kPackedResults);

// The one place to ask before something newer is written. Thread-safe.
class Features {
 public:
  // `level` returns that of the cluster, which never falls; of one machine, kFeatureLevel.
  explicit Features(std::function<int64_t()> level) : level_(std::move(level)) {}

  int64_t level() const { return level_(); }
  bool Allows(Feature feature) const { return level_() >= static_cast<int64_t>(feature); }

 private:
  const std::function<int64_t()> level_;
};

}  // namespace npuc::base

#endif  // NPUC_SERVER_BASE_FEATURES_H_
