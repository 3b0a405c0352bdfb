#ifndef NPUC_SERVER_HTTP_SESSION_CALLS_H_
#define NPUC_SERVER_HTTP_SESSION_CALLS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/api/dependencies.h"
#include "server/auth/caller.h"
#include "server/http/http_message.h"
#include "server/http/routes.h"

namespace npuc::http {

// The calls by which people sign in and out on the page.
using SessionCall = absl::StatusOr<HttpResponse> (*)(const RouteContext& context,
                                                     const HttpRequest& request,
                                                     const auth::Caller& caller);

// Lists the ways to sign in, and what went wrong at the provider before.
absl::StatusOr<HttpResponse> GetSignIn(const RouteContext& context, const HttpRequest& request,
                                       const auth::Caller& caller);
// Keeps the caller in a session. The answer is that of GetCaller.
absl::StatusOr<HttpResponse> StartSession(const RouteContext& context, const HttpRequest& request,
                                          const auth::Caller& caller);
// Ends the session that the browser has, if any.
absl::StatusOr<HttpResponse> SignOut(const RouteContext& context, const HttpRequest& request,
                                     const auth::Caller& caller);
// Redirects the browser to the provider; `to` is the link to come back to.
absl::StatusOr<HttpResponse> GoToProvider(const RouteContext& context, const HttpRequest& request,
                                          const auth::Caller& caller);
// The browser comes back: starts a session, and redirects to the link. What went wrong is shown by
// the page there.
absl::StatusOr<HttpResponse> ComeFromProvider(const RouteContext& context,
                                              const HttpRequest& request,
                                              const auth::Caller& caller);

// The proof that the session of this name keeps. UNAUTHENTICATED (SESSION_ENDED): there is none, or
// it began at another provider than today's.
absl::StatusOr<auth::SignIn> FindSignIn(const api::ApiDependencies& deps, absl::string_view name);

}  // namespace npuc::http

#endif  // NPUC_SERVER_HTTP_SESSION_CALLS_H_
