#ifndef NPUC_SERVER_HTTP_SIGN_IN_H_
#define NPUC_SERVER_HTTP_SIGN_IN_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/http/http_message.h"

namespace npuc::http {

// The cookies of this server, in a browser: HttpOnly, with TLS Secure, for this host alone. Their
// names have the port of Host, since a browser sends cookies of one host to all its ports. Pure.
enum class CookieUse : uint8_t {
  kSession,   // names the session; SameSite=Strict
  kProvider,  // a sign-in that is under way at the provider; SameSite=Lax, since the provider's
              // page leads back here
  kProblem,   // what the next sign-in page shows; SameSite=Strict
};

// The value of the cookie that a request has; empty: none. UNAUTHENTICATED (AMBIGUOUS_IDENTITY):
// two.
absl::StatusOr<std::string> CookieOf(const HttpRequest& head, CookieUse use, bool uses_tls);

// Makes the browser keep the cookie, or forget it.
void SetCookie(const HttpRequest& request, CookieUse use, absl::string_view value,
               absl::Duration lifetime, bool uses_tls, HttpResponse& response);
void ForgetCookie(const HttpRequest& request, CookieUse use, bool uses_tls, HttpResponse& response);

// True where a script of a page of this server made the request, as browsers state it.
bool IsFromPage(const HttpRequest& head);

// A browser sends the cookie with each request, so that one that changes something must say that
// it comes from this server's own page: by Sec-Fetch-Site or by Origin. PERMISSION_DENIED
// (ORIGIN_REFUSED) else.
absl::Status CheckOwnPage(const HttpRequest& head, bool uses_tls);

}  // namespace npuc::http

#endif  // NPUC_SERVER_HTTP_SIGN_IN_H_
