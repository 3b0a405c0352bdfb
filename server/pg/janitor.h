#ifndef NPUC_SERVER_PG_JANITOR_H_
#define NPUC_SERVER_PG_JANITOR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "compiler_core/base/mutex.h"
#include "server/pg/sessions.h"

namespace npuc::pg {

struct JanitorOptions {
  // A snapshot that is older keeps dead rows long enough to raise floors (board_functions.sql).
  absl::Duration old_snapshot = absl::Seconds(5);
  // A hot table with more dead rows than this, and a tenth of its live ones, is cleaned.
  int64_t dead_rows = 10000;
  // All nodes of the cluster look at its snapshots.
  std::function<int64_t()> nodes = [] { return 1; };
  std::function<absl::Time()> steady_now;
};

// Keeps the hot tables quick. An old snapshot anywhere on the server (a reader, a backup, a lost
// standby) keeps each version of each row: meanwhile it raises the floors from where claims look,
// and afterwards it cleans the tables at once, since autovacuum looks once a minute and may have
// other tables to see to. Every node has one; what one has done leaves nothing for the others.
//
// Thread-safe.
class Janitor {
 public:
  // `sessions` must outlive it.
  Janitor(Sessions* sessions, JanitorOptions options)
      : sessions_(sessions), options_(std::move(options)) {}

  // To be called about once a second. It looks at snapshots each time where there is one node, and
  // often enough to see an old one where there are many, since each look reads all sessions. It may
  // take as long as a VACUUM of a hot table.
  absl::Status Step();

  // For how long the oldest snapshot of the server has been the same, as seen by this node.
  absl::Duration OldestSnapshotAge() const;
  // By hot table, as PostgreSQL counts them.
  std::map<std::string, int64_t> DeadRows() const;

 private:
  absl::Status LookAtSnapshots();
  absl::Status RaiseFloors();
  absl::Status Clean();

  Sessions* const sessions_;
  const JanitorOptions options_;
  mutable Mutex mutex_;
  int64_t oldest_ NPUC_GUARDED_BY(mutex_) = -1;  // the oldest transaction that a snapshot may need
  absl::Time oldest_since_ NPUC_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  std::map<std::string, int64_t> dead_rows_ NPUC_GUARDED_BY(mutex_);
  std::map<std::string, absl::Time> cleaned_ NPUC_GUARDED_BY(mutex_);         // when, by table
  absl::Duration raise_time_ NPUC_GUARDED_BY(mutex_) = absl::ZeroDuration();  // of the last one
  absl::Time next_look_ NPUC_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Time next_raise_ NPUC_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Time next_clean_ NPUC_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace npuc::pg

#endif  // NPUC_SERVER_PG_JANITOR_H_
