#include "cache/blob_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "cache/blob_files.h"
#include "cache/keys.h"
#include "cache/posix.h"
#include "cache/usage_index.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/mutex.h"
#include "compiler_core/base/status.h"

namespace npuc::cache {
namespace {

constexpr absl::string_view kFormat = "1";
constexpr uint64_t kMaxCatchUpBytes = uint64_t{8} << 20;
// A blob's file is touched at most this often, so that the order of use survives a restart.
constexpr absl::Duration kTouchInterval = absl::Minutes(1);

using Key = UsageIndex::Key;  // scope; SHA-256, or SHA-256 '-' size

absl::Status CheckDigest(absl::string_view scope, const BlobDigest& digest) {
  if (!IsValidScope(scope)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "blob: scope '", Printable(scope), "' is not 1 to 64 letters, digits, '_', '-', '.'"));
  }
  if (!IsValidSha256(digest.sha256)) {
    return absl::InvalidArgumentError(absl::StrCat("blob: SHA-256 '", Printable(digest.sha256),
                                                   "' is not 64 lower-case hex digits"));
  }
  return absl::OkStatus();
}

}  // namespace

struct BlobStore::Impl {
  struct Blob {
    BlobInfo info;
    std::string path;
    bool damaged = false;  // missing for those who ask; kept while somebody holds it
    absl::Time touched;
  };

  // Bytes arrive under `mutex`; the store's mutex may be taken below it, never the other way.
  struct Upload {
    Upload(std::string upload_scope, BlobDigest upload_digest, std::string upload_path,
           uint64_t committed_bytes, absl::Time now)
        : scope(std::move(upload_scope)),
          digest(std::move(upload_digest)),
          path(std::move(upload_path)),
          committed(committed_bytes),
          last_append(now) {}

    const std::string scope;
    const BlobDigest digest;
    const std::string path;
    Mutex mutex;
    // Changed under mutex and read without it, too, so that who asks how far an upload is does
    // not wait for the hash of a gigabyte.
    std::atomic<uint64_t> committed;
    std::atomic<bool> ended = false;                // committed or dropped; the map has it no more
    StreamDigest hash NPUC_GUARDED_BY(mutex);       // covers the first hash.size_bytes() bytes
    absl::Time last_append NPUC_GUARDED_BY(mutex);  // steady
  };
  using UploadPtr = std::shared_ptr<Upload>;

  explicit Impl(BlobStoreOptions opts) : options(std::move(opts)) {}

  const BlobStoreOptions options;
  UniqueFd lock;
  mutable Mutex mutex;
  std::map<Key, Blob> blobs NPUC_GUARDED_BY(mutex);
  std::map<Key, UploadPtr> uploads NPUC_GUARDED_BY(mutex);
  UsageIndex usage NPUC_GUARDED_BY(mutex);  // of blobs; a hold is a pin
  struct ScopeUploads {
    uint64_t bytes = 0;  // on the disk, and those that are being written
    size_t count = 0;
  };
  std::map<std::string, ScopeUploads> scope_uploads NPUC_GUARDED_BY(mutex);
  uint64_t upload_bytes NPUC_GUARDED_BY(mutex) = 0;  // of all scopes
  uint64_t evicted NPUC_GUARDED_BY(mutex) = 0;
  uint64_t damaged NPUC_GUARDED_BY(mutex) = 0;

  std::string BlobsFolder() const { return options.root + "/blobs"; }
  std::string UploadsFolder() const { return options.root + "/uploads"; }

