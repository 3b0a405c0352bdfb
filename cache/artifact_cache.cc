#include "cache/artifact_cache.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <list>
#include <set>
#include <unordered_map>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cache/packed_artifact.h"
#include "cache/posix.h"
#include "cache/record.h"
#include "cache/rocksdb_log.h"
#include "cache/usage_index.h"
#include "compiler_core/base/artifact_name.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/mutex.h"
#include "compiler_core/base/status.h"
#include "rocksdb/cache.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/snapshot.h"
#include "rocksdb/table.h"
#include "rocksdb/utilities/checkpoint.h"
#include "rocksdb/write_batch.h"

namespace npuc::cache {
namespace {

constexpr char kFormatKey[] = "format";
constexpr char kFormat[] = "3";
constexpr absl::Duration kTouchInterval = absl::Minutes(1);
constexpr size_t kStripes = 64;
constexpr uint64_t kMiB = uint64_t{1} << 20;

// Results that are kept read and decoded: so many, of so much metadata.
constexpr size_t kMaxRemembered = 1024;
constexpr size_t kMaxRememberedBytes = 4096;
// Of an entry's write: keys, manifest and headers, where they are few.
constexpr size_t kWriteOverheadBytes = 16 << 10;

absl::string_view ToView(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

absl::Status ToStatus(const rocksdb::Status& status, absl::string_view what) {
  if (status.ok()) return absl::OkStatus();
  const std::string text = absl::StrCat("artifact cache: ", what, ": ", status.ToString());
  if (status.IsNoSpace()) {
    return absl::UnavailableError(absl::StrCat(
        text,
        "; free some space on that disk: results are stored again, within some seconds, once ",
        ArtifactCache::kRoomToRecoverBytes / kMiB, " MiB are free"));
  }
  if (status.IsMemoryLimit()) return absl::ResourceExhaustedError(text);
  if (status.IsNotFound()) return absl::NotFoundError(text);
  if (status.IsCorruption()) return absl::DataLossError(text);
  return absl::InternalError(text);
}

std::string ChunkKey(absl::string_view key, absl::string_view name, uint64_t chunk) {
  std::string out = absl::StrCat(key, "/", name);
  out.push_back('\0');
  absl::StrAppendFormat(&out, "%08x", chunk);
  return out;
}

std::string EncodeTime(absl::Time time) {
  uint64_t micros = static_cast<uint64_t>(absl::ToUnixMicros(time));
  std::string out(8, '\0');
  for (size_t i = 8; i-- > 0; micros >>= 8) out[i] = static_cast<char>(micros & 0xff);
  return out;
}

absl::Time DecodeTime(absl::string_view bytes) {
  if (bytes.size() != 8) return absl::UnixEpoch();
  uint64_t micros = 0;
  for (const char c : bytes) micros = (micros << 8) | static_cast<uint8_t>(c);
  return absl::FromUnixMicros(static_cast<int64_t>(micros));
}

// The parts of a CacheKey::ToString().
UsageIndex::Key UsageKey(const std::string& key) {
  const size_t slash = key.rfind('/');
  return {.scope = key.substr(0, slash), .name = key.substr(slash + 1)};
}

absl::Status NotThere(const CacheKey& key, absl::string_view what) {
  return absl::NotFoundError(absl::StrCat("artifact cache: ", key.ToString(), ": ", what));
}

}  // namespace

struct ArtifactCache::Impl {
  struct Entry {
    absl::Time used;
    absl::Time touched;                         // the last stored time of use
    uint64_t version = 0;                       // differs from that of every earlier content
    absl::Time checked = absl::InfinitePast();  // when all of this content was last checked
    // What Lookup found then; good for as long as the check. Of few entries: see kMaxRemembered.
    std::shared_ptr<const CachedResult> found;
  };

  explicit Impl(ArtifactCacheOptions opts) : options(std::move(opts)) {}
  ~Impl() {
    for (rocksdb::ColumnFamilyHandle* family : families) {
      if (db != nullptr) db->DestroyColumnFamilyHandle(family);
    }
  }

