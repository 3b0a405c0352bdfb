#include "cache/blob_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cache/keys.h"
#include "cache/posix.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/status.h"

namespace npuc::cache {
namespace {

// Names in a folder, without those that begin with a dot.
absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path) {
  DIR* folder = opendir(path.c_str());
  if (folder == nullptr) return ErrnoStatus(errno, "cannot list", path);
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
    errno = 0;
  }
  const int error = errno;
  closedir(folder);
  if (error != 0) return ErrnoStatus(error, "cannot list", path);
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<StreamDigest::Result> HashFile(const std::string& path) {
  ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(path, O_RDONLY | O_NOFOLLOW));
  StreamDigest hash;
  while (true) {
    ASSIGN_OR_RETURN(const std::string bytes,
                     ReadUpToAt(fd.get(), hash.size_bytes(), kBlobHashChunkBytes, path));
    if (bytes.empty()) return hash.Finish();
    hash.Update(bytes);
  }
}

// Where the name is a blob's and the file a plain one.
std::optional<BlobFile> BlobFileOf(const std::string& scope, const std::string& name,
                                   const std::string& path) {
  if (name.size() != 64 + 1 + 32 || name[64] != '-') return std::nullopt;
  BlobFile file{scope, {name.substr(0, 64), name.substr(65), 0}, path, absl::InfinitePast()};
  if (!IsValidSha256(file.info.sha256) || !IsValidMd5(file.info.md5)) return std::nullopt;
  struct stat found;
  if (lstat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return std::nullopt;
  file.info.size_bytes = static_cast<uint64_t>(found.st_size);
  file.used = absl::TimeFromTimespec(found.st_mtim);
  return file;
}

std::optional<UploadFile> UploadFileOf(const std::string& scope, const std::string& name,
                                       const std::string& path) {
  if (name.size() < 66 || name[64] != '-') return std::nullopt;
  UploadFile file{scope, {name.substr(0, 64), 0}, path, 0};
  if (!IsValidSha256(file.digest.sha256) ||
      !absl::SimpleAtoi(name.substr(65), &file.digest.size_bytes) ||
      UploadName(file.digest) != name) {
    return std::nullopt;
  }
  struct stat found;
  if (lstat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return std::nullopt;
  file.size_bytes = static_cast<uint64_t>(found.st_size);
  return file;
}

}  // namespace

absl::StatusOr<std::vector<BlobFile>> FindBlobFiles(const std::string& folder) {
  std::vector<BlobFile> found;
  ASSIGN_OR_RETURN(const auto scopes, ListFolder(folder));
  for (const std::string& scope : scopes) {
    if (!IsValidScope(scope)) continue;
    const std::string scope_path = absl::StrCat(folder, "/", scope);
    ASSIGN_OR_RETURN(const auto shards, ListFolder(scope_path));
    for (const std::string& shard : shards) {
      if (shard.size() != 2) continue;
      const std::string shard_path = absl::StrCat(scope_path, "/", shard);
      ASSIGN_OR_RETURN(const auto names, ListFolder(shard_path));
      for (const std::string& name : names) {
        auto file = BlobFileOf(scope, name, absl::StrCat(shard_path, "/", name));
        if (file.has_value()) found.push_back(*std::move(file));
      }
    }
  }
  return found;
}

absl::StatusOr<std::vector<UploadFile>> FindUploadFiles(const std::string& folder) {
  std::vector<UploadFile> found;
  ASSIGN_OR_RETURN(const auto scopes, ListFolder(folder));
  for (const std::string& scope : scopes) {
    if (!IsValidScope(scope)) continue;
    const std::string scope_path = absl::StrCat(folder, "/", scope);
    ASSIGN_OR_RETURN(const auto names, ListFolder(scope_path));
    for (const std::string& name : names) {
      auto file = UploadFileOf(scope, name, absl::StrCat(scope_path, "/", name));
      if (file.has_value()) found.push_back(*std::move(file));
    }
  }
  return found;
}

std::string UploadName(const BlobDigest& digest) {
  return absl::StrCat(digest.sha256, "-", digest.size_bytes);
}

absl::Status MakeDurableFolder(const std::string& parent, const std::string& path) {
  bool made = false;
  RETURN_IF_ERROR(MakeFolder(path, &made));
  return made ? SyncFolder(parent) : absl::OkStatus();
}

absl::Status MoveIntoPlace(int fd, const std::string& from, const std::string& to,
                           const std::string& to_folder) {
  if (fchmod(fd, 0444) != 0) return ErrnoStatus(errno, "cannot protect", from);
  if (RetryOnEintr([&] { return fsync(fd); }) != 0) return ErrnoStatus(errno, "cannot sync", from);
  if (rename(from.c_str(), to.c_str()) != 0) {
    return ErrnoStatus(errno, "cannot move into place", to);
  }
  const absl::Status synced = SyncFolder(to_folder);
  if (!synced.ok()) unlink(to.c_str());
  return synced;
}

absl::StatusOr<bool> IsWholeBlob(const BlobInfo& info, const std::string& path) {
  const absl::StatusOr<StreamDigest::Result> found = HashFile(path);
  if (absl::IsResourceExhausted(found.status())) return found.status();
  return found.ok() && found->sha256_hex == info.sha256 && found->md5_hex == info.md5;
}

}  // namespace npuc::cache
