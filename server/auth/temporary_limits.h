#ifndef NPUC_SERVER_AUTH_TEMPORARY_LIMITS_H_
#define NPUC_SERVER_AUTH_TEMPORARY_LIMITS_H_

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "compiler_core/base/mutex.h"
#include "server/auth/tenants.h"
#include "server/base/kept_state.h"

namespace npuc::auth {

// Weights and limits of tenants that an operator set for a time, in place of those of the tenants
// file. Kept in a text, so that they hold over restarts; they end by the clock. Thread-safe.
class TemporaryLimits {
 public:
  struct Entry {
    std::optional<int32_t> weight = std::nullopt;
    TenantQuota quota = {};
    absl::Time end = absl::InfinitePast();
    std::string by = {};  // identity
    std::string reason = {};

    // False: all is as the file has it.
    bool sets_any() const;
  };

  // None, until Attach.
  explicit TemporaryLimits(std::function<absl::Time()> now) : now_(std::move(now)) {}

  // Takes what the text has, which must outlive this. FAILED_PRECONDITION: it is damaged.
  absl::Status Attach(base::KeptText* text);
  // Takes what another node has set, and forgets what has ended. True: something is another.
  absl::StatusOr<bool> Refresh();

  // Replaces what was set before; an entry that sets nothing goes back to the file. An error: it
  // cannot be kept, and all is as it was. RESOURCE_EXHAUSTED: kMaxEntries tenants have some.
  static constexpr size_t kMaxEntries = 1000;
  absl::Status Set(const std::string& tenant, Entry entry);
  // nullopt: the file holds.
  std::optional<Entry> Find(absl::string_view tenant) const;
  // The tenant as it is now.
  Tenant Apply(Tenant tenant) const;

 private:
  using Entries = std::map<std::string, Entry, std::less<>>;

  static std::string Format(const Entries& entries);
  static absl::StatusOr<Entries> Parse(absl::string_view text);

  const std::function<absl::Time()> now_;
  mutable Mutex mutex_;
  base::KeptState<Entries> entries_ NPUC_GUARDED_BY(mutex_){Format, Parse};
};

}  // namespace npuc::auth

#endif  // NPUC_SERVER_AUTH_TEMPORARY_LIMITS_H_