  absl::Status OpenRoot();
  absl::Status CheckFormat();
  absl::Status ScanBlobs();
  absl::Status ScanUploads();
  void AddBlob(const std::string& scope, BlobInfo info, std::string path, absl::Time used)
      NPUC_REQUIRES(mutex);
  void RemoveBlob(std::map<Key, Blob>::iterator it) NPUC_REQUIRES(mutex);
  void Use(const Key& key) NPUC_REQUIRES(mutex);
  // The blob, where it is there, whole and of this size.
  const Blob* FindBlob(absl::string_view scope, const BlobDigest& digest) const
      NPUC_REQUIRES(mutex);
  void AddUpload(const UploadPtr& upload) NPUC_REQUIRES(mutex);
  void RemoveUpload(const Upload& upload) NPUC_REQUIRES(mutex);
  void AddUploadBytes(const std::string& scope, uint64_t bytes) NPUC_REQUIRES(mutex);
  void RemoveUploadBytes(const std::string& scope, uint64_t bytes) NPUC_REQUIRES(mutex);
  void RemoveHold(const Key& key) NPUC_REQUIRES(mutex);
  uint64_t UploadBytesOf(const std::string& scope) const NPUC_REQUIRES(mutex);
  absl::Status CheckOpenUploads(const std::string& scope) const NPUC_REQUIRES(mutex);
  uint64_t LimitOf(const std::string& scope) const;
  absl::StatusOr<uint64_t> FreeBytes() const;
  absl::Status CheckRoom(const std::string& scope, uint64_t size) const NPUC_REQUIRES(mutex);
  absl::Status MakeRoom(const std::string& scope, uint64_t size) NPUC_REQUIRES(mutex);
  absl::StatusOr<UploadPtr> FindUpload(absl::string_view scope, const BlobDigest& digest,
                                       std::optional<BlobInfo>* committed) const;
  // For an upload that has ended: where another client's Commit of the same blob was faster, its
  // result is this client's, too.
  absl::StatusOr<BlobInfo> CommittedMeanwhile(absl::string_view scope,
                                              const BlobDigest& digest) const;
  absl::Status CatchUpHash(Upload& upload, int fd, uint64_t max_bytes) NPUC_REQUIRES(upload.mutex);
  absl::Status WriteBytes(Upload& upload, absl::string_view bytes) NPUC_REQUIRES(upload.mutex);
  absl::Status AddBytes(Upload& upload, absl::string_view bytes) NPUC_REQUIRES(upload.mutex);
  absl::StatusOr<BlobInfo> Publish(Upload& upload) NPUC_REQUIRES(upload.mutex);
  void EndUpload(Upload& upload) NPUC_REQUIRES(upload.mutex);
  // Ends an upload that was idle since `limit`; returns whether it did.
  bool EndIfIdle(Upload& upload, absl::Time limit) NPUC_REQUIRES(upload.mutex);
};

// --- Holds
// -------------------------------------------------------------------------------------

struct BlobStore::Hold {
  Hold(Impl* impl, Key blob_key) : store(impl), key(std::move(blob_key)) {}
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold() {
    const MutexLock lock(store->mutex);
    store->RemoveHold(key);
  }

  Impl* const store;
  const Key key;
};

// --- Opening
// -------------------------------------------------------------------------------------

absl::Status BlobStore::Impl::OpenRoot() {
  if (options.root.empty() || options.root[0] != '/') {
    return absl::InvalidArgumentError(
        absl::StrCat("blob store: root '", Printable(options.root), "' is not an absolute path"));
  }
  RETURN_IF_ERROR(MakeFolder(options.root));
  ASSIGN_OR_RETURN(lock, OpenFile(options.root + "/LOCK", O_RDWR | O_CREAT));
  if (RetryOnEintr([&] { return flock(lock.get(), LOCK_EX | LOCK_NB); }) != 0) {
    if (errno != EWOULDBLOCK) return ErrnoStatus(errno, "cannot lock", options.root);
    return absl::FailedPreconditionError(
        absl::StrCat("blob store '", Printable(options.root), "' is in use by another process"));
  }
  RETURN_IF_ERROR(CheckFormat());
  RETURN_IF_ERROR(MakeDurableFolder(options.root, BlobsFolder()));
  RETURN_IF_ERROR(MakeDurableFolder(options.root, UploadsFolder()));
  RETURN_IF_ERROR(ScanBlobs());
  return ScanUploads();
}

absl::Status BlobStore::Impl::CheckFormat() {
  const std::string path = options.root + "/format";
  ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(path, O_RDWR | O_CREAT));
  ASSIGN_OR_RETURN(const std::string found, ReadUpToAt(fd.get(), 0, 64, path));
  if (found == kFormat) return absl::OkStatus();
  if (!found.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("blob store '", Printable(options.root), "' has format '", Printable(found),
                     "', this program knows '", kFormat, "'; use the program that wrote it"));
  }
  RETURN_IF_ERROR(WriteAllAt(fd.get(), kFormat, 0, path));
  if (fsync(fd.get()) != 0) return ErrnoStatus(errno, "cannot sync", path);
  return SyncFolder(options.root);
}

absl::Status BlobStore::Impl::ScanBlobs() {
  ASSIGN_OR_RETURN(std::vector<BlobFile> found, FindBlobFiles(BlobsFolder()));
  std::stable_sort(found.begin(), found.end(),
                   [](const BlobFile& a, const BlobFile& b) { return a.used < b.used; });
  const MutexLock guard(mutex);
  for (BlobFile& blob : found) {
    AddBlob(blob.scope, std::move(blob.info), std::move(blob.path), blob.used);
  }
  return absl::OkStatus();
}

