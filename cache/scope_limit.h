#ifndef NPUC_CACHE_SCOPE_LIMIT_H_
#define NPUC_CACHE_SCOPE_LIMIT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace npuc::cache {

// Which limit of its own a scope of the blob store has reached.
enum class ScopeLimit : uint8_t { kNone, kBytes, kOpenUploads };

// RESOURCE_EXHAUSTED that says so.
absl::Status OverScopeLimit(ScopeLimit limit, absl::string_view message);
// kNone for every other status.
ScopeLimit ScopeLimitOf(const absl::Status& status);

}  // namespace npuc::cache

#endif  // NPUC_CACHE_SCOPE_LIMIT_H_
