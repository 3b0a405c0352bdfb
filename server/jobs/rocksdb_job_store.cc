#include "server/jobs/rocksdb_job_store.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <unordered_set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cache/posix.h"
#include "cache/rocksdb_log.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/mutex.h"
#include "compiler_core/base/status.h"
#include "rocksdb/db.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/options.h"
#include "rocksdb/statistics.h"
#include "rocksdb/table.h"
#include "rocksdb/utilities/checkpoint.h"
#include "rocksdb/write_batch.h"
#include "server/jobs/committer.h"
#include "server/jobs/service_error.h"

namespace npuc::jobs {
namespace {

enum Family : size_t { kDefault, kJobs, kConfigs, kEvents, kRequests, kLive, kEnded, kFamilies };
constexpr std::array<const char*, kFamilies> kFamilyNames = {
    "default", "jobs", "configs", "events", "requests", "live", "ended"};
constexpr char kFormatKey[] = "format";
constexpr char kProbeKey[] = "probe";
// A file beside the database's: the sequence number up to which all is synced, in so many digits.
constexpr char kSyncedFile[] = "synced_sequence";
constexpr size_t kSyncedDigits = 20;

// A write of several changes is about as large at most; one change may be larger.
constexpr size_t kMaxGroupBytes = 1 << 20;

// RocksDB goes on after a full disk where there is room for one of these again.
constexpr size_t kWriteBufferBytes = size_t{32} << 20;

// A page of List looks at no more records than this.
constexpr size_t kMaxRecordsPerPage = 20000;

rocksdb::Slice ToSlice(absl::string_view text) { return {text.data(), text.size()}; }
absl::string_view FromSlice(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

absl::Status FromRocks(const rocksdb::Status& status, absl::string_view what) {
  if (status.ok()) return absl::OkStatus();
  const std::string text = absl::StrCat("job store: ", what, ": ", status.ToString());
  if (status.IsCorruption()) {
    return ServiceError(absl::StatusCode::kDataLoss, text, {.reason = "STORE_FAILED"});
  }
  if (status.IsNoSpace()) {
    return ServiceError(absl::StatusCode::kResourceExhausted,
                        absl::StrCat(text,
                                     "; free some space on that disk: jobs are stored again, "
                                     "within some seconds, once ",
                                     kWriteBufferBytes >> 20, " MiB are free"),
                        {.reason = "STORAGE_FULL", .retry_delay = absl::Seconds(30)});
  }
  return ServiceError(absl::StatusCode::kInternal, text, {.reason = "STORE_FAILED"});
}

void AppendBigEndian(uint64_t value, std::string& out) {
  for (int shift = 56; shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>((value >> shift) & 0xff));
  }
}

// With the number of the record's last event, so that Seek finds the record that holds a number.
std::string EventKey(absl::string_view job_id, int64_t seq) {
  std::string key = absl::StrCat(job_id, "/");
  AppendBigEndian(static_cast<uint64_t>(seq), key);
  return key;
}

std::string RequestKey(absl::string_view tenant, absl::string_view request_id) {
  return absl::StrCat(tenant, absl::string_view("\0", 1), request_id);
}

// Ascending with time; times before 1970 are not told apart.
std::string EndedKey(absl::Time end_time, absl::string_view job_id) {
  std::string key;
  AppendBigEndian(static_cast<uint64_t>(std::max<int64_t>(0, absl::ToUnixMicros(end_time))), key);
  absl::StrAppend(&key, job_id);
  return key;
}

rocksdb::Options DatabaseOptions() {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  // Each log but the newest one; SyncedFile says of that.
  options.track_and_verify_wals_in_manifest = true;
  options.paranoid_checks = true;
  options.max_open_files = 256;
  options.max_total_wal_size = uint64_t{128} << 20;
  options.info_log = cache::NoRocksDbLog();
  options.max_background_jobs = 2;
  options.statistics = rocksdb::CreateDBStatistics();
  options.statistics->set_stats_level(rocksdb::StatsLevel::kExceptHistogramOrTimers);
  return options;
}

rocksdb::ColumnFamilyOptions FamilyOptions(const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::ColumnFamilyOptions options;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.write_buffer_size = kWriteBufferBytes;
  options.compression = rocksdb::kLZ4Compression;
  return options;
}

absl::Status OpenError(const rocksdb::Status& status, const std::string& path) {
  if (status.ok()) return absl::OkStatus();
  if (status.IsIOError()) RETURN_IF_ERROR(cache::CheckUsable(path));
  const std::string text = status.ToString();
  if (status.IsIOError() && absl::StrContains(text, "lock")) {
    return absl::FailedPreconditionError(
        absl::StrCat("job store: another process uses ", path, ": ", text));
  }
  if (status.IsInvalidArgument() && absl::StrContains(text, "Column families not opened")) {
    return absl::FailedPreconditionError(
        absl::StrCat("job store: a newer npucd wrote ", path, ": ", text));
  }
  return FromRocks(status, absl::StrCat("open ", path));
}

// A change with its stored form, which is made before it is its turn to be written.
struct EncodedChange {
  std::shared_ptr<const JobChange> change;
  std::string request_key;  // of a new job that has a request id
  std::string record;
  std::vector<std::pair<std::string, std::string>> events;  // keys and records
};

EncodedChange Encode(std::shared_ptr<const JobChange> change) {
  EncodedChange encoded;
  const Job& job = change->job;
  if (job.revision == 1 && !job.request_id.empty()) {
    encoded.request_key = RequestKey(job.tenant, job.request_id);
  }
  encoded.record = EncodeJobRecord(job);
  for (EventRecord& record : PackEvents(change->events)) {
    encoded.events.emplace_back(EventKey(job.id, record.last_seq), std::move(record.body));
  }
  encoded.change = std::move(change);
  return encoded;
}

using Changes = Committer<EncodedChange>;

}  // namespace

// Remembers, outside of the logs, what they must have. It is written behind each synced write and
// not synced itself: it survives the process, and a power cut leaves an older number or none, which
// asks for less.
class SyncedFile {
 public:
  absl::Status Open(const std::string& folder) {
    path_ = absl::StrCat(folder, "/", kSyncedFile);
    ASSIGN_OR_RETURN(fd_, cache::OpenFile(path_, O_RDWR | O_CREAT | O_NOFOLLOW));
    return absl::OkStatus();
  }
  // 0: nothing is known.
  absl::StatusOr<uint64_t> Read() const {
    ASSIGN_OR_RETURN(const std::string text, cache::ReadUpToAt(fd_.get(), 0, kSyncedDigits, path_));
    uint64_t sequence = 0;
    const bool whole = text.size() == kSyncedDigits && absl::SimpleAtoi(text, &sequence);
    return whole ? sequence : 0;
  }
  absl::Status Write(uint64_t sequence) const {
    return cache::WriteAllAt(fd_.get(), absl::StrFormat("%020d", sequence), 0, path_);
  }