  const ArtifactCacheOptions options;
  std::unique_ptr<rocksdb::DB> db;
  std::vector<rocksdb::ColumnFamilyHandle*> families;  // default, entries, chunks, access
  // A stripe is held while an entry is written or removed, so that two writers of one key are one
  // after the other; `mutex` guards the index and is taken below a stripe, never around database
  // calls.
  std::array<Mutex, kStripes> stripes;
  mutable Mutex mutex;
  std::unordered_map<std::string, Entry> index NPUC_GUARDED_BY(mutex);
  UsageIndex usage NPUC_GUARDED_BY(mutex);  // of `index`; a reader is a pin
  // Keys of entries with `found`, or that had it.
  std::list<std::string> remembered NPUC_GUARDED_BY(mutex);
  uint64_t last_version NPUC_GUARDED_BY(mutex) = 0;
  Stats stats NPUC_GUARDED_BY(mutex);

  rocksdb::ColumnFamilyHandle* entries() const { return families[1]; }
  rocksdb::ColumnFamilyHandle* chunks() const { return families[2]; }
  rocksdb::ColumnFamilyHandle* access() const { return families[3]; }
  Mutex& StripeOf(const std::string& key) {
    return stripes[std::hash<std::string>()(key) % kStripes];
  }

  absl::Status OpenDatabase();
  absl::Status CheckFormat();
  absl::Status LoadIndex();
  void Index(const std::string& key, uint64_t bytes, absl::Time used);
  void Unindex(const std::string& key);
  void Touch(const std::string& key);
  std::shared_ptr<const CachedResult> Remembered(const std::string& key);
  uint64_t VersionOf(const std::string& key, bool* checked) const;
  void NoteChecked(const std::string& key, uint64_t version, const CachedResult& found);
  void Pin(const std::string& key);
  void Unpin(const std::string& key);
  std::optional<std::string> Victim(const std::string& keep, uint64_t target_bytes) const
      NPUC_REQUIRES(mutex);
  std::optional<std::string> VictimInScope(const std::string& keep) const NPUC_REQUIRES(mutex);
  absl::StatusOr<Manifest> ReadManifest(const std::string& key,
                                        const rocksdb::ReadOptions& read) const;
  absl::StatusOr<std::string> ReadChunk(const std::string& key, const ManifestItem& item,
                                        uint64_t chunk, const rocksdb::ReadOptions& read) const;
  absl::Status CheckAll(const std::string& key, const ManifestItem& item, std::string* bytes,
                        const rocksdb::ReadOptions& read) const;
  void AddRemoval(const std::string& key, rocksdb::WriteBatch& batch) const;
  void AddChunks(const std::string& key, const PackedArtifact& artifact,
                 rocksdb::WriteBatch& batch) const;
  absl::Status RemoveLocked(const std::string& key);
  void RemoveDamaged(const std::string& key, const rocksdb::ReadOptions& seen);
  void EvictOver(const std::string& keep);
  void EvictInScope(const std::string& keep);
  bool Evict(const std::string& key);
};

// --- Opening -------------------------------------------------------------------------------------

absl::Status ArtifactCache::Impl::OpenDatabase() {
  rocksdb::DBOptions db_options;
  db_options.create_if_missing = true;
  db_options.create_missing_column_families = true;
  db_options.max_total_wal_size = uint64_t{256} << 20;
  db_options.max_open_files = 512;
  db_options.info_log = NoRocksDbLog();
  // What was written before a torn tail of the log is kept, the tail is dropped: entries are whole.
  // So is all behind a damaged record; results that are lost are compiled again.
  db_options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;

  rocksdb::BlockBasedTableOptions table;
  const auto cache = rocksdb::NewLRUCache(options.block_cache_bytes);
  table.block_cache = cache;
  rocksdb::ColumnFamilyOptions small;
  small.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  small.compression = rocksdb::kNoCompression;
  // RocksDB goes on after a full disk where there is room for the largest of these again.
  small.write_buffer_size = ArtifactCache::kRoomToRecoverBytes;
  rocksdb::ColumnFamilyOptions blobs = small;
  blobs.enable_blob_files = true;
  blobs.min_blob_size = 4096;
  blobs.enable_blob_garbage_collection = true;
  blobs.blob_cache = cache;

  const std::vector<rocksdb::ColumnFamilyDescriptor> wanted = {
      {rocksdb::kDefaultColumnFamilyName, small},
      {"entries", small},
      {"chunks", blobs},
      {"access", small}};
  rocksdb::DB* opened = nullptr;
  const rocksdb::Status status =
      rocksdb::DB::Open(db_options, options.path, wanted, &families, &opened);
  db.reset(opened);
  if (status.ok()) return absl::OkStatus();
  if (status.IsIOError()) RETURN_IF_ERROR(CheckUsable(options.path));
  const std::string text = status.ToString();
  if (status.IsIOError() && absl::StrContains(text, "lock")) {
    return absl::FailedPreconditionError(
        absl::StrCat("artifact cache '", Printable(options.path), "' is in use: ", text));
  }
  if (status.IsInvalidArgument()) {
    return absl::FailedPreconditionError(absl::StrCat("artifact cache '", Printable(options.path),
                                                      "' has an unknown format: ", text));
  }
  return ToStatus(status, absl::StrCat("cannot open '", Printable(options.path), "'"));
}

absl::Status ArtifactCache::Impl::CheckFormat() {
  std::string found;
  const rocksdb::Status status = db->Get(rocksdb::ReadOptions(), kFormatKey, &found);
  if (status.ok() && found == kFormat) return absl::OkStatus();
  if (status.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "artifact cache '", Printable(options.path), "' has format '", Printable(found),
        "', this program knows '", kFormat, "'; delete it: jobs compile again"));
  }
  if (!status.ok() && !status.IsNotFound()) return ToStatus(status, "cannot read the format");
  rocksdb::WriteOptions write;
  write.sync = true;
  return ToStatus(db->Put(write, kFormatKey, kFormat), "cannot write the format");
}