absl::Status BlobStore::Impl::ScanUploads() {
  ASSIGN_OR_RETURN(std::vector<UploadFile> found, FindUploadFiles(UploadsFolder()));
  const MutexLock guard(mutex);
  for (UploadFile& file : found) {
    // Longer than declared, or the blob is there: of no use any more.
    if (file.size_bytes > file.digest.size_bytes ||
        blobs.count({file.scope, file.digest.sha256}) != 0) {
      unlink(file.path.c_str());
      continue;
    }
    // The mode is already 0444 where the last process died between fsync and rename.
    if (chmod(file.path.c_str(), 0600) != 0) {
      return ErrnoStatus(errno, "cannot make writable", file.path);
    }
    AddUpload(std::make_shared<Upload>(std::move(file.scope), std::move(file.digest),
                                       std::move(file.path), file.size_bytes,
                                       options.steady_now()));
  }
  return absl::OkStatus();
}

// --- Under the store's mutex
// ---------------------------------------------------------------------

void BlobStore::Impl::AddBlob(const std::string& scope, BlobInfo info, std::string path,
                              absl::Time used) {
  const Key key{scope, info.sha256};
  const auto old = blobs.find(key);
  if (old != blobs.end()) {
    // The file had been damaged and has been uploaded again.
    Blob& blob = old->second;
    blob.damaged = false;
    if (blob.path != path) unlink(blob.path.c_str());
    usage.Put(key, info.size_bytes);
    blob.info = std::move(info);
    blob.path = std::move(path);
    return;
  }
  usage.Put(key, info.size_bytes);
  blobs[key] = Blob{.info = std::move(info), .path = std::move(path), .touched = used};
}

void BlobStore::Impl::RemoveBlob(std::map<Key, Blob>::iterator it) {
  unlink(it->second.path.c_str());
  usage.Remove(it->first);
  blobs.erase(it);
}

void BlobStore::Impl::Use(const Key& key) {
  usage.Use(key);
  Blob& blob = blobs.at(key);
  const absl::Time now = options.now();
  if (now - blob.touched < kTouchInterval) return;
  blob.touched = now;
  // The order of use after a restart is a hint; nothing depends on this call's success.
  const timespec times[2] = {absl::ToTimespec(now), absl::ToTimespec(now)};
  utimensat(AT_FDCWD, blob.path.c_str(), times, AT_SYMLINK_NOFOLLOW);
}

const BlobStore::Impl::Blob* BlobStore::Impl::FindBlob(absl::string_view scope,
                                                       const BlobDigest& digest) const {
  const auto it = blobs.find({std::string(scope), digest.sha256});
  if (it == blobs.end() || it->second.damaged) return nullptr;
  return it->second.info.size_bytes == digest.size_bytes ? &it->second : nullptr;
}

void BlobStore::Impl::AddUpload(const UploadPtr& upload) {
  uploads[{upload->scope, UploadName(upload->digest)}] = upload;
  ++scope_uploads[upload->scope].count;
  AddUploadBytes(upload->scope, upload->committed);
}

void BlobStore::Impl::RemoveUpload(const Upload& upload) {
  uploads.erase({upload.scope, UploadName(upload.digest)});
  --scope_uploads[upload.scope].count;
  RemoveUploadBytes(upload.scope, upload.committed);
}

void BlobStore::Impl::AddUploadBytes(const std::string& scope, uint64_t bytes) {
  scope_uploads[scope].bytes += bytes;
  upload_bytes += bytes;
}

void BlobStore::Impl::RemoveUploadBytes(const std::string& scope, uint64_t bytes) {
  scope_uploads[scope].bytes -= bytes;
  upload_bytes -= bytes;
}

void BlobStore::Impl::RemoveHold(const Key& key) {
  usage.Unpin(key);
  const auto it = blobs.find(key);
  NPUC_CHECK(it != blobs.end());
  if (it->second.damaged && !usage.IsPinned(key)) RemoveBlob(it);
}

uint64_t BlobStore::Impl::UploadBytesOf(const std::string& scope) const {
  const auto found = scope_uploads.find(scope);
  return found == scope_uploads.end() ? 0 : found->second.bytes;
}

absl::Status BlobStore::Impl::CheckOpenUploads(const std::string& scope) const {
  if (scope == options.own_scope) return absl::OkStatus();
  const auto use = scope_uploads.find(scope);
  if (use != scope_uploads.end() && use->second.count >= options.max_open_uploads_of_scope) {
    return OverScopeLimit(
        ScopeLimit::kOpenUploads,
        absl::StrCat(use->second.count, " uploads of this tenant are under way, at most ",
                     options.max_open_uploads_of_scope,
                     " may be; go on with them, or wait until they end"));
  }
  if (uploads.size() < options.max_open_uploads) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "blob store: ", uploads.size(), " uploads are open, the most allowed; try later"));
}

uint64_t BlobStore::Impl::LimitOf(const std::string& scope) const {
  return options.scope_limit == nullptr ? kNoLimit : options.scope_limit(scope);
}

