#include "server/oidc/settings.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"

namespace npuc::oidc {
namespace {

constexpr size_t kMaxScopesBytes = 512;
constexpr size_t kMaxClaimBytes = 64;
constexpr size_t kShownBytes = 128;

absl::Status Bad(absl::string_view what, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("'", Printable(what, kShownBytes), "' ", why));
}

bool HasScheme(absl::string_view url) {
  return absl::StartsWith(url, "https://") || absl::StartsWith(url, "http://");
}

// "name", "name:443", "[::1]:443"; the port, if any, is 1 to 65535.
bool IsAuthority(absl::string_view authority) {
  absl::string_view port;
  const bool is_v6 = absl::StartsWith(authority, "[");
  const size_t end = is_v6 ? authority.find(']') : std::min(authority.find(':'), authority.size());
  if (end == absl::string_view::npos) return false;
  const absl::string_view host = authority.substr(0, is_v6 ? end + 1 : end);
  port = authority.substr(host.size());
  const bool is_host = std::all_of(host.begin(), host.end(), [&](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '.' ||
           (is_v6 && (c == ':' || c == '[' || c == ']'));
  });
  if (!is_host || host.size() < (is_v6 ? 4U : 1U)) return false;
  uint32_t number = 0;
  return port.empty() || (absl::ConsumePrefix(&port, ":") && absl::SimpleAtoi(port, &number) &&
                          number >= 1 && number <= 65535);
}

}  // namespace

absl::string_view AuthorityOf(absl::string_view url) {
  url.remove_prefix(std::min(url.find("://") + 3, url.size()));
  return url.substr(0, std::min(url.find_first_of("/?#"), url.size()));
}

bool IsLoopback(absl::string_view authority) {
  if (absl::StartsWith(authority, "[::1]")) return true;
  const absl::string_view host = authority.substr(0, authority.find(':'));
  return host == "127.0.0.1" || host == "localhost";
}

absl::Status CheckProviderUrl(absl::string_view url) {
  if (!HasScheme(url)) return Bad(url, "does not begin with https://");
  const bool is_printable = std::all_of(
      url.begin(), url.end(), [](unsigned char c) { return absl::ascii_isgraph(c) && c != '\\'; });
  if (url.size() > kMaxUrlBytes || !is_printable || absl::StrContains(url, '#')) {
    return Bad(url, absl::StrCat("is not a URL of at most ", kMaxUrlBytes,
                                 " printable characters without a fragment"));
  }
  if (!IsAuthority(AuthorityOf(url))) return Bad(url, "has no HOST or HOST:PORT behind its scheme");
  if (absl::StartsWith(url, "http://") && !IsLoopback(AuthorityOf(url))) {
    return Bad(url, "would be reached without encryption; use https://");
  }
  return absl::OkStatus();
}

absl::Status CheckIssuer(absl::string_view url) {
  RETURN_IF_ERROR(CheckProviderUrl(url));
  if (!absl::StrContains(url, '?')) return absl::OkStatus();
  return Bad(url, "has a query, which an issuer never has");
}

absl::StatusOr<std::string> ReadPageUrl(absl::string_view url) {
  RETURN_IF_ERROR(CheckProviderUrl(url));
  absl::string_view origin = url;
  absl::ConsumeSuffix(&origin, "/");
  const absl::string_view authority = AuthorityOf(origin);
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
    is_good =
        is_good && !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
          return absl::ascii_isgraph(c) && c != '"' && c != '\\';
        });
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