absl::Status ArtifactCache::Impl::LoadIndex() {
  struct Found {
    absl::Time used;
    std::string key;
    uint64_t bytes;
  };
  std::vector<Found> found;
  std::vector<std::string> broken;
  const std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(rocksdb::ReadOptions(), entries()));
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    std::string key(it->key().data(), it->key().size());
    const auto manifest = DecodeManifest(key, ToView(it->value()));
    if (!manifest.ok()) {
      broken.push_back(std::move(key));
      continue;
    }
    std::string time;
    const bool known = db->Get(rocksdb::ReadOptions(), access(), key, &time).ok();
    found.push_back(
        {known ? DecodeTime(time) : manifest->stored_at, std::move(key), manifest->TotalBytes()});
  }
  RETURN_IF_ERROR(ToStatus(it->status(), "cannot list entries"));
  for (const std::string& key : broken) {
    RETURN_IF_ERROR(RemoveLocked(key));
  }
  {
    const MutexLock lock(mutex);
    stats.damaged += broken.size();
  }
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    return std::tie(a.used, a.key) < std::tie(b.used, b.key);
  });
  for (const Found& entry : found) Index(entry.key, entry.bytes, entry.used);
  return absl::OkStatus();
}

// --- The index -----------------------------------------------------------------------------------

void ArtifactCache::Impl::Index(const std::string& key, uint64_t bytes, absl::Time used) {
  const MutexLock lock(mutex);
  Entry& entry = index[key];
  usage.Put(UsageKey(key), bytes);
  usage.Use(UsageKey(key));
  entry.used = entry.touched = used;
  entry.version = ++last_version;
  entry.checked = absl::InfinitePast();
  entry.found = nullptr;
}

void ArtifactCache::Impl::Unindex(const std::string& key) {
  const MutexLock lock(mutex);
  const auto it = index.find(key);
  if (it == index.end()) return;
  usage.Remove(UsageKey(key));
  index.erase(it);
}

