#include "server/backup/backup.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cache/blob_files.h"
#include "cache/posix.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/status.h"
#include "nlohmann/json.hpp"
#include "server/backup/snapshot.h"
#include "server/startup.h"

namespace npuc::backup {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr size_t kPieceBytes = 1 << 20;
constexpr size_t kMaxManifestBytes = size_t{1} << 28;
constexpr absl::Duration kLook = absl::Milliseconds(50);

absl::Status FromSystem(const std::error_code& error, absl::string_view what,
                        const std::string& path) {
  if (!error) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(what, " ", path, ": ", error.message()));
}

absl::StatusOr<std::unique_ptr<cache::BlobStore>> OpenBlobs(const std::string& data_dir) {
  cache::BlobStoreOptions options;
  options.root = data_dir + "/blobs";
  return cache::BlobStore::Open(std::move(options));
}

// The stores of a data directory on which no daemon runs.
struct OwnStores {
  std::unique_ptr<jobs::RocksDbJobStore> jobs;
  std::unique_ptr<cache::BlobStore> blobs;
  std::unique_ptr<cache::ArtifactCache> artifacts;

  OpenStores view() const { return {jobs.get(), blobs.get(), artifacts.get()}; }

  static absl::StatusOr<OwnStores> Open(const std::string& data_dir) {
    OwnStores stores;
    ASSIGN_OR_RETURN(stores.jobs, jobs::RocksDbJobStore::Open(data_dir + "/jobs"));
    ASSIGN_OR_RETURN(stores.blobs, OpenBlobs(data_dir));
    // Each look at an entry is a whole check.
    ASSIGN_OR_RETURN(stores.artifacts,
                     cache::ArtifactCache::Open(
                         {.path = data_dir + "/artifacts", .recheck = absl::ZeroDuration()}));
    return stores;
  }
};

absl::Status CheckIsData(const std::string& data_dir) {
  std::error_code error;
  if (fs::is_directory(data_dir + "/jobs", error)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(data_dir, " is no data directory of npucd: it has no folder jobs"));
}

absl::Status CheckIsFree(const std::string& folder) {
  std::error_code error;
  if (!fs::exists(folder, error)) return absl::OkStatus();
  if (fs::is_directory(folder, error) && fs::is_empty(folder, error)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(folder, " is in use: it must be a new or an empty folder"));
}

// Copies one file and makes it durable; its digest.
absl::StatusOr<std::string> CopyFile(const std::string& from, const std::string& to,
                                     int64_t& bytes) {
  ASSIGN_OR_RETURN(const cache::UniqueFd in, cache::OpenFile(from, O_RDONLY | O_NOFOLLOW));
  ASSIGN_OR_RETURN(const cache::UniqueFd out,
                   cache::OpenFile(to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW));
  Sha256Stream digest;
  bytes = 0;
  while (true) {
    ASSIGN_OR_RETURN(const std::string piece,
                     cache::ReadUpToAt(in.get(), static_cast<uint64_t>(bytes), kPieceBytes, from));
    if (piece.empty()) break;
    RETURN_IF_ERROR(cache::WriteAllAt(out.get(), piece, static_cast<uint64_t>(bytes), to));
    digest.Update(piece);
    bytes += static_cast<int64_t>(piece.size());
  }
  if (fsync(out.get()) != 0) return cache::ErrnoStatus(errno, "sync", to);
  return digest.FinishHex();
}

// The plain files below a folder, by their names below it, in order.
absl::StatusOr<std::vector<std::string>> FilesBelow(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (it->is_regular_file(error) && !it->is_symlink(error)) {
      names.push_back(fs::relative(it->path(), folder).string());
    }
  }
  RETURN_IF_ERROR(FromSystem(error, "read", folder));
  std::sort(names.begin(), names.end());
  return names;
}

// Makes the folders that a file needs below `root`.
absl::Status MakeFoldersFor(const std::string& root, const std::string& name) {
  std::error_code error;
  fs::create_directories(fs::path(root) / fs::path(name).parent_path(), error);
  return FromSystem(error, "make a folder for", name);
}