absl::StatusOr<uint64_t> BlobStore::Impl::FreeBytes() const {
  struct statvfs disk;
  if (statvfs(options.root.c_str(), &disk) != 0) {
    return ErrnoStatus(errno, "cannot ask for free space of", options.root);
  }
  return uint64_t{disk.f_bavail} * disk.f_frsize;
}

// Whether `size` more bytes of a scope would fit once all went that may go. Changes nothing.
absl::Status BlobStore::Impl::CheckRoom(const std::string& scope, uint64_t size) const {
  if (scope == options.own_scope) return absl::OkStatus();
  const uint64_t limit = LimitOf(scope);
  const uint64_t firm_of_scope = usage.OfScope(scope).pinned_bytes + UploadBytesOf(scope);
  if (size > limit || firm_of_scope > limit - size) {
    return OverScopeLimit(
        ScopeLimit::kBytes,
        absl::StrCat(size, " bytes do not fit in the ", limit,
                     " bytes that this tenant may store: its waiting and running jobs and its "
                     "uploads under way need ",
                     firm_of_scope));
  }
  const uint64_t firm = usage.all().pinned_bytes + upload_bytes;
  if (size > options.hard_limit_bytes || firm > options.hard_limit_bytes - size) {
    return absl::ResourceExhaustedError(
        absl::StrCat("blob store: ", size, " bytes do not fit: ", firm, " of ",
                     options.hard_limit_bytes, " bytes are in use by jobs and uploads"));
  }
  ASSIGN_OR_RETURN(const uint64_t free_bytes, FreeBytes());
  const uint64_t may_go = usage.all().bytes - usage.all().pinned_bytes;
  if (free_bytes + may_go < size + options.disk_reserve_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "blob store: the server's disk is full: ", size, " bytes do not fit, ",
        (free_bytes + may_go) >> 20, " MiB can be freed and ", options.disk_reserve_bytes >> 20,
        " MiB stay in reserve; free some space there or try later"));
  }
  return absl::OkStatus();
}

// Evicts what must go for `size` more bytes of a scope; nothing where they are refused.
absl::Status BlobStore::Impl::MakeRoom(const std::string& scope, uint64_t size) {
  RETURN_IF_ERROR(CheckRoom(scope, size));
  if (scope == options.own_scope) return absl::OkStatus();
  const uint64_t limit = LimitOf(scope);
  ASSIGN_OR_RETURN(uint64_t free_bytes, FreeBytes());
  while (true) {
    const bool scope_fits = usage.OfScope(scope).bytes + UploadBytesOf(scope) + size <= limit;
    const bool all_fit = usage.all().bytes + upload_bytes + size <= options.soft_limit_bytes &&
                         free_bytes >= size + options.disk_reserve_bytes;
    if (scope_fits && all_fit) break;
    const std::optional<Key> oldest = all_fit ? usage.OldestOfScope(scope) : usage.Oldest();
    if (!oldest.has_value()) break;
    const auto blob = blobs.find(*oldest);
    free_bytes += blob->second.info.size_bytes;
    RemoveBlob(blob);
    ++evicted;
  }
  return absl::OkStatus();
}

absl::StatusOr<BlobStore::Impl::UploadPtr> BlobStore::Impl::FindUpload(
    absl::string_view scope, const BlobDigest& digest, std::optional<BlobInfo>* committed) const {
  RETURN_IF_ERROR(CheckDigest(scope, digest));
  const MutexLock lock(mutex);
  if (const Blob* const blob = FindBlob(scope, digest); blob != nullptr) {
    *committed = blob->info;
    return UploadPtr();
  }
  const auto it = uploads.find({std::string(scope), UploadName(digest)});
  if (it == uploads.end()) {
    return absl::NotFoundError(absl::StrCat("blob ", digest.sha256, " of ", digest.size_bytes,
                                            " bytes: no upload is under way; begin it first"));
  }
  return it->second;
}

absl::StatusOr<BlobInfo> BlobStore::Impl::CommittedMeanwhile(absl::string_view scope,
                                                             const BlobDigest& digest) const {
  std::optional<BlobInfo> committed;
  RETURN_IF_ERROR(FindUpload(scope, digest, &committed).status());
  if (committed.has_value()) return *committed;
  return absl::FailedPreconditionError(absl::StrCat(
      "blob ", digest.sha256, ": the upload was begun anew meanwhile; ask for its offset"));
}

// --- Under an upload's mutex
// ---------------------------------------------------------------------