void ArtifactCache::Impl::Touch(const std::string& key) {
  const absl::Time now = options.now();
  {
    const MutexLock lock(mutex);
    const auto it = index.find(key);
    if (it == index.end()) return;
    usage.Use(UsageKey(key));
    it->second.used = now;
    if (now - it->second.touched < kTouchInterval) return;
    it->second.touched = now;
  }
  // Not synced, and its failure does not matter: the order of use is a hint.
  db->Put(rocksdb::WriteOptions(), access(), key, EncodeTime(now)).PermitUncheckedError();
}

// 0 where there is no entry. *checked: all of it was checked not long ago.
uint64_t ArtifactCache::Impl::VersionOf(const std::string& key, bool* checked) const {
  const MutexLock lock(mutex);
  const auto it = index.find(key);
  if (it == index.end()) return 0;
  *checked = options.now() - it->second.checked < options.recheck;
  return it->second.version;
}

void ArtifactCache::Impl::NoteChecked(const std::string& key, uint64_t version,
                                      const CachedResult& found) {
  const MutexLock lock(mutex);
  const auto it = index.find(key);
  if (it == index.end() || it->second.version != version) return;
  it->second.checked = options.now();
  if (found.metadata.size() > kMaxRememberedBytes) return;
  it->second.found = std::make_shared<const CachedResult>(found);
  remembered.push_back(key);
  if (remembered.size() <= kMaxRemembered) return;
  const auto oldest = index.find(remembered.front());
  if (oldest != index.end()) oldest->second.found = nullptr;
  remembered.pop_front();
}

// What a check that is still good found, counted as a use; nullptr: it must be looked up.
std::shared_ptr<const CachedResult> ArtifactCache::Impl::Remembered(const std::string& key) {
  std::shared_ptr<const CachedResult> found;
  {
    const MutexLock lock(mutex);
    const auto it = index.find(key);
    if (it == index.end() || options.now() - it->second.checked >= options.recheck) return nullptr;
    found = it->second.found;
    if (found != nullptr) ++stats.hits;
  }
  if (found != nullptr) Touch(key);
  return found;
}

void ArtifactCache::Impl::Pin(const std::string& key) {
  const MutexLock lock(mutex);
  usage.Pin(UsageKey(key));
}

void ArtifactCache::Impl::Unpin(const std::string& key) {
  const MutexLock lock(mutex);
  usage.Unpin(UsageKey(key));
}

// --- Reading -------------------------------------------------------------------------------------

// NOT_FOUND: no entry. DATA_LOSS: damaged.
absl::StatusOr<Manifest> ArtifactCache::Impl::ReadManifest(const std::string& key,
                                                           const rocksdb::ReadOptions& read) const {
  rocksdb::PinnableSlice record;
  const rocksdb::Status status = db->Get(read, entries(), key, &record);
  if (!status.ok()) return ToStatus(status, key);
  return DecodeManifest(key, ToView(record));
}

// DATA_LOSS: missing or damaged.
absl::StatusOr<std::string> ArtifactCache::Impl::ReadChunk(const std::string& key,
                                                           const ManifestItem& item, uint64_t chunk,
                                                           const rocksdb::ReadOptions& read) const {
  NPUC_CHECK(chunk < item.chunk_sha256.size());
  std::string stored;
  const rocksdb::Status status =
      db->Get(read, chunks(), ChunkKey(key, item.info.name, chunk), &stored);
  if (!status.ok() && !status.IsNotFound()) return ToStatus(status, key);
  if (status.ok() && Sha256Hex(stored) == item.chunk_sha256[static_cast<size_t>(chunk)]) {
    const uint64_t left = item.info.size_bytes - chunk * kChunkBytes;
    return UnpackChunk(stored, static_cast<size_t>(std::min<uint64_t>(kChunkBytes, left)));
  }
  return absl::DataLossError(absl::StrCat("artifact cache: ", key, ": chunk ", chunk, " of '",
                                          item.info.name, "' is damaged"));
}

