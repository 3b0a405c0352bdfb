#include "cache/scope_limit.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace npuc::cache {
namespace {

// The type of the status payload.
constexpr char kUrl[] = "npuc.cache.scope_limit";

}  // namespace

absl::Status OverScopeLimit(ScopeLimit limit, absl::string_view message) {
  absl::Status status = absl::ResourceExhaustedError(message);
  status.SetPayload(kUrl, absl::Cord(absl::StrCat(static_cast<int>(limit))));
  return status;
}

ScopeLimit ScopeLimitOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kUrl);
  int limit = 0;
  if (!payload.has_value() || !absl::SimpleAtoi(std::string(*payload), &limit)) {
    return ScopeLimit::kNone;
  }
  return static_cast<ScopeLimit>(limit);
}

}  // namespace npuc::cache
