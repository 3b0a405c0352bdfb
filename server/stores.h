#ifndef NPUC_SERVER_STORES_H_
#define NPUC_SERVER_STORES_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cache/artifact_cache.h"
#include "cache/blob_store.h"
#include "server/daemon_context.h"

namespace npuc::daemon {

// The uploads and results on the daemon's disk. The calls are thread-safe.
struct Stores {
  // Both, or an error that says which one and what to do.
  static absl::StatusOr<std::unique_ptr<Stores>> Open(const DaemonContext& context);

  // A synced write: whether they can be written.
  absl::Status Probe() const;
  void Sample(observe::Metrics& metrics) const;

  std::unique_ptr<cache::BlobStore> blobs;
  std::unique_ptr<cache::ArtifactCache> artifacts;
};

}  // namespace npuc::daemon

#endif  // NPUC_SERVER_STORES_H_
