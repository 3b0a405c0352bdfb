#ifndef NPUC_SERVER_STORES_H_
#define NPUC_SERVER_STORES_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cache/artifact_cache.h"
#include "cache/blob_store.h"
#include "server/daemon_context.h"
#include "server/jobs/rocksdb_job_store.h"

namespace npuc::daemon {

// The data on the daemon's disk: uploads, results, jobs. The calls are thread-safe.
struct Stores {
  // All of them, or an error that says which one and what to do.
  static absl::StatusOr<std::unique_ptr<Stores>> Open(const DaemonContext& context);

  // A synced write to each database: whether they can be written.
  absl::Status Probe() const;
  void Sample(observe::Metrics& metrics) const;

  std::unique_ptr<cache::BlobStore> blobs;
  std::unique_ptr<cache::ArtifactCache> artifacts;
  std::unique_ptr<jobs::RocksDbJobStore> jobs;
};

}  // namespace npuc::daemon

#endif  // NPUC_SERVER_STORES_H_