absl::Status SyncFolders(const std::string& root) {
  std::error_code error;
  std::vector<std::string> folders = {root};
  for (fs::recursive_directory_iterator it(root, error), end; !error && it != end;
       it.increment(error)) {
    if (it->is_directory(error)) folders.push_back(it->path().string());
  }
  for (const std::string& folder : folders) RETURN_IF_ERROR(cache::SyncFolder(folder));
  return FromSystem(error, "read", root);
}

// Copies a snapshot, then writes the manifest.
absl::StatusOr<CopiedFiles> CopySnapshot(const std::string& snapshot, const std::string& target,
                                         const std::string& version) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, FilesBelow(snapshot));
  CopiedFiles copied;
  Json files = Json::array();
  for (const std::string& name : names) {
    RETURN_IF_ERROR(MakeFoldersFor(target, name));
    int64_t bytes = 0;
    ASSIGN_OR_RETURN(const std::string sha256, CopyFile(absl::StrCat(snapshot, "/", name),
                                                        absl::StrCat(target, "/", name), bytes));
    files.push_back({{"name", name}, {"size", bytes}, {"sha256", sha256}});
    ++copied.files;
    copied.bytes += bytes;
  }
  const Json manifest = {{"format", kBackupFormat},
                         {"version", version},
                         {"created", absl::FormatTime(absl::Now(), absl::UTCTimeZone())},
                         {"files", files}};
  RETURN_IF_ERROR(SyncFolders(target));
  const std::string path = absl::StrCat(target, "/", kManifestName);
  ASSIGN_OR_RETURN(const cache::UniqueFd out,
                   cache::OpenFile(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW));
  RETURN_IF_ERROR(cache::WriteAllAt(out.get(), manifest.dump(1) + "\n", 0, path));
  if (fsync(out.get()) != 0) return cache::ErrnoStatus(errno, "sync", path);
  RETURN_IF_ERROR(cache::SyncFolder(target));
  return copied;
}

// Asks the daemon that runs on the data directory, and waits for its answer.
absl::Status AskForSnapshot(const BackupOptions& options, const std::string& path) {
  std::ofstream(path + kRequestEnding).flush();
  std::error_code error;
  if (!fs::exists(path + kRequestEnding, error)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot write ", path, kRequestEnding,
        "; run this as the daemon's user, on the data directory of an npucd that runs"));
  }
  const absl::Time limit = absl::Now() + options.patience;
  while (!fs::exists(path, error)) {
    if (fs::exists(path + kFailedEnding, error)) {
      std::ifstream in(path + kFailedEnding);
      const std::string reason(std::istreambuf_iterator<char>(in), {});
      fs::remove(path + kFailedEnding, error);
      return absl::InternalError(absl::StrCat("the daemon could not make a snapshot: ", reason));
    }
    if (absl::Now() > limit) {
      fs::remove(path + kRequestEnding, error);
      return absl::DeadlineExceededError(absl::StrCat(
          "the daemon on ", options.data_dir, " made no snapshot within ",
          absl::FormatDuration(options.patience), "; is it of a version that has backups?"));
    }
    absl::SleepFor(kLook);
  }
  return absl::OkStatus();
}

// One file of a manifest, checked before any of it is used.
struct ListedFile {
  std::string name;
  int64_t size = 0;
  std::string sha256;
};

bool IsPlainName(const std::string& name) {
  if (name.empty() || name.size() > 4096 || name[0] == '/') return false;
  const fs::path path(name);
  return std::none_of(path.begin(), path.end(), [](const fs::path& part) {
    return part.empty() || part == "." || part == "..";
  });
}