 private:
  std::string path_;
  cache::UniqueFd fd_;
};

struct RocksDbJobStore::Impl {
  std::unique_ptr<rocksdb::DB> db;
  mutable Mutex write_mutex;  // one write at a time, so that `synced` knows what each has synced
  SyncedFile synced NPUC_GUARDED_BY(write_mutex);
  bool sync_changes = true;
  std::array<rocksdb::ColumnFamilyHandle*, kFamilies> families = {};
  ~Impl() {
    changes.reset();  // writes what is left
    if (db == nullptr) return;
    for (rocksdb::ColumnFamilyHandle* family : families) {
      if (family != nullptr) db->DestroyColumnFamilyHandle(family);
    }
    db->Close();
  }

  absl::StatusOr<std::optional<std::string>> Get(Family family, absl::string_view key) const {
    std::string value;
    const rocksdb::Status status =
        db->Get(rocksdb::ReadOptions(), families[family], ToSlice(key), &value);
    if (status.IsNotFound()) return std::nullopt;
    RETURN_IF_ERROR(FromRocks(status, "read"));
    return value;
  }

  absl::Status OpenDatabase(const std::string& path);
  absl::Status CheckLogs(const std::string& path) const;
  absl::Status CheckFormat();
  absl::Status Write(rocksdb::WriteBatch& batch, bool sync, absl::string_view what);
  size_t Commit(Changes::Group group);
  absl::Status Add(const EncodedChange& encoded, rocksdb::WriteBatch& batch) const;
  std::unique_ptr<rocksdb::Iterator> Iterate(Family family) const {
    return std::unique_ptr<rocksdb::Iterator>(
        db->NewIterator(rocksdb::ReadOptions(), families[family]));
  }

