#include "server/auth/tenants.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
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

absl::StatusOr<Caller> TenantDirectory::Authenticate(const Credentials& credentials,
                                                     absl::Time now) const {
  const Identity* found = nullptr;
  if (!credentials.token.empty()) {
    const size_t size = credentials.token.size();
    if (size >= kMinTokenChars && size <= kMaxTokenChars) {
      const auto it = by_token_sha256_.find(Sha256Hex(credentials.token));
      if (it != by_token_sha256_.end()) found = &identities_[it->second];
    }
    if (found == nullptr) {
      return Unauthenticated("the token is none that this server knows", "UNKNOWN_IDENTITY");
    }
  } else {
    for (const std::string& name : credentials.certificate_names) {
      const auto it = by_certificate_.find(name);
      if (it == by_certificate_.end()) continue;
      found = &identities_[it->second];
      break;
    }
    if (found == nullptr && !credentials.certificate_names.empty()) {
      return Unauthenticated("the client certificate names nobody whom this server knows",
                             "UNKNOWN_IDENTITY");
    }
  }
  if (found == nullptr) {
    return Unauthenticated("the call has neither a bearer token nor a client certificate",
                           "NO_IDENTITY");
  }
  if (now >= found->expires) {
    return Unauthenticated(
        absl::StrCat("identity '", found->caller.identity, "' expired on ",
                     absl::FormatTime("%Y-%m-%d", found->expires, absl::UTCTimeZone())),
        "IDENTITY_EXPIRED");
  }
  return found->caller;
}

const Tenant* TenantDirectory::Find(absl::string_view name) const {
  const auto it = tenants_.find(name);
  return it == tenants_.end() ? nullptr : &it->second;
}

}  // namespace npuc::auth
