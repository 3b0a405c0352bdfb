#ifndef NPUC_CACHE_ARTIFACT_CACHE_H_
#define NPUC_CACHE_ARTIFACT_CACHE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cache/keys.h"

namespace npuc::cache {

struct ArtifactInfo {
  std::string name;
  uint64_t size_bytes = 0;
  std::string sha256;

  friend bool operator==(const ArtifactInfo&, const ArtifactInfo&) = default;
};

struct PackedArtifact;  // packed_artifact.h

// An artifact's bytes, for Store. The caller owns both for the call.
struct ArtifactView {
  absl::string_view name;  // IsValidArtifactName, unique in a result
  absl::string_view bytes;
  std::shared_ptr<const PackedArtifact> packed = nullptr;  // of these; null: Store makes it
};

// A result as it was stored. `metadata` is the caller's: listings, log, diagnostics, in its own
// encoding; the cache keeps the bytes.
struct CachedResult {
  std::vector<ArtifactInfo> artifacts;  // in Store's order
  std::string metadata;
  absl::Time stored_at;
};

struct ArtifactCacheOptions {
  std::string path;  // the database's folder; made where missing; one process at a time
  // Artifacts and metadata of all entries. Over it, whole entries are evicted, least recently used
  // first, until a tenth is free; so are those that nobody used for max_idle. An entry that is
  // being read stays.
  uint64_t max_bytes = uint64_t{16} << 30;
  absl::Duration max_idle = absl::Hours(24 * 60);
  // How long a full check of an entry by Lookup is good for: until then Lookup answers with what it
  // found. What is read is checked at each read.
  absl::Duration recheck = absl::Minutes(1);
  uint64_t max_entry_bytes = uint64_t{512} << 20;
  size_t max_artifacts = 64;
  size_t block_cache_bytes = size_t{64} << 20;
  // Store returns after the log is on the disk. Without it a power cut may lose the last entries
  // (whole ones; an entry is never half there).
  bool sync_writes = true;
  // Bytes that the results of one scope may have: over it, that scope's least recently used entries
  // go, until a tenth is free; the one just stored stays. Null: no bound but max_bytes.
  std::function<uint64_t(absl::string_view scope)> scope_limit = nullptr;
  std::function<absl::Time()> now = [] { return absl::Now(); };
};

// A verified reader of one artifact at the state of its opening: its entry is not evicted, and it
// goes on while the entry is overwritten. Not thread-safe; must not outlive the cache.
class ArtifactReader {
 public:
  virtual ~ArtifactReader() = default;
  virtual const ArtifactInfo& info() const = 0;
  // Up to max_bytes (at most ArtifactCache::kMaxReadBytes) from offset; empty at the end. Each
  // chunk is compared with its SHA-256 before any of it is returned. OUT_OF_RANGE: offset past the
  // end. DATA_LOSS: damaged; the entry has been removed and counted. Reads of whole
  // ArtifactCache::kChunkBytes at multiples of it are the cheapest.
  virtual absl::StatusOr<std::string> Read(uint64_t offset, size_t max_bytes) = 0;
};

// The part of ArtifactCache that jobs and downloads use; tests put fakes here.
class ResultCache {
 public:
  using Confirm = std::function<absl::Status()>;

  virtual ~ResultCache() = default;
  virtual absl::StatusOr<std::optional<CachedResult>> Lookup(const CacheKey& key) = 0;
  virtual absl::StatusOr<std::vector<ArtifactInfo>> Store(const CacheKey& key,
                                                          absl::Span<const ArtifactView> artifacts,
                                                          absl::string_view metadata,
                                                          const Confirm& confirm) = 0;
  virtual absl::StatusOr<std::unique_ptr<ArtifactReader>> OpenArtifact(const CacheKey& key,
                                                                       absl::string_view name) = 0;
  virtual absl::StatusOr<bool> Remove(const CacheKey& key) = 0;
};

// Results of compiles by CacheKey, in RocksDB (chunks of artifacts as integrated blobs). An entry
// is its manifest, its metadata and its artifacts: written as one batch, removed as one batch,
// evicted as one unit. Nothing is served whose SHA-256 is not the stored one; a damaged entry is a
// miss, is counted, and is removed. Damage at one entry leaves the others readable.
//
// Thread-safe.
// Errors, besides those below: UNAVAILABLE where the disk is full, which passes when it has
// kRoomToRecoverBytes again; INTERNAL for other I/O errors of the database.
class ArtifactCache : public ResultCache {
 public:
  static constexpr size_t kChunkBytes = 256 << 10;
  static constexpr size_t kMaxReadBytes = 4 << 20;
  static constexpr size_t kMaxMetadataBytes = 64 << 20;
  static constexpr size_t kRoomToRecoverBytes = 64 << 20;

  // FAILED_PRECONDITION: in use, or written by a newer format.
  static absl::StatusOr<std::unique_ptr<ArtifactCache>> Open(ArtifactCacheOptions options);
  ~ArtifactCache() override;
  ArtifactCache(const ArtifactCache&) = delete;
  ArtifactCache& operator=(const ArtifactCache&) = delete;

  // The result, or nullopt on a miss. kFull reads and hashes every artifact, unless that was done
  // within ArtifactCacheOptions::recheck, so that a job may be ended as SUCCEEDED on it; kManifest
  // hashes only manifest and metadata (Read checks the rest).
  enum class Check { kFull, kManifest };
  absl::StatusOr<std::optional<CachedResult>> Lookup(const CacheKey& key, Check check);
  absl::StatusOr<std::optional<CachedResult>> Lookup(const CacheKey& key) override;

  // Stores a result as ONE atomic write, over whatever the key had. Returns the manifest, digests
  // computed here. INVALID_ARGUMENT: bad or repeated name, too many artifacts. RESOURCE_EXHAUSTED:
  // over max_entry_bytes, max_bytes or kMaxMetadataBytes. `confirm` (may be null) is asked when all
  // is ready to be written; its error is returned, and nothing has changed.
  absl::StatusOr<std::vector<ArtifactInfo>> Store(const CacheKey& key,
                                                  absl::Span<const ArtifactView> artifacts,
                                                  absl::string_view metadata,
                                                  const Confirm& confirm = nullptr) override;

  // NOT_FOUND: no such entry, or no such artifact in it.
  absl::StatusOr<std::unique_ptr<ArtifactReader>> OpenArtifact(const CacheKey& key,
                                                               absl::string_view name) override;
  // OpenArtifact and one Read.
  absl::StatusOr<std::string> ReadArtifact(const CacheKey& key, absl::string_view name,
                                           uint64_t offset, size_t max_bytes);

  // False: there is none.
  absl::StatusOr<bool> Remove(const CacheKey& key) override;

  // Makes a database of the present state in `path`, which must not exist: hard links where the
  // file system allows.
  absl::Status Checkpoint(const std::string& path);
  // The keys of all entries, sorted.
  std::vector<CacheKey> Keys() const;

  // A synced write of nothing that matters: whether results can be stored.
  absl::Status Probe();

  struct Stats {
    uint64_t entries = 0;
    uint64_t bytes = 0;    // artifacts and metadata of all entries
    uint64_t hits = 0;     // since Open, as all below
    uint64_t misses = 0;   // damaged ones among them
    uint64_t damaged = 0;  // entries found damaged and removed
    uint64_t evicted = 0;
    uint64_t stored = 0;
  };
  Stats GetStats() const;

 private:
  struct Impl;
  explicit ArtifactCache(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace npuc::cache

#endif  // NPUC_CACHE_ARTIFACT_CACHE_H_
