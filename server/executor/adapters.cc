#include "server/executor/adapters.h"

#include "compiler_core/base/status.h"

namespace npuc {
namespace {

class BlobStoreInputs : public InputStore {
 public:
  explicit BlobStoreInputs(BlobStore* store) : store_(store) {}

  absl::StatusOr<Held> Acquire(absl::string_view scope, absl::string_view sha256) override {
    ASSIGN_OR_RETURN(BlobRef ref, store_->Acquire(scope, sha256));
    auto hold = std::make_shared<const BlobRef>(std::move(ref));
    return Held{.info = hold->info(), .path = hold->path(), .hold = hold};
  }
  absl::StatusOr<std::vector<BlobDigest>> FindMissing(
      absl::string_view scope, absl::Span<const BlobDigest> digests) override {
    return store_->FindMissing(scope, digests);
  }
  absl::StatusOr<UploadState> BeginUpload(absl::string_view scope,
                                          const BlobDigest& digest) override {
    return store_->BeginUpload(scope, digest);
  }
  absl::StatusOr<UploadState> QueryUpload(absl::string_view scope,
                                          const BlobDigest& digest) override {
    return store_->QueryUpload(scope, digest);
  }
  absl::StatusOr<UploadState> Append(absl::string_view scope, const BlobDigest& digest,
                                     uint64_t offset, absl::string_view bytes) override {
    return store_->Append(scope, digest, offset, bytes);
  }
  absl::StatusOr<BlobInfo> Commit(absl::string_view scope, const BlobDigest& digest) override {
    return store_->Commit(scope, digest);
  }
  absl::Status Verify(absl::string_view scope, absl::string_view sha256) override {
    return store_->Verify(scope, sha256);
  }

 private:
  BlobStore* const store_;
};

class ArtifactCacheResults : public ResultCache {
 public:
  explicit ArtifactCacheResults(ArtifactCache* cache) : cache_(cache) {}

  absl::StatusOr<std::optional<CachedResult>> Lookup(const CacheKey& key) override {
    return cache_->Lookup(key);
  }
  absl::StatusOr<std::vector<ArtifactInfo>> Store(const CacheKey& key,
                                                  absl::Span<const ArtifactView> artifacts,
                                                  absl::string_view metadata,
                                                  const ArtifactCache::Confirm& confirm) override {
    return cache_->Store(key, artifacts, metadata, confirm);
  }
  absl::StatusOr<std::unique_ptr<ArtifactReader>> OpenArtifact(const CacheKey& key,
                                                               absl::string_view name) override {
    return cache_->OpenArtifact(key, name);
  }

 private:
  ArtifactCache* const cache_;
};

class PoolRunner : public WorkerRunner {
 public:
  explicit PoolRunner(WorkerPool* pool) : pool_(pool) {}

  absl::StatusOr<WorkerOutcome> Run(const WorkerJob& job, WorkerEvents& events) override {
    return pool_->Run(job, events);
  }
  bool Cancel(absl::string_view run_id) override { return pool_->Cancel(run_id); }

 private:
  WorkerPool* const pool_;
};

}  // namespace

std::unique_ptr<InputStore> AdaptBlobStore(BlobStore* store) {
  return std::make_unique<BlobStoreInputs>(store);
}
std::unique_ptr<ResultCache> AdaptArtifactCache(ArtifactCache* cache) {
  return std::make_unique<ArtifactCacheResults>(cache);
}
std::unique_ptr<WorkerRunner> AdaptWorkerPool(WorkerPool* pool) {
  return std::make_unique<PoolRunner>(pool);
}

}  // namespace npuc
