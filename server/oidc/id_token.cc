#include "server/oidc/id_token.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "server/oidc/json_document.h"

namespace npuc::oidc {
namespace {

absl::Status Wrong(absl::string_view claim, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("the ID token's ", claim, " ", why));
}

// Seconds since 1970, maybe with a fraction; nullopt: missing, no number, or of no calendar.
std::optional<absl::Time> TimeIn(const JsonNode& claims, absl::string_view name) {
  const JsonNode* const node = FindIn(claims, name);
  constexpr double kYear9999 = 253402300799;
  if (node == nullptr || !node->is_number() || !(node->number >= 0 && node->number <= kYear9999)) {
    return std::nullopt;
  }
  return absl::UnixEpoch() + absl::Seconds(node->number);
}

absl::Status CheckTimes(const JsonNode& claims, absl::Time now) {
  const std::optional<absl::Time> end = TimeIn(claims, "exp"), issued = TimeIn(claims, "iat");
  if (!end.has_value()) return Wrong("exp", "is no time");
  if (!issued.has_value()) return Wrong("iat", "is no time");
  if (now >= *end + kClockSkew) return Wrong("exp", "is over: compare the clocks of both servers");
  if (*issued > now + kClockSkew) {
    return Wrong("iat", "is in the future: compare the clocks of both servers");
  }
  if (FindIn(claims, "nbf") == nullptr) return absl::OkStatus();
  const std::optional<absl::Time> begin = TimeIn(claims, "nbf");
  if (begin.has_value() && *begin <= now + kClockSkew) return absl::OkStatus();
  return Wrong("nbf", "is in the future or no time");
}

absl::Status CheckAudience(const JsonNode& claims, const std::string& client_id) {
  const std::vector<std::string> audience = TextsIn(claims, "aud");
  if (std::find(audience.begin(), audience.end(), client_id) == audience.end()) {
    return Wrong("aud", absl::StrCat("does not have this client's id, '", client_id, "'"));
  }
  const bool has_party = FindIn(claims, "azp") != nullptr;
  if (has_party && TextIn(claims, "azp") != client_id) {
    return Wrong("azp", absl::StrCat("is not this client's id, '", client_id, "'"));
  }
  if (audience.size() > 1 && !has_party) return Wrong("aud", "has several parties, azp names none");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<JsonNode> CheckClaims(absl::string_view payload, const Expected& expected,
                                     absl::Time now) {
  ASSIGN_OR_RETURN(JsonNode claims, ParseDocument(payload, "the ID token"));
  if (TextIn(claims, "iss") != expected.issuer) {
    return Wrong("iss", absl::StrCat("is '", Printable(TextIn(claims, "iss"), 128), "', not '",
                                     expected.issuer, "'"));
  }
  RETURN_IF_ERROR(CheckAudience(claims, expected.client_id));
  RETURN_IF_ERROR(CheckTimes(claims, now));
  if (expected.nonce.empty() || TextIn(claims, "nonce") != expected.nonce) {
    return Wrong("nonce", "is that of another sign-in");
  }
  const std::string subject = TextIn(claims, "sub");
  if (subject.empty() || subject.size() > kMaxSubjectBytes) return Wrong("sub", "names nobody");
  return claims;
}

}  // namespace npuc::oidc
