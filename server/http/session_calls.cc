#include "server/http/session_calls.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/json_tree.h"
#include "compiler_core/base/status.h"
#include "server/api/audit.h"
#include "server/api/methods.h"
#include "server/http/json.h"
#include "server/http/sign_in.h"
#include "server/jobs/service_error.h"
#include "server/oidc/flow.h"

namespace npuc::http {
namespace {

constexpr char kJsonType[] = "application/json";
// By then the page has shown it.
constexpr absl::Duration kProblemAge = absl::Minutes(2);
constexpr int kSeeOther = 303;

// The first value of a parameter; empty: there is none.
std::string Parameter(const HttpRequest& request, const char* name) {
  const auto found = request.params.find(name);
  return found == request.params.end() ? "" : found->second;
}

// Ends the session that the browser has, if any.
absl::Status EndSession(const RouteContext& context, const HttpRequest& request) {
  const api::ApiDependencies& deps = *context.deps;
  ASSIGN_OR_RETURN(const std::string name,
                   CookieOf(request, CookieUse::kSession, context.uses_tls));
  if (deps.sessions == nullptr || name.empty()) return absl::OkStatus();
  const absl::StatusOr<auth::SignIn> found = deps.sessions->Find(name);
  if (!found.ok()) return absl::OkStatus();
  auth::Credentials credentials;
  credentials.session = *found;
  auto caller = deps.authenticator->Authenticate(credentials);
  if (!caller.ok()) caller = auth::Caller();  // the tenants file knows it no longer
  caller->peer = request.peer;
  const absl::Status ended = deps.sessions->End(name);
  api::Audit(deps, *caller, "sign_out", "", ended);
  return ended;
}

// Ends the session before, and starts one of this caller; the answer gets its cookie.
absl::Status StartSessionOf(const RouteContext& context, const HttpRequest& request,
                            const auth::Caller& caller, absl::string_view detail,
                            HttpResponse& response) {
  const api::ApiDependencies& deps = *context.deps;
  RETURN_IF_ERROR(EndSession(context, request));
  const absl::StatusOr<std::string> name = deps.sessions->Start(caller.sign_in);
  api::Audit(deps, caller, "sign_in", "", name.status(), detail);
  RETURN_IF_ERROR(name.status());
  SetCookie(request, CookieUse::kSession, *name, deps.sessions->lifetime(), context.uses_tls,
            response);
  return absl::OkStatus();
}

// The flow of sign-ins by a provider. NOT_FOUND: this server has none.
absl::StatusOr<oidc::SignInFlow*> FlowOf(const RouteContext& context) {
  const api::ApiDependencies& deps = *context.deps;
  const bool can_sign_in =
      deps.sign_ins != nullptr && deps.sessions != nullptr && deps.authenticator->needs_identity();
  if (can_sign_in) return deps.sign_ins;
  return jobs::ServiceError(absl::StatusCode::kNotFound,
                            "this server has no sign-in provider (npucd --oidc-issuer)",
                            {.reason = "NO_SUCH_PATH"});
}

HttpResponse RedirectTo(const std::string& location) {
  HttpResponse response;
  response.status = kSeeOther;
  response.AddHeader("Location", location);
  return response;
}

// Leads to the page, which shows what went wrong.
HttpResponse ShowProblem(const RouteContext& context, const HttpRequest& request,
                         oidc::SignInFlow& flow, const std::string& link,
                         const absl::Status& status) {
  const api::ApiDependencies& deps = *context.deps;
  api::AuditRefusal(deps, request.peer, absl::StrCat("GET ", request.path), status);
  const auto details = jobs::ErrorDetailsOf(status);
  const bool is_providers = details.has_value() && details->reason == "PROVIDER_UNAVAILABLE";
  if (is_providers && flow.TakesLogLine()) {
    deps.log->Warning("people cannot sign in by the provider", {{"error", status.message()}});
  }
  HttpResponse response = RedirectTo(link);
  SetCookie(request, CookieUse::kProblem, flow.SealProblem(status.message()), kProblemAge,
            context.uses_tls, response);
  return response;
}

// The identity of the tenants file that the provider's claim names.
absl::StatusOr<auth::Caller> IdentityOf(const RouteContext& context, const HttpRequest& request,
                                        const oidc::SignInFlow& flow, const oidc::Person& person) {
  const auth::Authenticator& authenticator = *context.deps->authenticator;
  ASSIGN_OR_RETURN(const std::string value,
                   authenticator.directory()->FindClaimValue(flow.settings().claim, person.values));
  auth::Credentials credentials;
  credentials.peer = request.peer;
  credentials.session =
      auth::SignIn{auth::SignIn::Way::kProvider, flow.KeyOf(value, person.subject)};
  ASSIGN_OR_RETURN(auth::Caller caller, authenticator.Authenticate(credentials));
  caller.peer = request.peer;
  return caller;
}

absl::Status FinishSignIn(const RouteContext& context, const HttpRequest& request,
                          oidc::SignInFlow& flow, const std::string& cookie,
                          HttpResponse& response) {
  for (const char* name : {"state", "code", "error", "iss"}) {
    if (request.params.count(name) <= 1) continue;
    return jobs::ServiceError(absl::StatusCode::kUnauthenticated,
                              absl::StrCat("the answer of the sign-in provider has ", name,
                                           " more than once; sign in once more"),
                              {.reason = "SIGN_IN_UNKNOWN"});
  }
  oidc::SignInFlow::Return answer{.cookie = cookie,
                                  .state = Parameter(request, "state"),
                                  .code = Parameter(request, "code"),
                                  .error = Parameter(request, "error"),
                                  .error_description = Parameter(request, "error_description")};
  if (request.params.contains("iss")) answer.issuer = Parameter(request, "iss");
  ASSIGN_OR_RETURN(const oidc::Person person, flow.End(answer));
  ASSIGN_OR_RETURN(const auth::Caller caller, IdentityOf(context, request, flow, person));
  // An identity may be a group's; the subject is one person's.
  return StartSessionOf(context, request, caller,
                        absl::StrCat("sub=", Printable(person.subject, 255)), response);
}

}  // namespace

absl::StatusOr<auth::SignIn> FindSignIn(const api::ApiDependencies& deps, absl::string_view name) {
  ASSIGN_OR_RETURN(auth::SignIn sign_in, deps.sessions->Find(name));
  const bool is_own = sign_in.way != auth::SignIn::Way::kProvider ||
                      (deps.sign_ins != nullptr && deps.sign_ins->IsOwnKey(sign_in.key));
  if (is_own) return sign_in;
  return jobs::ServiceError(absl::StatusCode::kUnauthenticated,
                            "the session began at another sign-in provider; sign in again",
                            {.reason = "SESSION_ENDED"});
}

absl::StatusOr<HttpResponse> GetSignIn(const RouteContext& context, const HttpRequest& request,
                                       const auth::Caller& /*caller*/) {
  const bool is_needed = context.deps->authenticator->needs_identity();
  std::string text = absl::StrCat("{\"needed\":", is_needed ? "true" : "false");
  if (!request.certificate_names.empty()) {
    absl::StrAppend(&text, ",\"certificate\":", JsonQuoted(request.certificate_names.front()));
  }
  HttpResponse response;
  if (const auto flow = FlowOf(context); flow.ok()) {
    absl::StrAppend(&text, ",\"provider\":", JsonQuoted((*flow)->settings().name));
    const auto sealed = CookieOf(request, CookieUse::kProblem, context.uses_tls);
    const std::string problem = sealed.ok() ? (*flow)->OpenProblem(*sealed) : "";
    if (!problem.empty()) {
      absl::StrAppend(&text, ",\"problem\":", JsonQuoted(problem));
      ForgetCookie(request, CookieUse::kProblem, context.uses_tls, response);
    }
  }
  response.SetBody(text + "}", kJsonType);
  return response;
}

absl::StatusOr<HttpResponse> StartSession(const RouteContext& context, const HttpRequest& request,
                                          const auth::Caller& caller) {
  const api::ApiDependencies& deps = *context.deps;
  v1::GetCallerResponse answer;
  RETURN_IF_ERROR(api::kGetCaller.RunAndWait(deps, caller, {}, &answer));
  HttpResponse response;
  response.SetBody(ToJson(answer), kJsonType);
  // Without identities there is nothing to keep.
  if (deps.sessions == nullptr || !deps.authenticator->needs_identity()) return response;
  ASSIGN_OR_RETURN(const std::string before,
                   CookieOf(request, CookieUse::kSession, context.uses_tls));
  if (!before.empty()) RETURN_IF_ERROR(CheckOwnPage(request, context.uses_tls));
  RETURN_IF_ERROR(StartSessionOf(context, request, caller, "", response));
  return response;
}

absl::StatusOr<HttpResponse> SignOut(const RouteContext& context, const HttpRequest& request,
                                     const auth::Caller& /*caller*/) {
  ASSIGN_OR_RETURN(const std::string name,
                   CookieOf(request, CookieUse::kSession, context.uses_tls));
  if (!name.empty()) RETURN_IF_ERROR(CheckOwnPage(request, context.uses_tls));
  RETURN_IF_ERROR(EndSession(context, request));
  HttpResponse response;
  response.SetBody("{}", kJsonType);
  ForgetCookie(request, CookieUse::kSession, context.uses_tls, response);
  return response;
}

absl::StatusOr<HttpResponse> GoToProvider(const RouteContext& context, const HttpRequest& request,
                                          const auth::Caller& /*caller*/) {
  ASSIGN_OR_RETURN(oidc::SignInFlow* const flow, FlowOf(context));
  const std::string asked = Parameter(request, "to");
  const std::string link = oidc::SignInFlow::IsLink(asked) ? asked : "/";
  const absl::StatusOr<oidc::SignInFlow::Begun> begun = flow->Begin(link, request.Header("Host"));
  if (!begun.ok()) return ShowProblem(context, request, *flow, link, begun.status());
  HttpResponse response = RedirectTo(begun->location);
  SetCookie(request, CookieUse::kProvider, begun->cookie, oidc::kSignInAge, context.uses_tls,
            response);
  return response;
}

absl::StatusOr<HttpResponse> ComeFromProvider(const RouteContext& context,
                                              const HttpRequest& request,
                                              const auth::Caller& /*caller*/) {
  ASSIGN_OR_RETURN(oidc::SignInFlow* const flow, FlowOf(context));
  ASSIGN_OR_RETURN(const std::string cookie,
                   CookieOf(request, CookieUse::kProvider, context.uses_tls));
  const std::string link = oidc::SignInFlow::LinkOf(cookie);
  HttpResponse response = RedirectTo(link);
  const absl::Status finished = FinishSignIn(context, request, *flow, cookie, response);
  if (!finished.ok()) response = ShowProblem(context, request, *flow, link, finished);
  ForgetCookie(request, CookieUse::kProvider, context.uses_tls, response);
  return response;
}

}  // namespace npuc::http