absl::StatusOr<std::vector<ListedFile>> ReadManifest(const std::string& source) {
  const std::string path = absl::StrCat(source, "/", kManifestName);
  const auto wrong = [&](absl::string_view why) {
    return absl::DataLossError(absl::StrCat(path, " ", why, "; the backup cannot be used"));
  };
  absl::StatusOr<cache::UniqueFd> in = cache::OpenFile(path, O_RDONLY | O_NOFOLLOW);
  if (!in.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat(source, " is no whole backup: it has no ", kManifestName));
  }
  ASSIGN_OR_RETURN(const std::string text,
                   cache::ReadUpToAt(in->get(), 0, kMaxManifestBytes, path));
  const Json manifest = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!manifest.is_object() || !manifest.contains("format") || !manifest.contains("files") ||
      !manifest["files"].is_array()) {
    return wrong("is damaged");
  }
  if (manifest["format"] != kBackupFormat) return wrong("is of a format that this npucd lacks");
  std::vector<ListedFile> files;
  for (const Json& file : manifest["files"]) {
    if (!file.is_object() || !file.contains("name") || !file["name"].is_string() ||
        !file.contains("size") || !file["size"].is_number_integer() || !file.contains("sha256") ||
        !file["sha256"].is_string() || !IsPlainName(file["name"])) {
      return wrong("is damaged");
    }
    files.push_back({file["name"], file["size"], file["sha256"]});
  }
  return files;
}

absl::StatusOr<CopiedFiles> CopyListed(const std::string& source,
                                       const std::vector<ListedFile>& files,
                                       const std::string& data_dir) {
  CopiedFiles copied;
  for (const ListedFile& file : files) {
    RETURN_IF_ERROR(MakeFoldersFor(data_dir, file.name));
    int64_t bytes = 0;
    const std::string to = absl::StrCat(data_dir, "/", file.name);
    ASSIGN_OR_RETURN(const std::string sha256,
                     CopyFile(absl::StrCat(source, "/", file.name), to, bytes));
    if (bytes != file.size || sha256 != file.sha256) {
      return absl::DataLossError(absl::StrCat(
          source, "/", file.name, " is not what was backed up; restore another backup"));
    }
    // Uploads are read-only files.
    if (absl::StartsWith(file.name, "blobs/blobs/")) {
      std::error_code error;
      fs::permissions(to, fs::perms::owner_read | fs::perms::group_read | fs::perms::others_read,
                      error);
      RETURN_IF_ERROR(FromSystem(error, "set the mode of", to));
    }
    ++copied.files;
    copied.bytes += bytes;
  }
  RETURN_IF_ERROR(SyncFolders(data_dir));
  return copied;
}

class Check {
 public:
  Check(const OwnStores& stores, const std::function<void(absl::string_view)>& say)
      : stores_(stores), say_(say) {}

  absl::StatusOr<CheckReport> Run(const std::string& data_dir) {
    Jobs();
    RETURN_IF_ERROR(Blobs(data_dir));
    RETURN_IF_ERROR(Results());
    RETURN_IF_ERROR(Inputs());
    return report_;
  }

 private:
  void Jobs() {
    jobs::JobListQuery query{.limit = 500};
    while (true) {
      const absl::StatusOr<jobs::JobPage> page = stores_.jobs->List(query);
      if (!page.ok()) return BeyondRepair("jobs from " + query.before_id + " on", page.status());
      for (const jobs::Job& job : page->jobs) Job(job.id);
      if (page->next_before.empty()) return;
      query.before_id = page->next_before;
    }
  }

  void Job(const std::string& id) {
    ++report_.jobs;
    const absl::StatusOr<jobs::Job> job = stores_.jobs->Read(id);
    if (!job.ok()) return BeyondRepair("job " + id, job.status());
    const absl::StatusOr<std::string> config = stores_.jobs->ReadConfig(id);
    if (!config.ok()) return BeyondRepair("the config of job " + id, config.status());
    int64_t next = 1;
    while (next <= job->last_seq) {
      const auto events = stores_.jobs->ReadEvents(id, next, 1000, 1 << 20);
      if (!events.ok()) return BeyondRepair("the events of job " + id, events.status());
      if (events->empty()) {
        return BeyondRepair(absl::StrCat("event ", next, " of job ", id),
                            absl::DataLossError("it is missing"));
      }
      report_.events += static_cast<int64_t>(events->size());
      next = events->back().seq + 1;
    }
  }

  absl::Status Blobs(const std::string& data_dir) {
    ASSIGN_OR_RETURN(const std::vector<cache::BlobFile> blobs,
                     cache::FindBlobFiles(data_dir + "/blobs/blobs"));
    for (const cache::BlobFile& blob : blobs) {
      ++report_.blobs;
      const absl::Status status = stores_.blobs->Verify(blob.scope, blob.info.sha256);
      if (status.ok()) continue;
      if (!absl::IsDataLoss(status)) return status;
      Mended(absl::StrCat("upload ", blob.info.sha256, " of '", blob.scope,
                          "' was damaged and is removed: clients send it again"));
    }
    return absl::OkStatus();
  }

