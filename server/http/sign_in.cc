#include "server/http/sign_in.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/jobs/service_error.h"

namespace npuc::http {
namespace {

// The port behind "host:port" or "[v6]:port", with '_' before it; empty: the scheme's own.
std::string PortSuffix(absl::string_view authority) {
  const size_t colon = authority.rfind(':');
  const size_t bracket = authority.rfind(']');
  const bool has_port =
      colon != absl::string_view::npos && (bracket == absl::string_view::npos || colon > bracket);
  return has_port ? absl::StrCat("_", authority.substr(colon + 1)) : "";
}

struct Kind {
  const char* name;
  const char* same_site;
};

Kind KindOf(CookieUse use) {
  if (use == CookieUse::kProvider) return {"npuc-provider", "Lax"};
  if (use == CookieUse::kProblem) return {"npuc-problem", "Strict"};
  return {"npuc", "Strict"};
}

std::string CookieName(const HttpRequest& head, CookieUse use, bool uses_tls) {
  return absl::StrCat(uses_tls ? "__Host-" : "", KindOf(use).name, PortSuffix(head.Header("Host")));
}

}  // namespace

absl::StatusOr<std::string> CookieOf(const HttpRequest& head, CookieUse use, bool uses_tls) {
  const std::string name = CookieName(head, use, uses_tls);
  std::vector<std::string> found;
  for (const auto& [header, value] : head.headers) {
    if (!absl::EqualsIgnoreCase(header, "Cookie")) continue;
    for (absl::string_view pair : absl::StrSplit(value, ';')) {
      pair = absl::StripAsciiWhitespace(pair);
      if (absl::ConsumePrefix(&pair, name) && absl::ConsumePrefix(&pair, "=")) {
        found.emplace_back(pair);
      }
    }
  }
  if (found.size() > 1) {
    return jobs::ServiceError(absl::StatusCode::kUnauthenticated,
                              absl::StrCat("the request has the cookie ", name, " more than once"),
                              {.reason = "AMBIGUOUS_IDENTITY"});
  }
  return found.empty() ? "" : found[0];
}

void SetCookie(const HttpRequest& request, CookieUse use, absl::string_view value,
               absl::Duration lifetime, bool uses_tls, HttpResponse& response) {
  response.AddHeader(
      "Set-Cookie",
      absl::StrCat(CookieName(request, use, uses_tls), "=", value,
                   "; Path=/; Max-Age=", absl::ToInt64Seconds(lifetime),
                   "; HttpOnly; SameSite=", KindOf(use).same_site, uses_tls ? "; Secure" : ""));
}

void ForgetCookie(const HttpRequest& request, CookieUse use, bool uses_tls,
                  HttpResponse& response) {
  SetCookie(request, use, "", absl::ZeroDuration(), uses_tls, response);
}

bool IsFromPage(const HttpRequest& head) { return head.Header("Sec-Fetch-Site") == "same-origin"; }

absl::Status CheckOwnPage(const HttpRequest& head, bool uses_tls) {
  if (head.method == "GET" || head.method == "HEAD" || IsFromPage(head)) return absl::OkStatus();
  const std::string own = absl::StrCat(uses_tls ? "https://" : "http://", head.Header("Host"));
  if (head.Header("Origin") == own) return absl::OkStatus();
  return jobs::ServiceError(
      absl::StatusCode::kPermissionDenied,
      "a request by the session of a page does not say that it comes from that page (Origin, "
      "Sec-Fetch-Site); programs send a bearer token",
      {.reason = "ORIGIN_REFUSED"});
}

}  // namespace npuc::http