  // Between the check of a change and its write nothing comes: one thread does both.
  std::optional<Changes> changes{
      std::in_place, [this](Changes::Group group) { return Commit(group); }, Answers::kByWriter};
};

absl::Status RocksDbJobStore::Impl::CheckFormat() {
  ASSIGN_OR_RETURN(const std::optional<std::string> format, Get(kDefault, kFormatKey));
  if (!format.has_value()) {
    // Nobody writes before this, so a database without a format but with jobs is not ours.
    const std::unique_ptr<rocksdb::Iterator> jobs = Iterate(kJobs);
    jobs->SeekToFirst();
    if (jobs->Valid()) {
      return absl::DataLossError("job store: it holds jobs but no format version");
    }
    rocksdb::WriteBatch batch;
    batch.Put(families[kDefault], kFormatKey, kFormatVersion);
    return Write(batch, /*sync=*/true, "write the format version");
  }
  if (*format != kFormatVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "job store: it has format version '", Printable(*format), "', this npucd reads '",
        kFormatVersion, "'; start the npucd that wrote it, or use another --data-dir"));
  }
  return absl::OkStatus();
}

// The only way to write.
absl::Status RocksDbJobStore::Impl::Write(rocksdb::WriteBatch& batch, bool sync,
                                          absl::string_view what) {
  rocksdb::WriteOptions options;
  options.sync = sync;
  const MutexLock lock(write_mutex);
  RETURN_IF_ERROR(FromRocks(db->Write(options, &batch), what));
  return sync ? synced.Write(db->GetLatestSequenceNumber()) : absl::OkStatus();
}

// Compares what the logs have with what was synced, by an opening that changes nothing: what is
// missing may be put back. RocksDB itself takes a newest log that is gone, or was cut, in silence.
absl::Status RocksDbJobStore::Impl::CheckLogs(const std::string& path) const {
  const MutexLock lock(write_mutex);
  ASSIGN_OR_RETURN(const uint64_t wanted, synced.Read());
  if (wanted == 0) return absl::OkStatus();
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  for (const char* name : kFamilyNames) {
    descriptors.emplace_back(name, rocksdb::ColumnFamilyOptions());
  }
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* opened = nullptr;
  RETURN_IF_ERROR(OpenError(
      rocksdb::DB::OpenForReadOnly(DatabaseOptions(), path, descriptors, &handles, &opened), path));
  const std::unique_ptr<rocksdb::DB> reader(opened);
  const uint64_t found = reader->GetLatestSequenceNumber();
  for (rocksdb::ColumnFamilyHandle* handle : handles) reader->DestroyColumnFamilyHandle(handle);
  if (found >= wanted) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "job store: ", path, " has lost accepted jobs: a log (*.log) of it is missing or was cut, ",
      "what is there ends at change ", found, " of ", wanted, "; put that log back; or delete ",
      path, "/", kSyncedFile, " to go on without what it held"));
}

