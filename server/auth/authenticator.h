#ifndef NPUC_SERVER_AUTH_AUTHENTICATOR_H_
#define NPUC_SERVER_AUTH_AUTHENTICATOR_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "compiler_core/base/mutex.h"
#include "server/auth/attempt_brake.h"
#include "server/auth/call_rates.h"
#include "server/auth/caller.h"
#include "server/auth/issued_tokens.h"
#include "server/auth/temporary_limits.h"
#include "server/auth/tenants.h"
#include "server/log/log.h"

namespace npuc::auth {

// Decisions of an operator beside the tenants file; null: none. Both must outlive the
// authenticator.
struct OperatorDecisions {
  const IssuedTokens* tokens = nullptr;
  const TemporaryLimits* limits = nullptr;
};

// Tells who calls, by the tenants file and what an operator decided beside it. Thread-safe.
class Authenticator {
 public:
  using Now = std::function<absl::Time()>;

  // For --insecure: everybody is `local`, of tenant `default`, with every right.
  // address_call_rate: calls a second of each client address; 0: no bound.
  static std::unique_ptr<Authenticator> Everybody(int64_t address_call_rate = 0);
  // By the file, which Reload reads again. Errors: NOT_FOUND and the like for a file that cannot be
  // read, INVALID_ARGUMENT with every problem of its text.
  // `log`, which must outlive this, has wrong tokens, rarely; may be null.
  static absl::StatusOr<std::unique_ptr<Authenticator>> FromFile(const std::string& path, Now now,
                                                                 const log::Logger* log = nullptr,
                                                                 int64_t address_call_rate = 0,
                                                                 OperatorDecisions decisions = {});

  // UNAUTHENTICATED, or who it is. RESOURCE_EXHAUSTED (TOO_MANY_ATTEMPTS): a wrong token, after
  // many others from the same address; or RATE_EXCEEDED: too many calls of the address or the
  // tenant. Identities with the right `admin` are not counted, so that an operator always can act.
  absl::StatusOr<Caller> Authenticate(const Credentials& credentials) const;

  // Reads the file again; true where it has changed and holds from now on, for calls that begin
  // later. Where it cannot be read or is wrong, the old one stays in force.
  absl::StatusOr<bool> Reload();

  // True where calls need an identity; false for Everybody().
  bool needs_identity() const { return !path_.empty(); }

  // The tenants now in force; never null. A caller keeps what it got.
  std::shared_ptr<const TenantDirectory> directory() const;

 private:
  Authenticator(std::string path, Now now, const log::Logger* log, int64_t address_call_rate,
                OperatorDecisions decisions)
      : path_(std::move(path)),
        now_(std::move(now)),
        log_(log),
        decisions_(decisions),
        rates_(address_call_rate) {}
  absl::StatusOr<Caller> FindCaller(const Credentials& credentials) const;
  absl::StatusOr<Caller> Identify(const Credentials& credentials) const;
  absl::Status OnWrongToken(const Credentials& credentials, const absl::Status& status) const;

  const std::string path_;  // empty: everybody
  const Now now_;
  const log::Logger* const log_;
  const OperatorDecisions decisions_;
  mutable AttemptBrake brake_;
  mutable CallRates rates_;
  mutable Mutex mutex_;
  std::string text_ NPUC_GUARDED_BY(mutex_);
  std::shared_ptr<const TenantDirectory> directory_ NPUC_GUARDED_BY(mutex_);
};

inline constexpr char kLocalIdentity[] = "local";
inline constexpr char kLocalTenant[] = "default";

// The token of an Authorization header's value; one that says nothing is a wrong token, not none.
std::string TokenOfHeader(absl::string_view authorization);

// 256 random bits as 43 characters of base64url. From the kernel.
std::string NewToken();

}  // namespace npuc::auth

#endif  // NPUC_SERVER_AUTH_AUTHENTICATOR_H_
