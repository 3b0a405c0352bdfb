#include "server/auth/authenticator.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/status.h"
#include "compiler_core/base/yaml_tree.h"
#include "server/jobs/service_error.h"

namespace npuc::auth {
namespace {

absl::StatusOr<std::string> ReadText(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    return absl::NotFoundError(absl::StrCat("cannot read the tenants file ", path, ": ",
                                            std::strerror(errno), "; give one with --tenants"));
  }
  // A byte more than is allowed: the parser says that it is too long.
  std::string text(kMaxYamlBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  return text;
}

absl::StatusOr<std::shared_ptr<const TenantDirectory>> ParseText(const std::string& text,
                                                                 const std::string& path) {
  Diagnostics diagnostics;
  absl::StatusOr<TenantDirectory> directory = TenantDirectory::Parse(text, path, diagnostics);
  if (directory.ok()) return std::make_shared<const TenantDirectory>(*std::move(directory));
  std::string message;
  for (const Diagnostic& diagnostic : diagnostics.list()) {
    // Each ends with its id; a line of the log holds all.
    absl::StrAppend(&message, message.empty() ? "" : ", ", diagnostic.ToString());
  }
  return absl::InvalidArgumentError(message);
}

}  // namespace

std::unique_ptr<Authenticator> Authenticator::Everybody(int64_t address_call_rate) {
  auto authenticator = std::unique_ptr<Authenticator>(
      new Authenticator("", [] { return absl::InfinitePast(); }, nullptr, address_call_rate, {}));
  const MutexLock lock(authenticator->mutex_);
  authenticator->directory_ = std::make_shared<const TenantDirectory>();
  return authenticator;
}

absl::StatusOr<std::unique_ptr<Authenticator>> Authenticator::FromFile(
    const std::string& path, Now now, const log::Logger* log, int64_t address_call_rate,
    OperatorDecisions decisions) {
  auto authenticator = std::unique_ptr<Authenticator>(
      new Authenticator(path, std::move(now), log, address_call_rate, decisions));
  RETURN_IF_ERROR(authenticator->Reload().status());
  return authenticator;
}

absl::StatusOr<Caller> Authenticator::Authenticate(const Credentials& credentials) const {
  ASSIGN_OR_RETURN(Caller caller, Identify(credentials));
  const bool is_operator = !path_.empty() && caller.rights.Has(Right::kAdmin);
  if (is_operator) return caller;
  const std::shared_ptr<const TenantDirectory> file = directory();
  const Tenant* const found = file->Find(caller.tenant);
  Tenant tenant = found != nullptr ? *found : Tenant{.name = caller.tenant};
  if (decisions_.limits != nullptr) tenant = decisions_.limits->Apply(std::move(tenant));
  RETURN_IF_ERROR(rates_.OnCall(credentials.peer, caller.tenant, tenant.quota.call_rate));
  return caller;
}

// A token that an operator issued, or ended, counts before the file; so does a session that began
// with it.
absl::StatusOr<Caller> Authenticator::FindCaller(const Credentials& credentials) const {
  const std::string& text = credentials.token;
  const std::optional<SignIn>& session = credentials.session;
  SignIn sign_in;
  if (text.size() >= kMinTokenChars && text.size() <= kMaxTokenChars) {
    sign_in.key = Sha256Hex(text);
  } else if (text.empty() && session.has_value() && session->way == SignIn::Way::kToken) {
    sign_in.key = session->key;
  }
  std::optional<IssuedTokens::Token> issued;
  if (decisions_.tokens != nullptr) issued = decisions_.tokens->Find(sign_in.key);
  if (issued.has_value() && now_() >= issued->end) {
    return jobs::ServiceError(
        absl::StatusCode::kUnauthenticated,
        absl::StrCat("the token was replaced by another and ended on ",
                     absl::FormatTime("%Y-%m-%d %H:%M UTC", issued->end, absl::UTCTimeZone()),
                     "; use the new one"),
        {.reason = text.empty() ? "SESSION_ENDED" : "IDENTITY_EXPIRED"});
  }
  if (!issued.has_value() || !issued->owner.has_value()) {
    return directory()->Authenticate(credentials, now_());
  }
  ASSIGN_OR_RETURN(Caller caller,
                   directory()->CallerOf(issued->owner->tenant, issued->owner->identity, now_()));
  caller.sign_in = std::move(sign_in);
  return caller;
}

absl::StatusOr<Caller> Authenticator::Identify(const Credentials& credentials) const {
  if (credentials.has_two_tokens) {
    return jobs::ServiceError(absl::StatusCode::kUnauthenticated,
                              "the call has more than one authorization header; send one",
                              {.reason = "AMBIGUOUS_IDENTITY"});
  }
  if (path_.empty()) return Caller{kLocalIdentity, kLocalTenant, Rights::All()};
  absl::StatusOr<Caller> caller = FindCaller(credentials);
  if (caller.ok() || credentials.token.empty()) return caller;
  return OnWrongToken(credentials, caller.status());
}

absl::Status Authenticator::OnWrongToken(const Credentials& credentials,
                                         const absl::Status& status) const {
  const AttemptBrake::Verdict verdict = brake_.OnWrongToken(credentials.peer, now_());
  if (verdict.tell.has_value() && log_ != nullptr) {
    log_->Warning("a client sends tokens that are wrong or expired",
                  {{"peer", credentials.peer},
                   {"error", status.message()},
                   {"times", absl::StrCat(*verdict.tell)}});
  }
  if (!verdict.wait.has_value()) return status;
  return jobs::ServiceError(
      absl::StatusCode::kResourceExhausted,
      "too many wrong tokens came from this address; correct the token and try "
      "again later",
      {.reason = "TOO_MANY_ATTEMPTS", .retry_delay = *verdict.wait});
}

absl::StatusOr<bool> Authenticator::Reload() {
  if (path_.empty()) return false;
  ASSIGN_OR_RETURN(std::string text, ReadText(path_));
  {
    const MutexLock lock(mutex_);
    if (directory_ != nullptr && text == text_) return false;
  }
  ASSIGN_OR_RETURN(std::shared_ptr<const TenantDirectory> directory, ParseText(text, path_));
  const MutexLock lock(mutex_);
  directory_ = std::move(directory);
  text_ = std::move(text);
  return true;
}

std::shared_ptr<const TenantDirectory> Authenticator::directory() const {
  const MutexLock lock(mutex_);
  return directory_;
}

std::string TokenOfHeader(absl::string_view authorization) {
  constexpr absl::string_view kBearer = "bearer ";
  if (absl::StartsWithIgnoreCase(authorization, kBearer)) {
    authorization.remove_prefix(kBearer.size());
  }
  std::string token(absl::StripAsciiWhitespace(authorization));
  if (token.empty()) token.push_back('?');
  return token;
}

std::string NewToken() {
  std::string bytes(32, '\0');
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = getrandom(bytes.data() + filled, bytes.size() - filled, 0);
    NPUC_CHECK(got > 0 || errno == EINTR);
    if (got > 0) filled += static_cast<size_t>(got);
  }
  return absl::WebSafeBase64Escape(bytes);
}

}  // namespace npuc::auth
