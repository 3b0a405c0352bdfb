#ifndef NPUC_SERVER_HTTP_SIGN_IN_H_
#define NPUC_SERVER_HTTP_SIGN_IN_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/http/http_message.h"

namespace npuc::http {

// The cookie by which a browser names its session: HttpOnly, SameSite=Strict, with TLS Secure, for
// this host alone. Its name has the port of Host, since a browser sends cookies of one host to all
// its ports. Pure.

// The session that a request names; empty: none. UNAUTHENTICATED (AMBIGUOUS_IDENTITY): two.
absl::StatusOr<std::string> SessionOf(const HttpRequest& head, bool uses_tls);

// Makes the browser keep the session, or forget it.
void SetSession(const HttpRequest& request, absl::string_view name, absl::Duration lifetime,
                bool uses_tls, HttpResponse& response);
void ForgetSession(const HttpRequest& request, bool uses_tls, HttpResponse& response);

// True where a script of a page of this server made the request, as browsers state it.
bool IsFromPage(const HttpRequest& head);

// A browser sends the cookie with each request, so that one that changes something must say that
// it comes from this server's own page: by Sec-Fetch-Site or by Origin. PERMISSION_DENIED
// (ORIGIN_REFUSED) else.
absl::Status CheckOwnPage(const HttpRequest& head, bool uses_tls);

}  // namespace npuc::http

#endif  // NPUC_SERVER_HTTP_SIGN_IN_H_
