#include "server/pg/pg_audit.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler_core/base/status.h"

namespace npuc::pg {
namespace {

using log::AuditEntry;
using log::AuditPage;
using log::AuditQuery;

// A page looks at no more entries than this; at so many with one statement.
constexpr size_t kMaxSeenPerPage = 20000;
constexpr size_t kEntriesPerRead = 1000;
constexpr int64_t kEntriesPerPrune = 5000;
constexpr int kMaxPrunes = 20;

// Columns of texts, in the order of find_audit.
constexpr std::string AuditEntry::*kTexts[] = {
    &AuditEntry::node, &AuditEntry::action, &AuditEntry::identity, &AuditEntry::tenant,
    &AuditEntry::peer, &AuditEntry::object, &AuditEntry::result,   &AuditEntry::detail};

}  // namespace

PgAudit::PgAudit(Sessions* sessions) : sessions_(sessions), life_(RandomLife()) {}

absl::Status PgAudit::Append(uint64_t first_number, absl::Span<const AuditEntry> entries) {
  IntArray times, left_out;
  std::array<TextArray, std::size(kTexts)> texts;
  for (const AuditEntry& entry : entries) {
    times.push_back(ToMicros(entry.time));
    left_out.push_back(static_cast<int64_t>(entry.left_out));
    for (size_t i = 0; i < texts.size(); ++i) texts[i].push_back(entry.*kTexts[i]);
  }
  std::vector<Value> parameters = {life_, static_cast<int64_t>(first_number), times, left_out};
  for (TextArray& column : texts) parameters.emplace_back(std::move(column));
  return sessions_
      ->Run(Sessions::Repeat::kRepeatable,
            "SELECT write_audit($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)", parameters)
      .status();
}

absl::StatusOr<AuditPage> PgAudit::Find(const AuditQuery& query) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  int64_t before_us = kMax, before_id = kMax;
  if (!query.page_token.empty()) {
    const std::vector<std::string> parts = absl::StrSplit(query.page_token, '-');
    if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &before_us) ||
        !absl::SimpleAtoi(parts[1], &before_id)) {
      return absl::InvalidArgumentError("the page token is none of the audit's");
    }
  }
  AuditPage page;
  size_t wanted = std::min(query.limit + 1, kEntriesPerRead);
  for (size_t seen = 0;;) {
    ASSIGN_OR_RETURN(
        const Rows rows,
        sessions_->Read("SELECT at_us, id, is_wanted, left_out, node, action, identity, tenant, "
                        "peer, object, result, detail "
                        "FROM find_audit($1, $2, $3, $4, $5, $6)",
                        {ToMicros(query.from), ToMicros(query.to), before_us, before_id,
                         static_cast<int64_t>(wanted),
                         TextArray{query.node, query.action, query.identity, query.tenant,
                                   query.object, query.result}}));
    for (size_t row = 0; row < rows.size(); ++row) {
      if (page.entries.size() == query.limit || seen == kMaxSeenPerPage) {
        page.next_page_token = absl::StrCat(before_us, "-", before_id);
        return page;
      }
      ++seen;
      before_us = rows.Int(row, 0);
      before_id = rows.Int(row, 1);
      if (!rows.Bool(row, 2)) continue;
      AuditEntry& entry = page.entries.emplace_back();
      entry.time = absl::FromUnixMicros(before_us);
      entry.left_out = static_cast<uint64_t>(rows.Int(row, 3));
      int column = 4;
      for (const auto text : kTexts) entry.*text = std::string(rows.Text(row, column++));
    }
    if (rows.size() < wanted) return page;
    wanted = kEntriesPerRead;
  }
}

absl::Status PgAudit::Prune(Sessions& sessions, int64_t max_entries) {
  for (int i = 0; i < kMaxPrunes; ++i) {
    ASSIGN_OR_RETURN(const Rows rows,
                     sessions.Run(Sessions::Repeat::kRepeatable, "SELECT prune_audit($1, $2, $3)",
                                  {kMaxAuditDays, max_entries, kEntriesPerPrune}));
    if (rows.Int(0, 0) < kEntriesPerPrune) break;
  }
  return absl::OkStatus();
}

}  // namespace npuc::pg