absl::Status ArtifactCache::Impl::CheckAll(const std::string& key, const ManifestItem& item,
                                           std::string* bytes,
                                           const rocksdb::ReadOptions& read) const {
  for (uint64_t chunk = 0; chunk < item.chunk_sha256.size(); ++chunk) {
    ASSIGN_OR_RETURN(const std::string part, ReadChunk(key, item, chunk, read));
    if (bytes != nullptr) bytes->append(part);
  }
  return absl::OkStatus();
}

// --- Removing ------------------------------------------------------------------------------------

// Everything of the key, in the database as it is now.
void ArtifactCache::Impl::AddRemoval(const std::string& key, rocksdb::WriteBatch& batch) const {
  batch.Delete(entries(), key);
  batch.Delete(access(), key);
  const auto manifest = ReadManifest(key, rocksdb::ReadOptions());
  if (absl::IsNotFound(manifest.status())) return;
  if (!manifest.ok()) {
    // Which chunks it had cannot be known: remove all that could be. '0' follows '/'.
    batch.DeleteRange(chunks(), key + "/", key + "0");
    return;
  }
  for (const ManifestItem& item : manifest->items) {
    for (uint64_t chunk = 0; chunk < item.chunk_sha256.size(); ++chunk) {
      batch.Delete(chunks(), ChunkKey(key, item.info.name, chunk));
    }
  }
}

void ArtifactCache::Impl::AddChunks(const std::string& key, const PackedArtifact& artifact,
                                    rocksdb::WriteBatch& batch) const {
  for (size_t i = 0; i < artifact.chunks.size(); ++i) {
    batch.Put(chunks(), ChunkKey(key, artifact.item.info.name, i), artifact.chunks[i]);
  }
}

absl::Status ArtifactCache::Impl::RemoveLocked(const std::string& key) {
  rocksdb::WriteBatch batch;
  AddRemoval(key, batch);
  RETURN_IF_ERROR(ToStatus(db->Write(rocksdb::WriteOptions(), &batch), "cannot remove"));
  Unindex(key);
  return absl::OkStatus();
}

// Removes a damaged entry, unless it has been written anew since `seen`'s snapshot.
void ArtifactCache::Impl::RemoveDamaged(const std::string& key, const rocksdb::ReadOptions& seen) {
  const MutexLock stripe(StripeOf(key));
  std::string then, now;
  const rocksdb::Status was = db->Get(seen, entries(), key, &then);
  const rocksdb::Status is = db->Get(rocksdb::ReadOptions(), entries(), key, &now);
  {
    const MutexLock lock(mutex);
    ++stats.damaged;
  }
  if (is.IsNotFound() || (was.ok() && is.ok() && then != now)) return;
  // Should it fail, the entry stays a miss, and the next look-up tries again.
  RemoveLocked(key).IgnoreError();
}

// The entry to evict next: the least recently used one that may go, where there are more than
// target_bytes or it is too old.
std::optional<std::string> ArtifactCache::Impl::Victim(const std::string& keep,
                                                       uint64_t target_bytes) const {
  const UsageIndex::Key kept = UsageKey(keep);
  const std::optional<UsageIndex::Key> oldest = usage.Oldest(&kept);
  if (!oldest.has_value()) return std::nullopt;
  const std::string key = oldest->scope + "/" + oldest->name;
  const bool is_idle = index.at(key).used < options.now() - options.max_idle;
  if (usage.all().bytes <= target_bytes && !is_idle) return std::nullopt;
  return key;
}

void ArtifactCache::Impl::EvictOver(const std::string& keep) {
  uint64_t target = options.max_bytes;
  while (true) {
    std::optional<std::string> victim;
    {
      const MutexLock lock(mutex);
      // Once over the limit, down to where a tenth is free.
      if (usage.all().bytes > target) target = options.max_bytes - options.max_bytes / 10;
      victim = Victim(keep, target);
    }
    if (!victim.has_value() || !Evict(*victim)) return;
  }
}

bool ArtifactCache::Impl::Evict(const std::string& key) {
  const MutexLock stripe(StripeOf(key));
  if (!RemoveLocked(key).ok()) return false;
  const MutexLock lock(mutex);
  ++stats.evicted;
  return true;
}

