#include "server/oidc/settings.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "server/base/ascii.h"
#include "server/http_client/url.h"

namespace npuc::oidc {
namespace {

constexpr size_t kMaxScopesBytes = 512;
constexpr size_t kMaxClaimBytes = 64;
constexpr size_t kShownBytes = 128;

absl::Status Bad(absl::string_view what, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("'", Printable(what, kShownBytes), "' ", why));
}

}  // namespace

absl::Status CheckIssuer(absl::string_view url) {
  RETURN_IF_ERROR(http_client::CheckConfidentialUrl(url));
  if (!absl::StrContains(url, '?')) return absl::OkStatus();
  return Bad(url, "has a query, which an issuer never has");
}

absl::StatusOr<std::string> ReadPageUrl(absl::string_view url) {
  RETURN_IF_ERROR(http_client::CheckConfidentialUrl(url));
  absl::string_view origin = url;
  absl::ConsumeSuffix(&origin, "/");
  const absl::string_view authority = http_client::AuthorityOf(origin);
  if (!absl::EndsWith(origin, absl::StrCat("://", authority))) {
    return Bad(url, "has more than a scheme, a host and a port; the page is at / there");
  }
  absl::ConsumeSuffix(&origin, absl::StartsWith(origin, "https://") ? ":443" : ":80");
  return absl::AsciiStrToLower(origin);
}

absl::Status CheckScopes(absl::string_view scopes) {
  bool has_openid = false;
  bool is_good = scopes.size() <= kMaxScopesBytes;
  for (const absl::string_view word : absl::StrSplit(scopes, ' ')) {
    has_openid = has_openid || word == "openid";
    // RFC 6749, section 3.3.
    is_good = is_good && !word.empty() && base::IsGraphic(word, "\"\\");
  }
  if (is_good && has_openid) return absl::OkStatus();
  return Bad(scopes, "is no list of scopes with 'openid' among them; write \"openid email\"");
}

absl::Status CheckClaimName(absl::string_view claim) {
  const bool is_good =
      !claim.empty() && claim.size() <= kMaxClaimBytes &&
      std::all_of(claim.begin(), claim.end(), [](unsigned char c) {
        return absl::ascii_isalnum(c) || absl::StrContains("-_.:/", static_cast<char>(c));
      });
  if (is_good) return absl::OkStatus();
  return Bad(claim, "is no name of a claim; write email, sub or groups");
}

}  // namespace npuc::oidc
