#ifndef NPUC_SERVER_AUTH_TENANTS_H_
#define NPUC_SERVER_AUTH_TENANTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "compiler_core/base/diagnostic.h"
#include "server/auth/caller.h"

namespace npuc::auth {

// What one tenant may take of the service; unset: no bound of its own beside the daemon's.
struct TenantQuota {
  std::optional<int64_t> queued_jobs = std::nullopt;
  std::optional<int64_t> running_jobs = std::nullopt;
  // Model and side inputs of one job.
  std::optional<int64_t> job_bytes = std::nullopt;
  // Uploaded blobs, those under way among them.
  std::optional<int64_t> stored_bytes = std::nullopt;
  // Results that the cache keeps; the oldest go.
  std::optional<int64_t> result_bytes = std::nullopt;
  // Uploaded bytes a second, at least kMinUploadRate.
  std::optional<int64_t> upload_rate = std::nullopt;
  // Calls a second, by gRPC and HTTP together.
  std::optional<int64_t> call_rate = std::nullopt;
};

// Lower, and a client's patience would end before a chunk of the largest size is let in.
inline constexpr int64_t kMinUploadRate = 64 << 10;
// The longest name of a tenant or of an identity.
inline constexpr size_t kMaxTenantNameChars = 63;
// The most that weights, numbers and sizes may be.
inline constexpr int32_t kMaxTenantWeight = 1000;
inline constexpr int64_t kMaxTenantCount = 100'000'000;
inline constexpr int64_t kMaxTenantBytes = int64_t{1} << 50;

struct Tenant {
  std::string name;
  int32_t weight = 1;  // share of the workers beside other tenants: 1 to 1000
  TenantQuota quota = {};
  // Takes results of, and gives its own to, the other tenants that say so, where the daemon allows
  // it (--shared-cache).
  bool shared_cache = false;
};

// The tenants file, read: who is known, which tenant each belongs to, and what it may do.
// Immutable; thread-safe.
//
//   format: 1
//   tenants:
//     audio:
//       weight: 2
//       quota: {queued_jobs: 1000, running_jobs: 4, job_bytes: 64MiB, stored_bytes: 10GiB,
//               result_bytes: 5GiB, upload_rate: 20MiB, call_rate: 50}
//       shared_cache: true
//       identities:
//         ci:
//           token_sha256: [64 hexadecimal digits, ...]
//           certificate: [spiffe://farm/audio-ci]
//           oidc: [ci@farm.example]
//           rights: [submit, read, cancel]
//           expires: 2027-01-31
//
// Names of tenants and identities: 1 to 63 of a-z, 0-9, '-', '_', beginning with a letter. An
// identity has tokens, certificate names, values of the provider's claim (npucd --oidc-claim), or
// several of these. Tokens are stored as SHA-256 of a random text of
// at least 32 characters (`npucd --new-token` makes one), so that a stolen file gives no token away
// and a plain hash suffices.
class TenantDirectory {
 public:
  // All problems of the text go to `diagnostics`, with line and column.
  static absl::StatusOr<TenantDirectory> Parse(absl::string_view text, absl::string_view name,
                                               Diagnostics& diagnostics);

  // Errors, each UNAUTHENTICATED with a reason: NO_IDENTITY (no credentials), UNKNOWN_IDENTITY,
  // IDENTITY_EXPIRED, SESSION_ENDED. A token counts before a session, a session before a
  // certificate; one that is wrong is not helped by another that is right.
  absl::StatusOr<Caller> Authenticate(const Credentials& credentials, absl::Time now) const;

  // Null where there is none.
  const Tenant* Find(absl::string_view name) const;
  const std::map<std::string, Tenant, std::less<>>& tenants() const { return tenants_; }
  bool has_certificates() const { return !by_certificate_.empty(); }

  // The value, among those of a claim, that an identity has. UNAUTHENTICATED: UNKNOWN_IDENTITY,
  // with the line that an operator adds; AMBIGUOUS_IDENTITY: the values are of several identities.
  absl::StatusOr<std::string> FindClaimValue(absl::string_view claim,
                                             const std::vector<std::string>& values) const;

  // True: the file has the identity, or the token.
  bool HasIdentity(absl::string_view tenant, absl::string_view identity) const {
    return FindIdentity(tenant, identity) != nullptr;
  }
  bool HasToken(absl::string_view token_sha256) const {
    return by_token_sha256_.contains(token_sha256);
  }
  // The SHA-256 of each token that the file has for the identity.
  std::vector<std::string> TokensOf(absl::string_view tenant, absl::string_view identity) const;
  // The identity as a caller, for a token that stands elsewhere. UNAUTHENTICATED: the file does
  // not have it (any more), or it has expired.
  absl::StatusOr<Caller> CallerOf(absl::string_view tenant, absl::string_view identity,
                                  absl::Time now) const;

 private:
  friend class TenantsReader;

  struct Identity {
    Caller caller;
    absl::Time expires = absl::InfiniteFuture();
  };

  // Null where nobody has it.
  const Identity* FindIdentity(const SignIn& sign_in) const;
  // The proof that a call brings, and the identity, which is never null.
  struct Proof {
    SignIn sign_in;
    const Identity* identity = nullptr;
  };
  absl::StatusOr<Proof> ProofOf(const Credentials& credentials) const;
  // Null where there is none.
  const Identity* FindIdentity(absl::string_view tenant, absl::string_view identity) const;
  static absl::StatusOr<Caller> CheckExpiry(const Identity& identity, absl::Time now);

  std::map<std::string, Tenant, std::less<>> tenants_;
  std::vector<Identity> identities_;
  // Indices of identities_. Looking a token up by its digest tells a clock nothing about tokens.
  std::map<std::string, size_t, std::less<>> by_token_sha256_;
  std::map<std::string, size_t, std::less<>> by_certificate_;
  std::map<std::string, size_t, std::less<>> by_claim_value_;
};

// The shortest token that Authenticate looks up.
inline constexpr size_t kMinTokenChars = 32;
inline constexpr size_t kMaxTokenChars = 1024;

}  // namespace npuc::auth

#endif  // NPUC_SERVER_AUTH_TENANTS_H_