  absl::Status Results() {
    for (const cache::CacheKey& key : stores_.artifacts->Keys()) {
      ++report_.results;
      ASSIGN_OR_RETURN(const std::optional<cache::CachedResult> found,
                       stores_.artifacts->Lookup(key));
      if (found.has_value()) continue;
      Mended(absl::StrCat("result ", key.ToString(),
                          " was damaged and is removed: its jobs compile again"));
    }
    return absl::OkStatus();
  }

  // Jobs that still have to run need what they name.
  absl::Status Inputs() {
    return stores_.jobs->ForEachLive([&](const jobs::LiveJob& job) -> absl::Status {
      ++report_.live_jobs;
      for (const std::string& sha256 : job.input_sha256s) {
        const std::string scope = job.tenant.empty() ? "default" : job.tenant;
        const auto held = stores_.blobs->Acquire(scope, sha256);
        if (held.ok()) continue;
        say_(absl::StrCat("job ", job.id, " waits, and its input ", sha256,
                          " is missing: it will fail"));
      }
      return absl::OkStatus();
    });
  }

  void Mended(const std::string& line) {
    ++report_.mended;
    say_(line);
  }
  void BeyondRepair(const std::string& what, const absl::Status& status) {
    ++report_.beyond_repair;
    say_(absl::StrCat(what, " cannot be read: ", status.message(), "; restore a backup"));
  }

  const OwnStores& stores_;
  const std::function<void(absl::string_view)>& say_;
  CheckReport report_;
};

}  // namespace

absl::StatusOr<CopiedFiles> WriteBackup(const BackupOptions& options, const std::string& target) {
  RETURN_IF_ERROR(CheckIsData(options.data_dir));
  RETURN_IF_ERROR(CheckIsFree(target));
  std::error_code error;
  fs::create_directory(target, error);
  RETURN_IF_ERROR(FromSystem(error, "make", target));
  const std::string path = absl::StrCat(SnapshotsFolder(options.data_dir), "/", getpid(), "-",
                                        absl::ToUnixNanos(absl::Now()));
  bool is_new = false;
  const absl::Status locked = daemon::LockDataDir(options.data_dir, &is_new);
  absl::Status made = absl::OkStatus();
  if (locked.ok()) {
    ASSIGN_OR_RETURN(const OwnStores stores, OwnStores::Open(options.data_dir));
    RETURN_IF_ERROR(cache::MakeFolder(SnapshotsFolder(options.data_dir)));
    made = TakeSnapshot(stores.view(), options.data_dir, path);
  } else {
    made = AskForSnapshot(options, path);
  }
  absl::StatusOr<CopiedFiles> copied =
      made.ok() ? CopySnapshot(path, target, options.version) : absl::StatusOr<CopiedFiles>(made);
  fs::remove_all(path, error);
  return copied;
}

absl::StatusOr<CopiedFiles> RestoreBackup(const std::string& source, const std::string& data_dir) {
  RETURN_IF_ERROR(CheckIsFree(data_dir));
  ASSIGN_OR_RETURN(const std::vector<ListedFile> files, ReadManifest(source));
  RETURN_IF_ERROR(cache::MakeFolder(data_dir));
  absl::StatusOr<CopiedFiles> copied = CopyListed(source, files, data_dir);
  if (copied.ok()) return copied;
  std::error_code error;
  for (fs::directory_iterator it(data_dir, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    fs::remove_all(it->path(), ignored);
  }
  return copied;
}

absl::StatusOr<CheckReport> CheckData(const std::string& data_dir,
                                      const std::function<void(absl::string_view line)>& say) {
  RETURN_IF_ERROR(CheckIsData(data_dir));
  bool is_new = false;
  RETURN_IF_ERROR(daemon::LockDataDir(data_dir, &is_new));
  ASSIGN_OR_RETURN(const OwnStores stores, OwnStores::Open(data_dir));
  return Check(stores, say).Run(data_dir);
}

}  // namespace npuc::backup
