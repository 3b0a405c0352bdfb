#ifndef NPUC_SERVER_JOB_HOME_H_
#define NPUC_SERVER_JOB_HOME_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cache/artifact_cache.h"
#include "cache/blob_store.h"
#include "server/base/kept_text.h"
#include "server/base/usage_store.h"
#include "server/daemon_context.h"
#include "server/jobs/job_board.h"
#include "server/jobs/job_store.h"
#include "server/jobs/rocksdb_job_store.h"
#include "server/log/audit_store.h"
#include "server/stores.h"

namespace npuc::daemon {

// A lease that its holder did not renew for so long is lost.
inline constexpr absl::Duration kLeaseTtl = absl::Minutes(5);

// Where the daemon's jobs are kept, and what decides between them: the disk and the memory of this
// machine, or a PostgreSQL that several daemons share (--cluster). Everything above it is the same.
// The calls are thread-safe.
class JobHome {
 public:
  virtual ~JobHome() = default;

  virtual jobs::JobStore* store() = 0;
  // That store where it is a database of this machine, which a backup copies; else null.
  virtual jobs::RocksDbJobStore* local_store() = 0;
  virtual jobs::JobBoard* board() = 0;
  virtual cache::InputStore* inputs() = 0;
  virtual cache::ResultCache* results() = 0;

  // This daemon's name on the board.
  virtual const std::string& name() const = 0;
  // The clocks of all times of jobs, and of how long things took.
  virtual absl::Time Now() const = 0;
  virtual absl::Time Steady() const = 0;

  // The level of the things that all daemons can read (server/base/features.h).
  virtual int64_t FeatureLevel() const = 0;

  // A synced write: OK where the home can be written.
  virtual absl::Status Probe() = 0;
  using Counts = jobs::JobBoard::Counts;
  virtual std::map<std::string, Counts> CountsByTenant() const = 0;
  // The tenants file has changed.
  virtual void RefreshPolicies() = 0;
  // While it is paused this daemon starts no job, but for its own canaries.
  virtual void SetPaused(bool paused) = 0;

  // Opens the text of an operator's decisions by name; all daemons share it.
  virtual std::unique_ptr<base::KeptText> OpenText(const std::string& name) = 0;

  // Opens the sums of what tenants used; a book has one for itself.
  virtual std::unique_ptr<base::UsageStore> OpenUsage() = 0;

  // The audit that all daemons share; null: each has its own files alone.
  virtual std::unique_ptr<log::AuditStore> OpenAudit() = 0;

  // The changes that other daemons make of jobs; there may be none.
  struct ChangeListener {
    std::function<void(const std::vector<jobs::Job>& jobs)> on_jobs;  // as they are now
    std::function<void()> on_gap;      // any job may be another than before
    std::function<void()> on_failure;  // changes cannot be read
  };
  // The listener gets each change from this call on, so it is called before jobs are read.
  virtual absl::Status Follow(ChangeListener listener) = 0;
  // This daemon starts no job any more; other daemons do.
  virtual void Drain() = 0;
  // The end: nothing of this daemon runs any more.
  virtual void Leave() = 0;
};

// On this machine. `context` and `stores` must outlive it.
absl::StatusOr<std::unique_ptr<JobHome>> OpenLocalHome(const DaemonContext& context,
                                                       Stores& stores);

// In the PostgreSQL of --cluster: as one daemon among several. FAILED_PRECONDITION: its tables are
// missing, too old or too new, or a setting of the server would lose jobs. UNAVAILABLE: it cannot
// be reached.
absl::StatusOr<std::unique_ptr<JobHome>> OpenClusterHome(const DaemonContext& context,
                                                         Stores& stores);

// npucd --migrate: makes or upgrades the tables.
absl::Status MigrateCluster(const Flags& flags);

}  // namespace npuc::daemon

#endif  // NPUC_SERVER_JOB_HOME_H_
