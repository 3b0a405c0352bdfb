#include "server/http_client/url.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "server/base/ascii.h"

namespace npuc::http_client {
namespace {

constexpr size_t kShownBytes = 128;

absl::Status BadUrl(absl::string_view url, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("'", Printable(url, kShownBytes), "' ", why));
}

// "name", "name:443", "[::1]:443"; the port, if any, is 1 to 65535.
bool IsAuthority(absl::string_view authority) {
  const bool is_v6 = absl::StartsWith(authority, "[");
  const size_t end = is_v6 ? authority.find(']') : std::min(authority.find(':'), authority.size());
  if (end == absl::string_view::npos) return false;
  const absl::string_view host = authority.substr(0, is_v6 ? end + 1 : end);
  absl::string_view port = authority.substr(host.size());
  const bool is_host = std::all_of(host.begin(), host.end(), [&](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '.' || c == '_' ||
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

absl::Status CheckUrl(absl::string_view url) {
  if (!absl::StartsWith(url, "https://") && !absl::StartsWith(url, "http://")) {
    return BadUrl(url, "does not begin with https:// or http://");
  }
  if (url.size() > kMaxUrlBytes || !base::IsGraphic(url, "\\") || absl::StrContains(url, '#')) {
    return BadUrl(url, absl::StrCat("is not a URL of at most ", kMaxUrlBytes,
                                    " printable characters without a fragment"));
  }
  if (IsAuthority(AuthorityOf(url))) return absl::OkStatus();
  return BadUrl(url, "has no HOST or HOST:PORT behind its scheme");
}

absl::Status CheckConfidentialUrl(absl::string_view url) {
  RETURN_IF_ERROR(CheckUrl(url));
  if (absl::StartsWith(url, "https://") || IsLoopback(AuthorityOf(url))) return absl::OkStatus();
  return BadUrl(url, "would be reached without encryption; use https://");
}

}  // namespace npuc::http_client