// Reads what has arrived before this process, or what a failed write left, into the hash: about
// max_bytes of it.
absl::Status BlobStore::Impl::CatchUpHash(Upload& upload, int fd, uint64_t max_bytes) {
  const uint64_t end =
      upload.hash.size_bytes() + std::min(max_bytes, upload.committed - upload.hash.size_bytes());
  while (upload.hash.size_bytes() < end) {
    const uint64_t at = upload.hash.size_bytes();
    const size_t n = static_cast<size_t>(std::min<uint64_t>(kBlobHashChunkBytes, end - at));
    ASSIGN_OR_RETURN(const std::string bytes, ReadUpToAt(fd, at, n, upload.path));
    if (bytes.size() != n) {
      return absl::InternalError(absl::StrCat("upload '", upload.path, "' became shorter"));
    }
    upload.hash.Update(bytes);
  }
  return absl::OkStatus();
}

absl::Status BlobStore::Impl::WriteBytes(Upload& upload, absl::string_view bytes) {
  ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(upload.path, O_RDWR | O_NOFOLLOW));
  const absl::Status written = WriteAllAt(fd.get(), bytes, upload.committed, upload.path);
  if (!written.ok()) {
    // The file's length is the committed offset, also after a crash: cut what was half written.
    if (ftruncate(fd.get(), static_cast<off_t>(upload.committed)) != 0) {
      return ErrnoStatus(errno, "cannot cut", upload.path);
    }
    return written;
  }
  // After a restart the hash is behind; each chunk brings it nearer, by a bounded time.
  RETURN_IF_ERROR(CatchUpHash(upload, fd.get(), kMaxCatchUpBytes));
  if (upload.hash.size_bytes() == upload.committed) upload.hash.Update(bytes);
  upload.committed += bytes.size();
  upload.last_append = options.steady_now();
  return absl::OkStatus();
}

// The bytes count from before they are written, so that no other upload takes their room.
absl::Status BlobStore::Impl::AddBytes(Upload& upload, absl::string_view bytes) {
  {
    const MutexLock lock(mutex);
    RETURN_IF_ERROR(MakeRoom(upload.scope, bytes.size()));
    AddUploadBytes(upload.scope, bytes.size());
  }
  const absl::Status written = WriteBytes(upload, bytes);
  if (!written.ok()) {
    const MutexLock lock(mutex);
    RemoveUploadBytes(upload.scope, bytes.size());
  }
  return written;
}

// Takes the upload out of the map and its file off the disk where it is still there.
void BlobStore::Impl::EndUpload(Upload& upload) {
  unlink(upload.path.c_str());
  upload.ended = true;
  const MutexLock lock(mutex);
  RemoveUpload(upload);
}

bool BlobStore::Impl::EndIfIdle(Upload& upload, absl::Time limit) {
  if (upload.ended || upload.last_append > limit) return false;
  EndUpload(upload);
  return true;
}

absl::StatusOr<BlobInfo> BlobStore::Impl::Publish(Upload& upload) {
  ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(upload.path, O_RDWR | O_NOFOLLOW));
  RETURN_IF_ERROR(CatchUpHash(upload, fd.get(), upload.committed));
  const StreamDigest::Result digest = upload.hash.Finish();
  upload.hash = StreamDigest();
  if (digest.sha256_hex != upload.digest.sha256) {
    EndUpload(upload);
    return absl::InvalidArgumentError(
        absl::StrCat("blob ", upload.digest.sha256, ": the bytes sent have SHA-256 ",
                     digest.sha256_hex, "; they were dropped, send them again from offset 0"));
  }
  const std::string scope_path = BlobsFolder() + "/" + upload.scope;
  const std::string shard_path = scope_path + "/" + digest.sha256_hex.substr(0, 2);
  const std::string path = absl::StrCat(shard_path, "/", digest.sha256_hex, "-", digest.md5_hex);
  RETURN_IF_ERROR(MakeDurableFolder(BlobsFolder(), scope_path));
  RETURN_IF_ERROR(MakeDurableFolder(scope_path, shard_path));
  const absl::Time now = options.now();
  const timespec times[2] = {absl::ToTimespec(now), absl::ToTimespec(now)};
  futimens(fd.get(), times);  // the order of use after a restart, a hint
  const absl::Status moved = MoveIntoPlace(fd.get(), upload.path, path, shard_path);
  if (!moved.ok()) {
    // After a failed fsync nobody knows what is on the disk: the client sends it again.
    EndUpload(upload);
    return moved;
  }
  const BlobInfo info{digest.sha256_hex, digest.md5_hex, digest.size_bytes};
  upload.ended = true;
  // One step under the mutex: at every moment the bytes count once.
  const MutexLock lock(mutex);
  RemoveUpload(upload);
  AddBlob(upload.scope, info, path, now);
  return info;
}

// --- The interface
// -------------------------------------------------------------------------------

BlobStore::BlobStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
BlobStore::~BlobStore() = default;

