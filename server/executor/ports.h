#ifndef NPUC_SERVER_EXECUTOR_PORTS_H_
#define NPUC_SERVER_EXECUTOR_PORTS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cache/artifact_cache.h"
#include "cache/blob_store.h"
#include "server/worker/worker_pool.h"

namespace npuc {

// What the executor needs of the stores and the worker pool, and no more: tests put fakes here, and
// ThreadSanitizer sees the executor without RocksDB. adapters.h has the real ones. Contracts are
// those of the functions of the same names in cache/ and server/worker/. All are thread-safe.

// A scope is a tenant's name: blobs and results are a tenant's own.

class InputStore {
 public:
  // A blob that stays while `hold` lives.
  struct Held {
    BlobInfo info;
    std::string path;
    std::shared_ptr<const void> hold;
  };

  virtual ~InputStore() = default;
  virtual absl::StatusOr<Held> Acquire(absl::string_view scope, absl::string_view sha256) = 0;
  virtual absl::StatusOr<std::vector<BlobDigest>> FindMissing(
      absl::string_view scope, absl::Span<const BlobDigest> digests) = 0;
  virtual absl::StatusOr<UploadState> BeginUpload(absl::string_view scope,
                                                  const BlobDigest& digest) = 0;
  virtual absl::StatusOr<UploadState> QueryUpload(absl::string_view scope,
                                                  const BlobDigest& digest) = 0;
  virtual absl::StatusOr<UploadState> Append(absl::string_view scope, const BlobDigest& digest,
                                             uint64_t offset, absl::string_view bytes) = 0;
  virtual absl::StatusOr<BlobInfo> Commit(absl::string_view scope, const BlobDigest& digest) = 0;
  virtual absl::Status Verify(absl::string_view scope, absl::string_view sha256) = 0;
};

class ResultCache {
 public:
  virtual ~ResultCache() = default;
  virtual absl::StatusOr<std::optional<CachedResult>> Lookup(const CacheKey& key) = 0;
  virtual absl::StatusOr<std::vector<ArtifactInfo>> Store(
      const CacheKey& key, absl::Span<const ArtifactView> artifacts, absl::string_view metadata,
      const ArtifactCache::Confirm& confirm) = 0;
  virtual absl::StatusOr<std::unique_ptr<ArtifactReader>> OpenArtifact(const CacheKey& key,
                                                                       absl::string_view name) = 0;
};

class WorkerRunner {
 public:
  virtual ~WorkerRunner() = default;
  virtual absl::StatusOr<WorkerOutcome> Run(const WorkerJob& job, WorkerEvents& events) = 0;
  virtual bool Cancel(absl::string_view run_id) = 0;
};

}  // namespace npuc

#endif  // NPUC_SERVER_EXECUTOR_PORTS_H_
