#include "server/pg/janitor.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"

namespace npuc::pg {
namespace {

// For each node. That of Step is somewhat longer.
constexpr absl::Duration kSnapshotPeriod = absl::Milliseconds(900);
constexpr absl::Duration kRaisePeriod = absl::Seconds(1);
// To raise the floors steps over all entries that cannot go; it takes a small part of the time.
constexpr int kRaisePause = 20;
constexpr absl::Duration kRaiseLimit = absl::Seconds(30);
constexpr absl::Duration kCleanPeriod = absl::Seconds(5);
constexpr absl::Duration kCleanPause = absl::Seconds(10);  // of one table
constexpr absl::Duration kCleanLimit = absl::Minutes(10);
constexpr int kLivePerDead = 10;
// A table that has changed more than this, and than it has rows, has other statistics now. The
// plans for an empty queue read all of a full one.
constexpr int64_t kChangedRows = 1000;
constexpr const char* kHotTables[] = {"change",    "claim", "flight", "job",    "job_input",
                                      "job_queue", "lane",  "node",   "tenant", "tenant_clock"};

}  // namespace

absl::Status Janitor::Step() {
  const absl::Time now = options_.steady_now();
  bool looks = false;
  {
    const MutexLock lock(mutex_);
    looks = now >= next_look_;
  }
  if (looks) RETURN_IF_ERROR(LookAtSnapshots());
  bool raises = false, cleans = false;
  {
    const MutexLock lock(mutex_);
    raises = now - oldest_since_ >= options_.old_snapshot && now >= next_raise_;
    cleans = now >= next_clean_;
    if (cleans) next_clean_ = now + kCleanPeriod;
  }
  if (raises) RETURN_IF_ERROR(RaiseFloors());
  if (cleans) RETURN_IF_ERROR(Clean());
  return absl::OkStatus();
}

absl::Status Janitor::LookAtSnapshots() {
  // Replication slots, standbys and prepared transactions count, too. There is always a row: this
  // statement's own.
  ASSIGN_OR_RETURN(const Rows rows,
                   sessions_->Read("SELECT s.xid::text::bigint FROM ("
                                   "SELECT backend_xmin FROM pg_stat_activity UNION ALL "
                                   "SELECT xmin FROM pg_replication_slots UNION ALL "
                                   "SELECT transaction FROM pg_prepared_xacts) AS s (xid) "
                                   "WHERE s.xid IS NOT NULL ORDER BY age(s.xid) DESC LIMIT 1",
                                   {}));
  const absl::Time now = options_.steady_now();
  const MutexLock lock(mutex_);
  next_look_ = now + std::min(options_.nodes() * kSnapshotPeriod, options_.old_snapshot);
  if (rows.Int(0, 0) == oldest_) return absl::OkStatus();
  oldest_ = rows.Int(0, 0);
  oldest_since_ = now;
  return absl::OkStatus();
}

absl::Status Janitor::RaiseFloors() {
  const absl::Time begin = options_.steady_now();
  absl::Duration period;
  {
    const MutexLock lock(mutex_);
    period = std::max(kRaisePeriod, kRaisePause * raise_time_);
    next_raise_ = begin + period;
  }
  // The floors hold until the next time and somewhat longer.
  const absl::StatusOr<Rows> raised =
      sessions_->Run(Sessions::Repeat::kRepeatable, "SELECT raise_floors($1)",
                     {absl::ToInt64Microseconds(2 * period)}, kRaiseLimit);
  RETURN_IF_ERROR(raised.status());
  const MutexLock lock(mutex_);
  if (raised->Bool(0, 0)) raise_time_ = options_.steady_now() - begin;
  return absl::OkStatus();
}

absl::Status Janitor::Clean() {
  ASSIGN_OR_RETURN(
      const Rows rows,
      sessions_->Read("SELECT s.relname::text, s.n_dead_tup, s.n_live_tup, s.n_mod_since_analyze, "
                      "greatest(c.reltuples, 0)::bigint "
                      "FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid "
                      "WHERE s.schemaname = 'npuc' AND s.relname = ANY ($1)",
                      {TextArray(std::begin(kHotTables), std::end(kHotTables))}));
  const absl::Time now = options_.steady_now();
  std::vector<std::string> statements;
  {
    const MutexLock lock(mutex_);
    const bool is_held = now - oldest_since_ >= options_.old_snapshot;
    for (size_t row = 0; row < rows.size(); ++row) {
      const std::string table(rows.Text(row, 0));
      const int64_t dead = rows.Int(row, 1), live = rows.Int(row, 2), changed = rows.Int(row, 3);
      dead_rows_[table] = dead;
      // An old snapshot needs its rows, so they cannot be cleaned.
      const bool cleans = !is_held && dead > options_.dead_rows + live / kLivePerDead;
      // Rows that plans were made for: n_live_tup has new rows, too.
      const bool counts = changed > kChangedRows + rows.Int(row, 4);
      if (!cleans && !counts) continue;
      const auto [last, is_first] = cleaned_.try_emplace(table, now);
      if (!is_first && now - last->second < kCleanPause) continue;
      last->second = now;
      // Another node, or autovacuum, may be about it.
      statements.push_back(absl::StrCat(
          cleans ? "VACUUM (SKIP_LOCKED, INDEX_CLEANUP ON, ANALYZE) " : "ANALYZE (SKIP_LOCKED) ",
          table));
    }
  }
  for (const std::string& sql : statements) {
    RETURN_IF_ERROR(
        sessions_->Run(Sessions::Repeat::kRepeatable, sql.c_str(), {}, kCleanLimit).status());
  }
  return absl::OkStatus();
}

absl::Duration Janitor::OldestSnapshotAge() const {
  const absl::Time now = options_.steady_now();
  const MutexLock lock(mutex_);
  return std::max(absl::ZeroDuration(), now - oldest_since_);
}

std::map<std::string, int64_t> Janitor::DeadRows() const {
  const MutexLock lock(mutex_);
  return dead_rows_;
}

}  // namespace npuc::pg