absl::StatusOr<std::unique_ptr<BlobStore>> BlobStore::Open(BlobStoreOptions options) {
  auto impl = std::make_unique<Impl>(std::move(options));
  RETURN_IF_ERROR(impl->OpenRoot());
  return std::unique_ptr<BlobStore>(new BlobStore(std::move(impl)));
}

absl::Status BlobStore::LinkInto(const std::string& folder) const {
  std::vector<std::string> paths;
  {
    const MutexLock lock(impl_->mutex);
    for (const auto& [key, blob] : impl_->blobs) {
      if (!blob.damaged) paths.push_back(blob.path);
    }
  }
  std::error_code error;
  for (const std::string& path : paths) {
    // Below the root as below the folder: blobs/<scope>/<2 hex>/<name>.
    const auto to = std::filesystem::path(folder) /
                    std::filesystem::path(path).lexically_relative(impl_->options.root);
    std::filesystem::create_directories(to.parent_path(), error);
    if (error) return ErrnoStatus(error.value(), "make a folder for", to.string());
    if (link(path.c_str(), to.c_str()) != 0 && errno != ENOENT) {
      return ErrnoStatus(errno, "link", to.string());
    }
  }
  RETURN_IF_ERROR(MakeFolder(folder));
  const std::string format = folder + "/format";
  ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(format, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW));
  return WriteAllAt(fd.get(), kFormat, 0, format);
}

absl::StatusOr<std::vector<BlobDigest>> BlobStore::FindMissing(
    absl::string_view scope, absl::Span<const BlobDigest> digests) {
  if (digests.size() > kMaxDigests) {
    return absl::InvalidArgumentError(absl::StrCat(
        "blob: ", digests.size(), " digests asked for at once, at most ", kMaxDigests));
  }
  for (const BlobDigest& digest : digests) RETURN_IF_ERROR(CheckDigest(scope, digest));
  std::vector<BlobDigest> missing;
  const MutexLock lock(impl_->mutex);
  for (const BlobDigest& digest : digests) {
    if (impl_->FindBlob(scope, digest) == nullptr) {
      missing.push_back(digest);
    } else {
      impl_->Use({std::string(scope), digest.sha256});
    }
  }
  return missing;
}

absl::StatusOr<UploadState> BlobStore::BeginUpload(absl::string_view scope,
                                                   const BlobDigest& digest) {
  RETURN_IF_ERROR(CheckDigest(scope, digest));
  if (digest.size_bytes > impl_->options.max_blob_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("blob ", digest.sha256, ": ", digest.size_bytes,
                                                   " bytes, at most ",
                                                   impl_->options.max_blob_bytes, " allowed"));
  }
  {
    const MutexLock lock(impl_->mutex);
    const Key key{std::string(scope), UploadName(digest)};
    if (impl_->FindBlob(scope, digest) == nullptr && impl_->uploads.count(key) == 0) {
      RETURN_IF_ERROR(impl_->CheckOpenUploads(key.scope));
      RETURN_IF_ERROR(impl_->CheckRoom(key.scope, digest.size_bytes));
      const std::string folder = absl::StrCat(impl_->UploadsFolder(), "/", scope);
      const std::string path = absl::StrCat(folder, "/", key.name);
      RETURN_IF_ERROR(MakeFolder(folder));
      RETURN_IF_ERROR(OpenFile(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW).status());
      impl_->AddUpload(
          std::make_shared<Impl::Upload>(key.scope, digest, path, 0, impl_->options.steady_now()));
    }
  }
  return QueryUpload(scope, digest);
}

absl::StatusOr<UploadState> BlobStore::QueryUpload(absl::string_view scope,
                                                   const BlobDigest& digest) {
  std::optional<BlobInfo> committed;
  ASSIGN_OR_RETURN(const Impl::UploadPtr upload, impl_->FindUpload(scope, digest, &committed));
  if (committed.has_value()) return UploadState{digest.size_bytes, true};
  const uint64_t bytes = upload->committed;
  if (!upload->ended) return UploadState{bytes, false};
  { const MutexLock lock(upload->mutex); }  // until the map has it no more
  return QueryUpload(scope, digest);
}

