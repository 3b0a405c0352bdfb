#ifndef NPUC_SERVER_PG_PG_USAGE_H_
#define NPUC_SERVER_PG_PG_USAGE_H_

#include <cstdint>

#include "server/base/usage_store.h"
#include "server/pg/sessions.h"

namespace npuc::pg {

// The use of the service, in PostgreSQL. A book writes its own sums, whole, under a number that no
// other one has, so a write may be repeated. The sums of a day that is over are added together
// some days later (Fold); sums that come later still are lost.
class PgUsage : public base::UsageStore {
 public:
  // `sessions` must outlive it.
  explicit PgUsage(Sessions* sessions);
  absl::StatusOr<base::UsageDays> Read() override { return base::UsageDays(); }
  absl::Status Write(const base::UsageDays& days, const base::UsageDays& changed) override;
  absl::StatusOr<base::UsageDays> ReadOthers(const base::UsageFilter& filter) override;

  // Any node, now and then: adds together the sums of days that are over, and removes those of more
  // than base::kMaxUsageDays ago.
  static absl::Status Fold(Sessions& sessions);

 private:
  Sessions* const sessions_;
  const int64_t life_;
};

}  // namespace npuc::pg

#endif  // NPUC_SERVER_PG_PG_USAGE_H_