absl::Status RocksDbJobStore::Impl::OpenDatabase(const std::string& path) {
  const std::shared_ptr<rocksdb::Cache> cache = rocksdb::NewLRUCache(size_t{64} << 20);
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  for (const char* name : kFamilyNames) descriptors.emplace_back(name, FamilyOptions(cache));
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* opened = nullptr;
  RETURN_IF_ERROR(
      OpenError(rocksdb::DB::Open(DatabaseOptions(), path, descriptors, &handles, &opened), path));
  db.reset(opened);
  std::copy(handles.begin(), handles.end(), families.begin());
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<RocksDbJobStore>> RocksDbJobStore::Open(const std::string& path,
                                                                       bool sync_changes) {
  RETURN_IF_ERROR(cache::MakeFolder(path));
  auto impl = std::make_unique<Impl>();
  impl->sync_changes = sync_changes;
  {
    const MutexLock lock(impl->write_mutex);
    RETURN_IF_ERROR(impl->synced.Open(path));
  }
  RETURN_IF_ERROR(impl->CheckLogs(path));
  RETURN_IF_ERROR(impl->OpenDatabase(path));
  RETURN_IF_ERROR(impl->CheckFormat());
  return std::unique_ptr<RocksDbJobStore>(new RocksDbJobStore(std::move(impl)));
}

RocksDbJobStore::RocksDbJobStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RocksDbJobStore::~RocksDbJobStore() = default;

// Checks a change against what is stored and adds it to the batch; an error leaves the batch alone.
absl::Status RocksDbJobStore::Impl::Add(const EncodedChange& encoded,
                                        rocksdb::WriteBatch& batch) const {
  const Job& job = encoded.change->job;
  ASSIGN_OR_RETURN(const std::optional<std::string> record, Get(kJobs, job.id));
  JobState stored_state = JobState::kQueued;
  if (record.has_value()) {
    ASSIGN_OR_RETURN(const Job stored, DecodeJobRecord(*record));
    RETURN_IF_ERROR(CheckChange(*encoded.change, &stored));
    stored_state = stored.state;
  } else {
    RETURN_IF_ERROR(CheckChange(*encoded.change, nullptr));
    if (!encoded.request_key.empty()) {
      ASSIGN_OR_RETURN(const std::optional<std::string> owner, Get(kRequests, encoded.request_key));
      if (owner.has_value()) return absl::AlreadyExistsError("the request id is taken");
      batch.Put(families[kRequests], encoded.request_key, job.id);
    }
    batch.Put(families[kConfigs], job.id, encoded.change->config_text.value_or(""));
  }
  if (IsTerminal(job.state)) {
    if (record.has_value()) batch.Delete(families[kLive], job.id);
    batch.Put(families[kEnded], EndedKey(job.end_time, job.id), "");
  } else if (!record.has_value() || stored_state != job.state) {
    batch.Put(families[kLive], job.id, EncodeLiveJob(ToLiveJob(job)));
  }
  batch.Put(families[kJobs], job.id, encoded.record);
  for (const auto& [key, events] : encoded.events) batch.Put(families[kEvents], key, events);
  return absl::OkStatus();
}

// One write of the first changes of a group: up to one for a job or request id that an earlier one
// is for, too, which must see that one stored.
size_t RocksDbJobStore::Impl::Commit(Changes::Group group) {
  rocksdb::WriteBatch batch;
  std::unordered_set<std::string> names;
  size_t count = 0;
  for (; count < group.size() && batch.GetDataSize() < kMaxGroupBytes; ++count) {
    const EncodedChange& encoded = group[count].payload;
    if (group.size() > 1) {
      const bool is_new = names.insert(absl::StrCat("j", encoded.change->job.id)).second &&
                          (encoded.request_key.empty() ||
                           names.insert(absl::StrCat("r", encoded.request_key)).second);
      if (!is_new) break;
    }
    group[count].status = Add(encoded, batch);
  }
  if (batch.Count() == 0) return count;
  const absl::Status written = Write(batch, sync_changes, "write");
  for (size_t i = 0; i < count; ++i) group[i].status.Update(written);
  return count;
}

void RocksDbJobStore::Apply(std::shared_ptr<const JobChange> change, Done done) {
  impl_->changes->Put(Encode(std::move(change)), std::move(done));
}

absl::StatusOr<Job> RocksDbJobStore::Read(absl::string_view job_id) const {
  ASSIGN_OR_RETURN(const std::optional<std::string> record, impl_->Get(kJobs, job_id));
  if (!record.has_value()) return JobNotFound(job_id);
  return DecodeJobRecord(*record);
}

absl::StatusOr<std::string> RocksDbJobStore::ReadConfig(absl::string_view job_id) const {
  ASSIGN_OR_RETURN(std::optional<std::string> text, impl_->Get(kConfigs, job_id));
  if (!text.has_value()) return JobNotFound(job_id);
  return *std::move(text);
}

absl::StatusOr<std::optional<std::string>> RocksDbJobStore::FindRequest(
    absl::string_view tenant, absl::string_view request_id) const {
  return impl_->Get(kRequests, RequestKey(tenant, request_id));
}

absl::StatusOr<JobPage> RocksDbJobStore::List(const JobListQuery& query) const {
  const std::unique_ptr<rocksdb::Iterator> it = impl_->Iterate(kJobs);
  if (query.before_id.empty()) {
    it->SeekToLast();
  } else {
    it->SeekForPrev(query.before_id);
    if (it->Valid() && FromSlice(it->key()) == query.before_id) it->Prev();
  }
  JobPage page;
  std::string last_seen;
  for (size_t seen = 0; it->Valid(); it->Prev(), ++seen) {
    if (page.jobs.size() == query.limit || seen == kMaxRecordsPerPage) {
      page.next_before = last_seen;
      break;
    }
    last_seen = it->key().ToString();
    ASSIGN_OR_RETURN(Job job, DecodeJobRecord(FromSlice(it->value())));
    if (!Matches(query, job)) continue;
    job.diagnostics.clear();
    page.jobs.push_back(std::move(job));
  }
  RETURN_IF_ERROR(FromRocks(it->status(), "list"));
  return page;
}

absl::StatusOr<std::vector<JobEvent>> RocksDbJobStore::ReadEvents(absl::string_view job_id,
                                                                  int64_t from_seq,
                                                                  size_t max_count,
                                                                  size_t max_bytes) const {
  const std::string prefix = absl::StrCat(job_id, "/");
  const std::unique_ptr<rocksdb::Iterator> it = impl_->Iterate(kEvents);
  std::vector<JobEvent> events;
  size_t bytes = 0;
  bool is_full = false;
  for (it->Seek(EventKey(job_id, std::max<int64_t>(from_seq, 1)));
       it->Valid() && !is_full && it->key().starts_with(prefix); it->Next()) {
    ASSIGN_OR_RETURN(std::vector<StoredEvent> stored, DecodeEvents(FromSlice(it->value())));
    for (StoredEvent& one : stored) {
      if (one.event.seq < from_seq) continue;
      bytes += one.bytes;
      is_full = events.size() >= max_count || (!events.empty() && bytes > max_bytes);
      if (is_full) break;
      events.push_back(std::move(one.event));
    }
  }
  RETURN_IF_ERROR(FromRocks(it->status(), "read events"));
  return events;
}

absl::Status RocksDbJobStore::ForEachLive(
    const std::function<absl::Status(LiveJob job)>& visit) const {
  const std::unique_ptr<rocksdb::Iterator> it = impl_->Iterate(kLive);
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    ASSIGN_OR_RETURN(LiveJob job, DecodeLiveJob(FromSlice(it->key()), FromSlice(it->value())));
    RETURN_IF_ERROR(visit(std::move(job)));
  }
  return FromRocks(it->status(), "list live jobs");
}

