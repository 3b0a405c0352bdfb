#ifndef NPUC_CACHE_BLOB_STORE_H_
#define NPUC_CACHE_BLOB_STORE_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cache/scope_limit.h"

namespace npuc::cache {

// What a client knows of a blob before it sends it.
struct BlobDigest {
  std::string sha256;  // 64 lower-case hex digits
  uint64_t size_bytes = 0;

  friend bool operator==(const BlobDigest&, const BlobDigest&) = default;
};

// A committed blob.
struct BlobInfo {
  std::string sha256;
  std::string md5;  // computed along with the SHA-256, never taken from a client
  uint64_t size_bytes = 0;
};

// How far an upload is. A resuming client sends from committed_bytes on.
struct UploadState {
  uint64_t committed_bytes = 0;  // bytes that the store has; the next Append's offset
  bool complete = false;         // the blob is committed; nothing is left to send
};

struct BlobStoreOptions {
  std::string root;  // an absolute path; made where missing; one process at a time
  uint64_t max_blob_bytes = uint64_t{2} << 30;
  // Committed blobs plus what open uploads have sent. Over the soft limit, the least recently used
  // blobs that nobody holds are removed; what would go over the hard limit is refused.
  uint64_t soft_limit_bytes = uint64_t{32} << 30;
  uint64_t hard_limit_bytes = uint64_t{40} << 30;
  // Space to leave free on the file system; an upload that would eat into it is refused.
  uint64_t disk_reserve_bytes = uint64_t{256} << 20;
  size_t max_open_uploads = 4096;
  size_t max_open_uploads_of_scope = 64;
  // The most that a scope may hold, committed blobs and open uploads together. Asked at each
  // BeginUpload and Append; null: no limit.
  std::function<uint64_t(absl::string_view scope)> scope_limit = nullptr;
  // A scope of the program's own, for some kilobytes: no limit applies to it.
  std::string own_scope;
  std::function<absl::Time()> now = [] { return absl::Now(); };         // order of use
  std::function<absl::Time()> steady_now = [] { return absl::Now(); };  // idleness of uploads
};

// Holds a committed blob: while `hold` lives, the blob is not evicted and Remove refuses. Must not
// outlive the store.
struct BlobRef {
  BlobInfo info;
  // The file, read-only (0444), for open(2), mmap(2) and WorkerInput::path. Never write to it,
  // never hand out a hard link of it to code that is not trusted: WorkerPool passes an open
  // descriptor.
  std::string path;
  std::shared_ptr<const void> hold;
};

// The part of BlobStore that jobs and uploads use; tests put fakes here.
class InputStore {
 public:
  virtual ~InputStore() = default;
  virtual absl::StatusOr<BlobRef> Acquire(absl::string_view scope, absl::string_view sha256) = 0;
  virtual absl::StatusOr<std::vector<BlobDigest>> FindMissing(
      absl::string_view scope, absl::Span<const BlobDigest> digests) = 0;
  virtual absl::StatusOr<UploadState> BeginUpload(absl::string_view scope,
                                                  const BlobDigest& digest) = 0;
  virtual absl::StatusOr<UploadState> QueryUpload(absl::string_view scope,
                                                  const BlobDigest& digest) = 0;
  virtual absl::StatusOr<UploadState> Append(absl::string_view scope, const BlobDigest& digest,
                                             uint64_t offset, absl::string_view bytes) = 0;
  virtual absl::StatusOr<std::string> ReadUpload(absl::string_view scope, const BlobDigest& digest,
                                                 uint64_t offset, size_t max_bytes) = 0;
  virtual absl::StatusOr<BlobInfo> Commit(absl::string_view scope, const BlobDigest& digest) = 0;
  virtual absl::Status Verify(absl::string_view scope, absl::string_view sha256) = 0;
  virtual absl::Status Remove(absl::string_view scope, absl::string_view sha256) = 0;
};

// Content-addressed store of what clients upload: models and side inputs. Blobs are named by scope
// (a tenant) and SHA-256; one scope cannot see, fill or learn of another's. Files below `root`;
// keys.h draws them. A blob appears whole or not at all: it is fsynced, then renamed into place,
// then its folder is fsynced. Uploads survive a restart of the daemon: what has arrived is a file,
// and its length is the committed offset.
//
// An upload is named by (scope, SHA-256, size) and not by its client, so that two clients that send
// one blob share the work, and a client that lost everything but the file can resume.
//
// The process must ignore SIGXFSZ where it has a file size limit, as every daemon should.
//
// Thread-safe. Uploads of different blobs do not wait for each other's disk writes.
// Errors, besides those below: INVALID_ARGUMENT for a malformed scope or digest; RESOURCE_EXHAUSTED
// for a full disk (ENOSPC, EDQUOT, EFBIG), which harms nothing that is stored; INTERNAL for other
// I/O errors.
class BlobStore : public InputStore {
 public:
  // Opens or makes the store and counts what is there. Files with names that are not its own are
  // left alone. FAILED_PRECONDITION: in use (by any process), or a newer format.
  static absl::StatusOr<std::unique_ptr<BlobStore>> Open(BlobStoreOptions options);
  ~BlobStore() override;
  BlobStore(const BlobStore&) = delete;
  BlobStore& operator=(const BlobStore&) = delete;