absl::StatusOr<UploadState> BlobStore::Append(absl::string_view scope, const BlobDigest& digest,
                                              uint64_t offset, absl::string_view bytes) {
  std::optional<BlobInfo> committed;
  ASSIGN_OR_RETURN(const Impl::UploadPtr upload, impl_->FindUpload(scope, digest, &committed));
  if (offset > digest.size_bytes || bytes.size() > digest.size_bytes - offset) {
    return absl::InvalidArgumentError(absl::StrCat("blob ", digest.sha256, ": ", bytes.size(),
                                                   " bytes at offset ", offset,
                                                   " pass the declared ", digest.size_bytes));
  }
  if (committed.has_value()) return UploadState{digest.size_bytes, true};
  const MutexLock lock(upload->mutex);
  if (upload->ended) {
    RETURN_IF_ERROR(impl_->CommittedMeanwhile(scope, digest).status());
    return UploadState{digest.size_bytes, true};
  }
  if (offset > upload->committed) {
    return absl::OutOfRangeError(absl::StrCat("blob ", digest.sha256, ": offset ", offset,
                                              " leaves a gap; the committed offset is ",
                                              upload->committed.load()));
  }
  const uint64_t known = upload->committed - offset;
  if (known < bytes.size()) {
    RETURN_IF_ERROR(impl_->AddBytes(*upload, bytes.substr(static_cast<size_t>(known))));
  }
  return UploadState{upload->committed, false};
}

absl::StatusOr<BlobInfo> BlobStore::Commit(absl::string_view scope, const BlobDigest& digest) {
  std::optional<BlobInfo> committed;
  ASSIGN_OR_RETURN(const Impl::UploadPtr upload, impl_->FindUpload(scope, digest, &committed));
  if (committed.has_value()) return *committed;
  {
    const MutexLock lock(upload->mutex);
    if (!upload->ended) {
      if (upload->committed < digest.size_bytes) {
        return absl::FailedPreconditionError(absl::StrCat(
            "blob ", digest.sha256, ": ", upload->committed.load(), " of ", digest.size_bytes,
            " bytes have arrived; send the rest from offset ", upload->committed.load()));
      }
      return impl_->Publish(*upload);
    }
  }
  return impl_->CommittedMeanwhile(scope, digest);
}

absl::Status BlobStore::AbortUpload(absl::string_view scope, const BlobDigest& digest) {
  std::optional<BlobInfo> committed;
  const auto upload = impl_->FindUpload(scope, digest, &committed);
  if (absl::IsNotFound(upload.status())) return absl::OkStatus();
  RETURN_IF_ERROR(upload.status());
  if (committed.has_value()) return absl::OkStatus();
  const MutexLock lock((*upload)->mutex);
  if (!(*upload)->ended) impl_->EndUpload(**upload);
  return absl::OkStatus();
}

absl::StatusOr<BlobInfo> BlobStore::Put(absl::string_view scope, absl::string_view bytes) {
  const BlobDigest digest{Sha256Hex(bytes), bytes.size()};
  ASSIGN_OR_RETURN(const UploadState state, BeginUpload(scope, digest));
  if (!state.complete) RETURN_IF_ERROR(Append(scope, digest, 0, bytes).status());
  return Commit(scope, digest);
}

absl::StatusOr<BlobRef> BlobStore::Acquire(absl::string_view scope, absl::string_view sha256) {
  RETURN_IF_ERROR(CheckDigest(scope, {std::string(sha256), 0}));
  const MutexLock lock(impl_->mutex);
  const auto it = impl_->blobs.find({std::string(scope), std::string(sha256)});
  if (it == impl_->blobs.end() || it->second.damaged) {
    return absl::NotFoundError(absl::StrCat("blob ", sha256, ": not in the store; upload it"));
  }
  impl_->Use(it->first);
  impl_->usage.Pin(it->first);
  return BlobRef{.info = it->second.info,
                 .path = it->second.path,
                 .hold = std::make_shared<const Hold>(impl_.get(), it->first)};
}

absl::StatusOr<std::string> BlobStore::ReadUpload(absl::string_view scope, const BlobDigest& digest,
                                                  uint64_t offset, size_t max_bytes) {
  std::optional<BlobInfo> committed;
  ASSIGN_OR_RETURN(const Impl::UploadPtr upload, impl_->FindUpload(scope, digest, &committed));
  if (committed.has_value()) return ReadAt(scope, digest.sha256, offset, max_bytes);
  const MutexLock lock(upload->mutex);  // a commit moves the file
  if (upload->ended) {
    RETURN_IF_ERROR(impl_->CommittedMeanwhile(scope, digest).status());
    return ReadAt(scope, digest.sha256, offset, max_bytes);
  }
  const uint64_t left = upload->committed - std::min<uint64_t>(upload->committed, offset);
  ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(upload->path, O_RDONLY | O_NOFOLLOW));
  const size_t n = std::min<uint64_t>({left, uint64_t{max_bytes}, uint64_t{kMaxReadBytes}});
  return ReadUpToAt(fd.get(), offset, n, upload->path);
}