// The least recently used entry of the scope of `keep` that may go.
std::optional<std::string> ArtifactCache::Impl::VictimInScope(const std::string& keep) const {
  const UsageIndex::Key kept = UsageKey(keep);
  const std::optional<UsageIndex::Key> oldest = usage.OldestOfScope(kept.scope, &kept);
  if (!oldest.has_value()) return std::nullopt;
  return oldest->scope + "/" + oldest->name;
}

void ArtifactCache::Impl::EvictInScope(const std::string& keep) {
  if (!options.scope_limit) return;
  const std::string scope = UsageKey(keep).scope;
  const uint64_t limit = options.scope_limit(scope);
  uint64_t target = limit;
  while (true) {
    std::optional<std::string> victim;
    {
      const MutexLock lock(mutex);
      if (usage.OfScope(scope).bytes <= target) return;
      target = limit - limit / 10;
      victim = VictimInScope(keep);
    }
    if (!victim.has_value() || !Evict(*victim)) return;
  }
}

// --- The reader ----------------------------------------------------------------------------------

namespace {

// Impl is ArtifactCache::Impl, which only the cache's own functions may name.
template <typename Impl>
class ChunkReader : public ArtifactReader {
 public:
  ChunkReader(Impl* impl, std::string key, ManifestItem item,
              std::unique_ptr<rocksdb::ManagedSnapshot> snapshot)
      : impl_(impl), key_(std::move(key)), item_(std::move(item)), snapshot_(std::move(snapshot)) {
    read_.snapshot = snapshot_->snapshot();
    impl_->Pin(key_);
  }
  ~ChunkReader() override { impl_->Unpin(key_); }
  ChunkReader(const ChunkReader&) = delete;
  ChunkReader& operator=(const ChunkReader&) = delete;

  const ArtifactInfo& info() const override { return item_.info; }

  absl::StatusOr<std::string> Read(uint64_t offset, size_t max_bytes) override {
    const uint64_t size = item_.info.size_bytes;
    if (offset > size) {
      return absl::OutOfRangeError(absl::StrCat("artifact '", item_.info.name, "': offset ", offset,
                                                " is past the end, ", size));
    }
    const uint64_t end = offset + std::min<uint64_t>({size - offset, uint64_t{max_bytes},
                                                      uint64_t{ArtifactCache::kMaxReadBytes}});
    std::string out;
    out.reserve(static_cast<size_t>(end - offset));
    while (offset < end) {
      const uint64_t chunk = offset / ArtifactCache::kChunkBytes;
      const uint64_t begin = chunk * ArtifactCache::kChunkBytes;
      const absl::StatusOr<std::string> bytes = impl_->ReadChunk(key_, item_, chunk, read_);
      if (absl::IsDataLoss(bytes.status())) impl_->RemoveDamaged(key_, read_);
      if (!bytes.ok()) return bytes.status();
      const uint64_t stop = std::min<uint64_t>(end, begin + bytes->size());
      out.append(*bytes, static_cast<size_t>(offset - begin), static_cast<size_t>(stop - offset));
      offset = stop;
    }
    return out;
  }

 private:
  Impl* impl_;
  const std::string key_;
  const ManifestItem item_;
  const std::unique_ptr<rocksdb::ManagedSnapshot> snapshot_;
  rocksdb::ReadOptions read_;
};

}  // namespace

// --- The interface -------------------------------------------------------------------------------

