#ifndef NPUC_SERVER_AUTH_TENANT_RULES_H_
#define NPUC_SERVER_AUTH_TENANT_RULES_H_

#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/string_view.h"
#include "server/auth/authenticator.h"

namespace npuc::auth {

// The scope of results that tenants share. No tenant has this name: theirs begin with a letter.
inline constexpr char kSharedScope[] = "_shared";

struct TenantRulesOptions {
  // --tenant-blob-mib: for tenants whose quota does not say.
  uint64_t default_stored_bytes = 0;
  // --shared-cache: whether tenants may share results at all.
  bool shared_cache = false;
};

// Shares and limits of each tenant, by the tenants file as it is now and what an operator set for
// a time. A tenant that the file does not know (the one without a file, the daemon's own) has the
// defaults. Thread-safe.
class TenantRules {
 public:
  static constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

  // `authenticator` and `limits`, which may be null, must outlive this.
  TenantRules(const Authenticator* authenticator, TenantRulesOptions options,
              const TemporaryLimits* limits = nullptr)
      : authenticator_(authenticator), options_(options), limits_(limits) {}

  // With what an operator set for a time; those of unknown tenants are the defaults.
  Tenant Find(absl::string_view name) const;

  TenantQuota QuotaOf(absl::string_view tenant) const;
  // Share of the workers beside other tenants.
  int32_t WeightOf(absl::string_view tenant) const;
  // Uploaded blobs, those under way among them.
  uint64_t StoredBytesOf(absl::string_view tenant) const;
  // Results in a scope; the shared scope is nobody's, and has no quota.
  uint64_t ResultBytesOf(absl::string_view scope) const;
  // Where the tenant's results are kept: under its name, or in the shared scope where both the
  // tenant and the daemon want that.
  std::string ResultScopeOf(absl::string_view tenant) const;

 private:
  const Authenticator* const authenticator_;
  const TenantRulesOptions options_;
  const TemporaryLimits* const limits_;
};

}  // namespace npuc::auth

#endif  // NPUC_SERVER_AUTH_TENANT_RULES_H_
