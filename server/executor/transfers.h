#ifndef NPUC_SERVER_EXECUTOR_TRANSFERS_H_
#define NPUC_SERVER_EXECUTOR_TRANSFERS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/executor/ports.h"
#include "server/jobs/job.h"

namespace npuc {

// What clients may do with blobs and artifacts, with the service's error reasons (proto/API.md).
// Thread-safe. All that the constructors take must outlive the objects.

inline constexpr size_t kMaxChunkBytes = 1 << 20;
inline constexpr size_t kMaxDigestsPerCall = 1000;

class Uploads {
 public:
  explicit Uploads(InputStore* inputs) : inputs_(inputs) {}

  // `tenant`: whose blobs. One tenant cannot see, fill or learn of another's.

  // In the given order, each once.
  absl::StatusOr<std::vector<BlobDigest>> FindMissing(const std::string& tenant,
                                                      const std::vector<BlobDigest>& digests);
  // A blob that was never begun is at 0.
  absl::StatusOr<UploadState> Query(const std::string& tenant, const BlobDigest& digest);
  // Begins an upload or joins the one under way.
  absl::StatusOr<UploadState> Begin(const std::string& tenant, const BlobDigest& digest);
  // Stores one chunk, and commits the blob with the last one. Bytes that are there already are
  // skipped.
  absl::StatusOr<UploadState> Append(const std::string& tenant, const BlobDigest& digest,
                                     int64_t offset, absl::string_view bytes);

 private:
  absl::StatusOr<UploadState> CommitIfWhole(const std::string& tenant, const BlobDigest& digest,
                                            UploadState state);

  InputStore* const inputs_;
};

class Downloads {
 public:
  explicit Downloads(ResultCache* cache) : cache_(cache) {}

  // A reader of one artifact of a job; every chunk it gives was compared with its digest. `offset`
  // is only checked here.
  absl::StatusOr<std::unique_ptr<ArtifactReader>> Open(const Job& job,
                                                       absl::string_view artifact_name,
                                                       int64_t offset);
  // The next chunk from offset; empty at the end.
  static absl::StatusOr<std::string> Read(ArtifactReader& reader, uint64_t offset);

 private:
  ResultCache* const cache_;
};

}  // namespace npuc

#endif  // NPUC_SERVER_EXECUTOR_TRANSFERS_H_