ArtifactCache::ArtifactCache(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ArtifactCache::~ArtifactCache() = default;

absl::StatusOr<std::unique_ptr<ArtifactCache>> ArtifactCache::Open(ArtifactCacheOptions options) {
  auto impl = std::make_unique<Impl>(std::move(options));
  RETURN_IF_ERROR(impl->OpenDatabase());
  RETURN_IF_ERROR(impl->CheckFormat());
  RETURN_IF_ERROR(impl->LoadIndex());
  return std::unique_ptr<ArtifactCache>(new ArtifactCache(std::move(impl)));
}

absl::StatusOr<std::optional<CachedResult>> ArtifactCache::Lookup(const CacheKey& key) {
  return Lookup(key, Check::kFull);
}

absl::StatusOr<std::optional<CachedResult>> ArtifactCache::Lookup(const CacheKey& key,
                                                                  Check check) {
  const std::string name = key.ToString();
  if (const auto found = impl_->Remembered(name)) return std::optional<CachedResult>(*found);
  bool checked = false;
  // Before the snapshot, so that what is noted of a version was seen in it or in a later one, which
  // then has another number.
  const uint64_t version = impl_->VersionOf(name, &checked);
  const bool skip = checked || check == Check::kManifest;
  rocksdb::ManagedSnapshot snapshot(impl_->db.get());
  rocksdb::ReadOptions read;
  read.snapshot = snapshot.snapshot();
  CachedResult result;
  absl::Status status = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const Manifest manifest, impl_->ReadManifest(name, read));
    result.stored_at = manifest.stored_at;
    for (const ManifestItem& item : manifest.items) {
      const bool is_metadata = item.info.name.empty();
      if (!is_metadata) result.artifacts.push_back(item.info);
      if (!is_metadata && skip) continue;
      RETURN_IF_ERROR(impl_->CheckAll(name, item, is_metadata ? &result.metadata : nullptr, read));
    }
    return absl::OkStatus();
  }();
  if (absl::IsDataLoss(status)) impl_->RemoveDamaged(name, read);
  if (status.ok()) impl_->Touch(name);
  if (status.ok() && !skip) impl_->NoteChecked(name, version, result);
  const MutexLock lock(impl_->mutex);
  ++(status.ok() ? impl_->stats.hits : impl_->stats.misses);
  if (status.ok()) return std::optional<CachedResult>(std::move(result));
  if (absl::IsDataLoss(status) || absl::IsNotFound(status)) return std::optional<CachedResult>();
  return status;
}

absl::StatusOr<std::vector<ArtifactInfo>> ArtifactCache::Store(
    const CacheKey& key, absl::Span<const ArtifactView> artifacts, absl::string_view metadata,
    const Confirm& confirm) {
  if (artifacts.size() > impl_->options.max_artifacts) {
    return absl::InvalidArgumentError(absl::StrCat("artifact cache: ", artifacts.size(),
                                                   " artifacts, at most ",
                                                   impl_->options.max_artifacts));
  }
  std::set<absl::string_view> names;
  uint64_t total = metadata.size();
  for (const ArtifactView& artifact : artifacts) {
    if (!IsValidArtifactName(artifact.name) || !names.insert(artifact.name).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "artifact cache: artifact name '", Printable(artifact.name), "' is bad or repeated"));
    }
    total += artifact.bytes.size();
  }
  if (metadata.size() > kMaxMetadataBytes ||
      total > std::min(impl_->options.max_entry_bytes, impl_->options.max_bytes)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "artifact cache: result of ", total, " bytes (", metadata.size(), " of metadata), at most ",
        std::min(impl_->options.max_entry_bytes, impl_->options.max_bytes), " (", kMaxMetadataBytes,
        ")"));
  }

  const std::string name = key.ToString();
  Manifest manifest;
  manifest.stored_at = impl_->options.now();
  std::vector<std::shared_ptr<const PackedArtifact>> packed = {PackArtifact("", metadata)};
  for (const ArtifactView& artifact : artifacts) {
    packed.push_back(artifact.packed != nullptr ? artifact.packed
                                                : PackArtifact(artifact.name, artifact.bytes));
  }
  size_t packed_bytes = kWriteOverheadBytes;
  for (const auto& item : packed) {
    manifest.items.push_back(item->item);
    for (const std::string& chunk : item->chunks) packed_bytes += chunk.size();
  }
  {
    const MutexLock stripe(impl_->StripeOf(name));
    rocksdb::WriteBatch batch(/*reserved_bytes=*/packed_bytes);
    // Chunks of the old entry that the new one does not have must go; those it has are written
    // after.
    impl_->AddRemoval(name, batch);
    for (const auto& item : packed) impl_->AddChunks(name, *item, batch);
    batch.Put(impl_->entries(), name, EncodeManifest(name, manifest));
    batch.Put(impl_->access(), name, EncodeTime(manifest.stored_at));
    if (confirm) RETURN_IF_ERROR(confirm());
    rocksdb::WriteOptions write;
    write.sync = impl_->options.sync_writes;
    RETURN_IF_ERROR(ToStatus(impl_->db->Write(write, &batch), "cannot store"));
    impl_->Index(name, manifest.TotalBytes(), manifest.stored_at);
    const MutexLock lock(impl_->mutex);
    ++impl_->stats.stored;
  }
  impl_->EvictInScope(name);
  impl_->EvictOver(name);
  std::vector<ArtifactInfo> infos;
  for (size_t i = 1; i < manifest.items.size(); ++i) infos.push_back(manifest.items[i].info);
  return infos;
}

