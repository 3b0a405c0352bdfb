#include "server/pg/pg_usage.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler_core/base/status.h"

namespace npuc::pg {

PgUsage::PgUsage(Sessions* sessions) : sessions_(sessions), life_(RandomLife()) {}

absl::Status PgUsage::Write(const base::UsageDays& /*days*/, const base::UsageDays& changed) {
  TextArray days;
  TextArray tenants;
  IntArray sums;  // row by row
  for (const auto& [day, of_day] : changed) {
    for (const auto& [tenant, usage] : of_day) {
      days.push_back(day);
      tenants.push_back(tenant);
      for (const auto column : base::kUsageColumns) sums.push_back(usage.*column);
    }
  }
  return sessions_
      ->Run(Sessions::Repeat::kRepeatable, "SELECT write_usage($1, $2, $3, $4, $5)",
            {life_, days, tenants, sums, static_cast<int64_t>(base::kUsageColumns.size())})
      .status();
}

absl::StatusOr<base::UsageDays> PgUsage::ReadOthers(const base::UsageFilter& filter) {
  ASSIGN_OR_RETURN(
      const Rows rows,
      sessions_->Read("SELECT day, tenant, sums FROM usage WHERE life <> $1 AND day >= $2 AND "
                      "($3 = '' OR day <= $3) AND ($4 = '' OR tenant = $4)",
                      {life_, absl::string_view(filter.from_day), absl::string_view(filter.to_day),
                       absl::string_view(filter.tenant)}));
  base::UsageDays days;
  for (size_t row = 0; row < rows.size(); ++row) {
    // A node of a newer version may have written more columns.
    const std::vector<int64_t> sums = rows.Ints(row, 2);
    base::Usage usage;
    for (size_t i = 0; i < base::kUsageColumns.size() && i < sums.size(); ++i) {
      usage.*base::kUsageColumns[i] = sums[i];
    }
    days[std::string(rows.Text(row, 0))][std::string(rows.Text(row, 1))] += usage;
  }
  return days;
}

absl::Status PgUsage::Fold(Sessions& sessions) {
  return sessions
      .Run(Sessions::Repeat::kRepeatable, "SELECT fold_usage($1)",
           {static_cast<int64_t>(base::kMaxUsageDays)})
      .status();
}

}  // namespace npuc::pg
