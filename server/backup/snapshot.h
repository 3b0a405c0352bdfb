#ifndef NPUC_SERVER_BACKUP_SNAPSHOT_H_
#define NPUC_SERVER_BACKUP_SNAPSHOT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cache/artifact_cache.h"
#include "cache/blob_store.h"
#include "server/jobs/rocksdb_job_store.h"

namespace npuc::backup {

// The stores of a data directory, open in this process.
struct OpenStores {
  jobs::RocksDbJobStore* jobs = nullptr;  // null: they are in the PostgreSQL of a cluster
  cache::BlobStore* blobs = nullptr;
  cache::ArtifactCache* artifacts = nullptr;
};

// Folders and files of a data directory that are in a backup beside the stores: small ones, which
// are replaced whole or only grow.
inline constexpr const char* kSmallParts[] = {"usage",    "audit",  "dispatch_paused",
                                              "cordoned", "tokens", "tenant_limits"};

// Fills `folder`, which is made, with the state of the stores: hard links to files that do not
// change, copies of small ones. What the jobs in it need is in it: jobs come first, and what they
// name was stored before them. `folder` is on the data directory's file system.
absl::Status TakeSnapshot(const OpenStores& stores, const std::string& data_dir,
                          const std::string& folder);

// Between `npucd --backup` and the daemon on that data directory: files in <data>/snapshots, which
// only the daemon's user can write. NAME.request asks; the answer is the folder NAME, or the file
// NAME.failed with the reason. The one that asked removes the folder.
class SnapshotDesk {
 public:
  static constexpr absl::Duration kMaxAge = absl::Hours(24);
  static constexpr size_t kMaxRequests = 4;  // at one look

  SnapshotDesk(const OpenStores& stores, std::string data_dir)
      : stores_(stores), data_dir_(std::move(data_dir)) {}

  // Makes the folder where it is missing and removes what earlier requests left.
  absl::Status Open();

  struct Answer {
    std::string name;
    absl::Status status;
  };
  // Answers the requests that are there, and removes what nobody came for within kMaxAge. Called
  // every few seconds; holds up the thread for a flush of the databases.
  std::vector<Answer> Serve(absl::Time now);

 private:
  OpenStores stores_;
  std::string data_dir_;
};

// Names of the files above.
std::string SnapshotsFolder(const std::string& data_dir);
inline constexpr char kRequestEnding[] = ".request";
inline constexpr char kFailedEnding[] = ".failed";

}  // namespace npuc::backup

#endif  // NPUC_SERVER_BACKUP_SNAPSHOT_H_
