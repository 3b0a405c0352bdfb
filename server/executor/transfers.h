#ifndef NPUC_SERVER_EXECUTOR_TRANSFERS_H_
#define NPUC_SERVER_EXECUTOR_TRANSFERS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cache/artifact_cache.h"
#include "cache/blob_store.h"
#include "server/auth/token_buckets.h"
#include "server/jobs/job.h"

namespace npuc::executor {

// What clients may do with blobs and artifacts, with the service's error reasons (proto/API.md).
// Thread-safe. All that the constructors take must outlive the objects.

inline constexpr size_t kMaxChunkBytes = 1 << 20;
inline constexpr size_t kMaxDigestsPerCall = 1000;

// What a tenant may upload, beside the limits of the store; unset: no bound.
struct UploadQuota {
  // For the model and side inputs of one job: a larger blob is of no use to any.
  std::optional<int64_t> job_bytes = std::nullopt;
  std::optional<int64_t> bytes_per_second = std::nullopt;
};

struct UploadsOptions {
  std::function<UploadQuota(absl::string_view tenant)> quota = nullptr;  // null: no bounds
  std::function<absl::Time()> steady_now = [] { return absl::Now(); };
};

class Uploads {
 public:
  explicit Uploads(cache::InputStore* inputs, UploadsOptions options = {})
      : inputs_(inputs), options_(std::move(options)), rates_(options_.steady_now) {}

  // `tenant`: whose blobs. One tenant cannot see, fill or learn of another's.

  // In the given order, each once.
  absl::StatusOr<std::vector<cache::BlobDigest>> FindMissing(
      const std::string& tenant, const std::vector<cache::BlobDigest>& digests);
  // A blob that was never begun is at 0.
  absl::StatusOr<cache::UploadState> Query(const std::string& tenant,
                                           const cache::BlobDigest& digest);
  // Begins an upload or joins the one under way. RESOURCE_EXHAUSTED (QUOTA_EXCEEDED): the blob is
  // over the tenant's job_bytes, its jobs and uploads under way leave no room for it in its
  // stored_bytes, or it has as many uploads under way as it may.
  absl::StatusOr<cache::UploadState> Begin(const std::string& tenant,
                                           const cache::BlobDigest& digest);
  // Stores one chunk, and commits the blob with the last one. Bytes that are there already are
  // skipped. RESOURCE_EXHAUSTED (RATE_EXCEEDED, with the time to wait): the tenant uploads faster
  // than it may, on the average of kRateBurstSeconds.
  static constexpr int64_t kRateBurstSeconds = 4;
  absl::StatusOr<cache::UploadState> Append(const std::string& tenant,
                                            const cache::BlobDigest& digest, int64_t offset,
                                            absl::string_view bytes);

 private:
  UploadQuota QuotaOf(absl::string_view tenant) const {
    return options_.quota == nullptr ? UploadQuota{} : options_.quota(tenant);
  }
  absl::Status CheckRate(const std::string& tenant, size_t bytes);
  // What the store refused, as the client is told it.
  absl::Status UploadError(const std::string& tenant, const cache::BlobDigest& digest,
                           const absl::Status& status);
  absl::StatusOr<cache::UploadState> CommitIfWhole(const std::string& tenant,
                                                   const cache::BlobDigest& digest,
                                                   cache::UploadState state);

  cache::InputStore* const inputs_;
  const UploadsOptions options_;
  auth::TokenBuckets rates_;
};

class Downloads {
 public:
  // Makes a job's result again (JobRunner::Remake).
  using Remake = std::function<absl::Status(const jobs::Job& job)>;

  explicit Downloads(cache::ResultCache* cache, Remake remake = nullptr)
      : cache_(cache), remake_(std::move(remake)) {}

  // A reader of one artifact of a job; every chunk it gives was compared with its digest. `offset`
  // is only checked here. A result that the cache has lost is made again, where that is possible,
  // while the call waits; DATA_LOSS (ARTIFACT_LOST) where it is not. RESOURCE_EXHAUSTED
  // (SERVER_BUSY): another result is being made again.
  absl::StatusOr<std::unique_ptr<cache::ArtifactReader>> Open(const jobs::Job& job,
                                                              absl::string_view artifact_name,
                                                              int64_t offset);
  // The next chunk from offset; empty at the end.
  static absl::StatusOr<std::string> Read(cache::ArtifactReader& reader, uint64_t offset);

 private:
  cache::ResultCache* const cache_;
  const Remake remake_;
};

}  // namespace npuc::executor

#endif  // NPUC_SERVER_EXECUTOR_TRANSFERS_H_
