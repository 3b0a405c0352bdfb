#include "server/auth/tenants.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/status.h"
#include "server/auth/tenants_reader.h"
#include "server/jobs/service_error.h"

namespace npuc::auth {
namespace {

absl::Status Unauthenticated(absl::string_view message, absl::string_view reason) {
  return jobs::ServiceError(absl::StatusCode::kUnauthenticated, message,
                            {.reason = std::string(reason)});
}

}  // namespace

absl::StatusOr<TenantDirectory> TenantDirectory::Parse(absl::string_view text,
                                                       absl::string_view name,
                                                       Diagnostics& diagnostics) {
  TenantDirectory directory;
  TenantsReader reader(name, diagnostics, directory);
  reader.Read(text);
  RETURN_IF_ERROR(diagnostics.ToStatus());
  return directory;
}

const TenantDirectory::Identity* TenantDirectory::FindIdentity(const SignIn& sign_in) const {
  const bool is_claim = sign_in.way == SignIn::Way::kProvider;
  const auto& keys = sign_in.way == SignIn::Way::kToken ? by_token_sha256_
                     : is_claim                         ? by_claim_value_
                                                        : by_certificate_;
  absl::string_view key = sign_in.key;
  if (is_claim) {
    const std::vector<absl::string_view> lines = absl::StrSplit(key, '\n');
    key = lines.size() > 1 ? lines[1] : "";
  }
  const auto it = keys.find(key);
  return it == keys.end() ? nullptr : &identities_[it->second];
}

absl::StatusOr<TenantDirectory::Proof> TenantDirectory::ProofOf(
    const Credentials& credentials) const {
  if (!credentials.token.empty()) {
    const size_t size = credentials.token.size();
    Proof proof;
    if (size >= kMinTokenChars && size <= kMaxTokenChars) {
      proof.sign_in = {SignIn::Way::kToken, Sha256Hex(credentials.token)};
      proof.identity = FindIdentity(proof.sign_in);
    }
    if (proof.identity != nullptr) return proof;
    return Unauthenticated("the token is none that this server knows", "UNKNOWN_IDENTITY");
  }
  if (credentials.session.has_value()) {
    const Proof proof{*credentials.session, FindIdentity(*credentials.session)};
    if (proof.identity != nullptr) return proof;
    return Unauthenticated("what the session began with is no longer known here; sign in again",
                           "SESSION_ENDED");
  }
  if (credentials.from_page) {
    return Unauthenticated("nobody is signed in on this page", "NO_IDENTITY");
  }
  for (const std::string& name : credentials.certificate_names) {
    Proof proof{{SignIn::Way::kCertificate, name}};
    proof.identity = FindIdentity(proof.sign_in);
    if (proof.identity != nullptr) return proof;
  }
  if (!credentials.certificate_names.empty()) {
    return Unauthenticated("the client certificate names nobody whom this server knows",
                           "UNKNOWN_IDENTITY");
  }
  return Unauthenticated("the call has neither a bearer token nor a client certificate",
                         "NO_IDENTITY");
}

absl::StatusOr<Caller> TenantDirectory::Authenticate(const Credentials& credentials,
                                                     absl::Time now) const {
  ASSIGN_OR_RETURN(const Proof proof, ProofOf(credentials));
  ASSIGN_OR_RETURN(Caller caller, CheckExpiry(*proof.identity, now));
  caller.sign_in = proof.sign_in;
  return caller;
}

absl::StatusOr<std::string> TenantDirectory::FindClaimValue(
    absl::string_view claim, const std::vector<std::string>& values) const {
  constexpr size_t kShownValues = 5;
  constexpr size_t kShownBytes = 128;
  const std::string* found = nullptr;
  size_t index = 0;
  for (const std::string& value : values) {
    const auto it = by_claim_value_.find(value);
    if (it == by_claim_value_.end()) continue;
    if (found != nullptr && it->second != index) {
      return Unauthenticated(
          absl::StrCat("the claim '", claim, "' has '", *found, "' and '", value,
                       "', which are two identities here; an operator leaves one in the tenants "
                       "file"),
          "AMBIGUOUS_IDENTITY");
    }
    found = &value;
    index = it->second;
  }
  if (found != nullptr) return *found;
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(values.size(), kShownValues); ++i) {
    shown.push_back(absl::StrCat("'", Printable(values[i], kShownBytes), "'"));
  }
  if (values.size() > kShownValues) shown.emplace_back("...");
  return Unauthenticated(absl::StrCat("the provider knows you, this server does not: the claim '",
                                      claim, "' is ", absl::StrJoin(shown, ", "),
                                      "; an operator adds oidc: ", shown.empty() ? "''" : shown[0],
                                      " to an identity of the tenants file"),
                         "UNKNOWN_IDENTITY");
}

absl::StatusOr<Caller> TenantDirectory::CheckExpiry(const Identity& identity, absl::Time now) {
  if (now < identity.expires) return identity.caller;
  return Unauthenticated(
      absl::StrCat("identity '", identity.caller.identity, "' expired on ",
                   absl::FormatTime("%Y-%m-%d", identity.expires, absl::UTCTimeZone())),
      "IDENTITY_EXPIRED");
}

const TenantDirectory::Identity* TenantDirectory::FindIdentity(absl::string_view tenant,
                                                               absl::string_view identity) const {
  const auto found = std::find_if(identities_.begin(), identities_.end(), [&](const Identity& one) {
    return one.caller.tenant == tenant && one.caller.identity == identity;
  });
  return found == identities_.end() ? nullptr : &*found;
}

std::vector<std::string> TenantDirectory::TokensOf(absl::string_view tenant,
                                                   absl::string_view identity) const {
  std::vector<std::string> tokens;
  for (const auto& [sha256, index] : by_token_sha256_) {
    const Caller& caller = identities_[index].caller;
    if (caller.tenant == tenant && caller.identity == identity) tokens.push_back(sha256);
  }
  return tokens;
}

absl::StatusOr<Caller> TenantDirectory::CallerOf(absl::string_view tenant,
                                                 absl::string_view identity, absl::Time now) const {
  const Identity* const found = FindIdentity(tenant, identity);
  if (found != nullptr) return CheckExpiry(*found, now);
  return Unauthenticated("the token's identity is none that this server knows any more",
                         "UNKNOWN_IDENTITY");
}

const Tenant* TenantDirectory::Find(absl::string_view name) const {
  const auto it = tenants_.find(name);
  return it == tenants_.end() ? nullptr : &it->second;
}

}  // namespace npuc::auth