  // Those of `digests` that are not committed (size counts: another size is missing), in the given
  // order. Those present become recently used.
  // INVALID_ARGUMENT: more than kMaxDigests.
  static constexpr size_t kMaxDigests = 4096;
  absl::StatusOr<std::vector<BlobDigest>> FindMissing(
      absl::string_view scope, absl::Span<const BlobDigest> digests) override;

  // Starts an upload or finds the one under way. Committed already: {size, complete}. Idempotent.
  // Takes no room and evicts nothing: an upload holds the bytes that it has sent, and Append makes
  // room for them. A blob that would not fit now, whatever were evicted, is refused here, before
  // its first byte.
  // INVALID_ARGUMENT: larger than max_blob_bytes. RESOURCE_EXHAUSTED: hard limit, disk reserve,
  // max_open_uploads; and, told apart by ScopeLimitOf, the limits of the scope.
  static constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();
  absl::StatusOr<UploadState> BeginUpload(absl::string_view scope,
                                          const BlobDigest& digest) override;

  // NOT_FOUND: neither committed nor begun.
  absl::StatusOr<UploadState> QueryUpload(absl::string_view scope,
                                          const BlobDigest& digest) override;

  // Writes bytes at offset. offset < committed: the part that is there already is skipped (a resend
  // after a lost answer is harmless). offset > committed: OUT_OF_RANGE, the message names the
  // committed offset. Past the declared size: INVALID_ARGUMENT. NOT_FOUND: not begun. Makes room
  // for the bytes; RESOURCE_EXHAUSTED as BeginUpload: nothing was evicted, the upload keeps what
  // had been committed and can go on later, as it does on a full disk.
  absl::StatusOr<UploadState> Append(absl::string_view scope, const BlobDigest& digest,
                                     uint64_t offset, absl::string_view bytes) override;

  // Up to max_bytes (at most kMaxReadBytes) from offset of what an upload has brought, committed or
  // not; empty at the end of it. NOT_FOUND: not begun. No digest was compared with bytes that are
  // not committed.
  absl::StatusOr<std::string> ReadUpload(absl::string_view scope, const BlobDigest& digest,
                                         uint64_t offset, size_t max_bytes) override;

  // Ends an upload: the blob is durable and visible when this returns OK. Idempotent: a committed
  // blob gives its info again. FAILED_PRECONDITION: bytes are missing yet (the message names the
  // committed offset). INVALID_ARGUMENT: the bytes have another SHA-256; what was sent is dropped
  // and must be sent again from 0.
  absl::StatusOr<BlobInfo> Commit(absl::string_view scope, const BlobDigest& digest) override;

  // Forgets an upload that is not committed. OK where there is none.
  absl::Status AbortUpload(absl::string_view scope, const BlobDigest& digest);

  // Begin, Append and Commit in one, for bytes at hand.
  absl::StatusOr<BlobInfo> Put(absl::string_view scope, absl::string_view bytes);

  // Holds a blob; NOT_FOUND where it is not committed. Makes it recently used.
  absl::StatusOr<BlobRef> Acquire(absl::string_view scope, absl::string_view sha256) override;

  // Up to max_bytes (at most kMaxReadBytes) from offset; empty at the end. NOT_FOUND; OUT_OF_RANGE
  // where offset is past the end. DATA_LOSS: the file is shorter than it was.
  static constexpr size_t kMaxReadBytes = 4 << 20;
  absl::StatusOr<std::string> ReadAt(absl::string_view scope, absl::string_view sha256,
                                     uint64_t offset, size_t max_bytes);

  // Reads the whole blob and compares digests. DATA_LOSS: it is damaged, and from now on missing:
  // it is counted in Stats once, has to be uploaded again, and its file goes when nobody holds it.
  absl::Status Verify(absl::string_view scope, absl::string_view sha256) override;

  // Makes a store of the committed blobs in `folder`, which must not exist, by hard links; those
  // that are evicted meanwhile are left out. Uploads under way are not in it.
  absl::Status LinkInto(const std::string& folder) const;

  // FAILED_PRECONDITION while a BlobRef holds it; NOT_FOUND.
  absl::Status Remove(absl::string_view scope, absl::string_view sha256) override;

  // Drops the uploads of a scope, or with "" those of all but the program's own, that had no Append
  // for so long. With no time it waits for one that is being written and drops it, too.
  struct Dropped {
    size_t uploads = 0;
    uint64_t bytes = 0;  // that they had sent
  };
  Dropped DropUploads(absl::string_view scope, absl::Duration idle);

  // Drops uploads that had no Append for so long (a restart counts as one); returns their number.
  // The daemon calls it now and then.
  size_t DropIdleUploads(absl::Duration idle);

  struct Stats {
    uint64_t blobs = 0;
    uint64_t blob_bytes = 0;
    uint64_t open_uploads = 0;
    uint64_t upload_bytes = 0;   // what open uploads have sent
    uint64_t evicted_blobs = 0;  // since Open
    uint64_t damaged_blobs = 0;  // since Open
  };
  Stats GetStats() const;
  // Committed bytes of one scope, and what its open uploads have sent.
  uint64_t ScopeBytes(absl::string_view scope) const;
  size_t ScopeUploads(absl::string_view scope) const;

 private:
  struct Hold;
  struct Impl;
  explicit BlobStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace npuc::cache

#endif  // NPUC_CACHE_BLOB_STORE_H_