absl::StatusOr<size_t> RocksDbJobStore::Prune(absl::Time ended_before, size_t max_jobs) {
  const std::string end = EndedKey(ended_before, "");
  const std::unique_ptr<rocksdb::Iterator> it = impl_->Iterate(kEnded);
  rocksdb::WriteBatch batch;
  size_t pruned = 0;
  for (it->SeekToFirst(); it->Valid() && pruned < max_jobs && FromSlice(it->key()) < end;
       it->Next(), ++pruned) {
    const std::string id = it->key().ToString().substr(sizeof(uint64_t));
    batch.Delete(impl_->families[kEnded], it->key());
    ASSIGN_OR_RETURN(const std::optional<std::string> record, impl_->Get(kJobs, id));
    if (!record.has_value()) continue;
    ASSIGN_OR_RETURN(const Job job, DecodeJobRecord(*record));
    if (!job.request_id.empty()) {
      batch.Delete(impl_->families[kRequests], RequestKey(job.tenant, job.request_id));
    }
    batch.Delete(impl_->families[kJobs], id);
    batch.Delete(impl_->families[kConfigs], id);
    batch.DeleteRange(impl_->families[kEvents], absl::StrCat(id, "/"), absl::StrCat(id, "0"));
  }
  RETURN_IF_ERROR(FromRocks(it->status(), "prune"));
  // Without a sync: what a crash brings back is pruned again.
  if (pruned > 0) {
    RETURN_IF_ERROR(impl_->Write(batch, /*sync=*/false, "prune"));
  }
  return pruned;
}

absl::Status RocksDbJobStore::Checkpoint(const std::string& path) {
  rocksdb::Checkpoint* made = nullptr;
  RETURN_IF_ERROR(FromRocks(rocksdb::Checkpoint::Create(impl_->db.get(), &made), "checkpoint"));
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  const MutexLock lock(impl_->write_mutex);
  RETURN_IF_ERROR(FromRocks(checkpoint->CreateCheckpoint(path), "checkpoint"));
  SyncedFile synced;
  RETURN_IF_ERROR(synced.Open(path));
  return synced.Write(impl_->db->GetLatestSequenceNumber());
}

absl::Status RocksDbJobStore::Probe() {
  rocksdb::WriteBatch batch;
  batch.Put(impl_->families[kDefault], kProbeKey, "");
  return impl_->Write(batch, /*sync=*/true, "probe");
}

uint64_t RocksDbJobStore::log_syncs() const {
  return impl_->db->GetOptions().statistics->getTickerCount(rocksdb::Tickers::WAL_FILE_SYNCED);
}

}  // namespace npuc::jobs