absl::StatusOr<std::unique_ptr<ArtifactReader>> ArtifactCache::OpenArtifact(
    const CacheKey& key, absl::string_view name) {
  const std::string entry = key.ToString();
  auto snapshot = std::make_unique<rocksdb::ManagedSnapshot>(impl_->db.get());
  rocksdb::ReadOptions read;
  read.snapshot = snapshot->snapshot();
  absl::StatusOr<Manifest> manifest = impl_->ReadManifest(entry, read);
  if (absl::IsDataLoss(manifest.status())) impl_->RemoveDamaged(entry, read);
  if (absl::IsDataLoss(manifest.status()) || absl::IsNotFound(manifest.status())) {
    return NotThere(key, "no such result; compile it again");
  }
  RETURN_IF_ERROR(manifest.status());
  for (ManifestItem& item : manifest->items) {
    if (item.info.name != name || name.empty()) continue;
    impl_->Touch(entry);
    return std::unique_ptr<ArtifactReader>(std::make_unique<ChunkReader<Impl>>(
        impl_.get(), entry, std::move(item), std::move(snapshot)));
  }
  return NotThere(key, absl::StrCat("no artifact '", Printable(name), "'"));
}

absl::StatusOr<std::string> ArtifactCache::ReadArtifact(const CacheKey& key, absl::string_view name,
                                                        uint64_t offset, size_t max_bytes) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ArtifactReader> reader, OpenArtifact(key, name));
  return reader->Read(offset, max_bytes);
}

absl::StatusOr<bool> ArtifactCache::Remove(const CacheKey& key) {
  const std::string name = key.ToString();
  const MutexLock stripe(impl_->StripeOf(name));
  bool checked = false;
  const bool is_there = impl_->VersionOf(name, &checked) != 0;
  RETURN_IF_ERROR(impl_->RemoveLocked(name));
  return is_there;
}

absl::Status ArtifactCache::Checkpoint(const std::string& path) {
  rocksdb::Checkpoint* made = nullptr;
  RETURN_IF_ERROR(
      ToStatus(rocksdb::Checkpoint::Create(impl_->db.get(), &made), "make a checkpoint"));
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  return ToStatus(checkpoint->CreateCheckpoint(path), "make a checkpoint");
}

std::vector<CacheKey> ArtifactCache::Keys() const {
  std::vector<std::string> names;
  {
    const MutexLock lock(impl_->mutex);
    for (const auto& [name, entry] : impl_->index) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  std::vector<CacheKey> keys;
  for (const std::string& name : names) {
    absl::StatusOr<CacheKey> key = CacheKey::Parse(name);
    if (key.ok()) keys.push_back(*std::move(key));
  }
  return keys;
}

absl::Status ArtifactCache::Probe() {
  rocksdb::WriteOptions write;
  write.sync = true;
  return ToStatus(impl_->db->Put(write, kFormatKey, kFormat), "probe");
}

ArtifactCache::Stats ArtifactCache::GetStats() const {
  const MutexLock lock(impl_->mutex);
  Stats stats = impl_->stats;
  stats.entries = impl_->usage.size();
  stats.bytes = impl_->usage.all().bytes;
  return stats;
}

}  // namespace npuc::cache