absl::StatusOr<std::string> BlobStore::ReadAt(absl::string_view scope, absl::string_view sha256,
                                              uint64_t offset, size_t max_bytes) {
  ASSIGN_OR_RETURN(const BlobRef blob, Acquire(scope, sha256));
  const uint64_t size = blob.info.size_bytes;
  if (offset > size) {
    return absl::OutOfRangeError(
        absl::StrCat("blob ", sha256, ": offset ", offset, " is past the end, ", size));
  }
  const size_t n = static_cast<size_t>(
      std::min<uint64_t>({size - offset, uint64_t{max_bytes}, uint64_t{kMaxReadBytes}}));
  ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(blob.path, O_RDONLY | O_NOFOLLOW));
  ASSIGN_OR_RETURN(std::string bytes, ReadUpToAt(fd.get(), offset, n, blob.path));
  if (bytes.size() != n) {
    return absl::DataLossError(absl::StrCat("blob ", sha256, ": its file has become shorter"));
  }
  return bytes;
}

absl::Status BlobStore::Verify(absl::string_view scope, absl::string_view sha256) {
  ASSIGN_OR_RETURN(const BlobRef blob, Acquire(scope, sha256));
  ASSIGN_OR_RETURN(const bool is_whole, IsWholeBlob(blob.info, blob.path));
  if (is_whole) return absl::OkStatus();
  const MutexLock lock(impl_->mutex);
  Impl::Blob& damaged = impl_->blobs.at({std::string(scope), std::string(sha256)});
  if (!std::exchange(damaged.damaged, true)) ++impl_->damaged;
  return absl::DataLossError(
      absl::StrCat("blob ", sha256, ": damaged on the disk; upload it again"));
}

absl::Status BlobStore::Remove(absl::string_view scope, absl::string_view sha256) {
  RETURN_IF_ERROR(CheckDigest(scope, {std::string(sha256), 0}));
  const MutexLock lock(impl_->mutex);
  const auto it = impl_->blobs.find({std::string(scope), std::string(sha256)});
  if (it == impl_->blobs.end()) {
    return absl::NotFoundError(absl::StrCat("blob ", sha256, ": not in the store"));
  }
  if (impl_->usage.IsPinned(it->first)) {
    return absl::FailedPreconditionError(
        absl::StrCat("blob ", sha256, ": in use; remove it when its jobs have ended"));
  }
  impl_->RemoveBlob(it);
  return absl::OkStatus();
}

BlobStore::Dropped BlobStore::DropUploads(absl::string_view scope, absl::Duration idle) {
  std::vector<Impl::UploadPtr> found;
  {
    const MutexLock lock(impl_->mutex);
    for (const auto& [key, upload] : impl_->uploads) {
      const bool is_meant =
          scope.empty() ? key.scope != impl_->options.own_scope : key.scope == scope;
      if (is_meant) found.push_back(upload);
    }
  }
  Dropped dropped;
  for (const Impl::UploadPtr& upload : found) {
    const MutexLock lock(upload->mutex);
    const uint64_t bytes = upload->committed;
    if (!impl_->EndIfIdle(*upload, impl_->options.steady_now() - idle)) continue;
    ++dropped.uploads;
    dropped.bytes += bytes;
  }
  return dropped;
}

size_t BlobStore::DropIdleUploads(absl::Duration idle) {
  std::vector<Impl::UploadPtr> all;
  {
    const MutexLock lock(impl_->mutex);
    for (const auto& [key, upload] : impl_->uploads) all.push_back(upload);
  }
  const absl::Time limit = impl_->options.steady_now() - idle;
  size_t dropped = 0;
  for (const Impl::UploadPtr& upload : all) {
    // One that is being written now is not idle; do not wait for it.
    if (!upload->mutex.TryLock()) continue;
    if (impl_->EndIfIdle(*upload, limit)) ++dropped;
    upload->mutex.Unlock();
  }
  return dropped;
}

BlobStore::Stats BlobStore::GetStats() const {
  const MutexLock lock(impl_->mutex);
  Stats stats;
  stats.blobs = impl_->blobs.size();
  stats.blob_bytes = impl_->usage.all().bytes;
  stats.open_uploads = impl_->uploads.size();
  stats.upload_bytes = impl_->upload_bytes;
  stats.evicted_blobs = impl_->evicted;
  stats.damaged_blobs = impl_->damaged;
  return stats;
}

size_t BlobStore::ScopeUploads(absl::string_view scope) const {
  const MutexLock lock(impl_->mutex);
  const auto found = impl_->scope_uploads.find(std::string(scope));
  return found == impl_->scope_uploads.end() ? 0 : found->second.count;
}

uint64_t BlobStore::ScopeBytes(absl::string_view scope) const {
  const MutexLock lock(impl_->mutex);
  return impl_->usage.OfScope(scope).bytes + impl_->UploadBytesOf(std::string(scope));
}

}  // namespace npuc::cache
