#ifndef NPUC_SERVER_PG_PG_AUDIT_H_
#define NPUC_SERVER_PG_PG_AUDIT_H_

#include <cstdint>

#include "server/log/audit_store.h"
#include "server/pg/sessions.h"

namespace npuc::pg {

// Entries go that are older, and the oldest beyond so many.
inline constexpr int64_t kMaxAuditDays = 400;
inline constexpr int64_t kMaxAuditEntries = 2'000'000;

// The audit of all nodes, in PostgreSQL. Thread-safe. UNAVAILABLE: PostgreSQL is away.
class PgAudit : public log::AuditStore {
 public:
  // `sessions` must outlive it.
  explicit PgAudit(Sessions* sessions);
  absl::Status Append(uint64_t first_number, absl::Span<const log::AuditEntry> entries) override;
  absl::StatusOr<log::AuditPage> Find(const log::AuditQuery& query) override;

  // Any node, now and then: removes the oldest entries beyond the bounds.
  static absl::Status Prune(Sessions& sessions, int64_t max_entries = kMaxAuditEntries);

 private:
  Sessions* const sessions_;
  const int64_t life_;  // unlike that of any other process
};

}  // namespace npuc::pg

#endif  // NPUC_SERVER_PG_PG_AUDIT_H_
