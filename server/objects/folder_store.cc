#include "server/objects/folder_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cache/posix.h"
#include "compiler_core/base/status.h"

namespace npuc::objects {
namespace {

constexpr size_t kWriteBytes = size_t{1} << 20;

// Faults of a share pass, or an operator mends them: the caller tries again later.
absl::Status ShareStatus(int error, absl::string_view what, absl::string_view path) {
  const absl::Status status = cache::ErrnoStatus(error, what, path);
  if (absl::IsInternal(status) || absl::IsAlreadyExists(status)) {
    return absl::UnavailableError(status.message());
  }
  return status;
}

absl::Status ShareStatus(const absl::Status& status) {
  return absl::IsInternal(status) ? absl::UnavailableError(status.message()) : status;
}

// The folders of a file, from the root's child on.
std::vector<std::string> FoldersOf(const std::string& root, absl::string_view name) {
  const std::vector<absl::string_view> parts = absl::StrSplit(name, '/');
  std::vector<std::string> folders;
  std::string path = root;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    absl::StrAppend(&path, "/", parts[i]);
    folders.push_back(path);
  }
  return folders;
}

// A folder that is new is synced in the one above it.
absl::Status MakeFolders(const std::string& root, absl::string_view name) {
  std::string above = root;
  for (const std::string& folder : FoldersOf(root, name)) {
    bool made = false;
    RETURN_IF_ERROR(ShareStatus(cache::MakeFolder(folder, &made)));
    if (made) RETURN_IF_ERROR(ShareStatus(cache::SyncFolder(above)));
    above = folder;
  }
  return absl::OkStatus();
}

// Without the root itself a folder of its name on this machine's disk could be filled: the share is
// not mounted.
absl::Status CheckRoot(const std::string& root) {
  struct stat info = {};
  if (stat(root.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("the folder ", root, " is not there; mount the share"));
}

// NOT_FOUND: there is no such file.
absl::StatusOr<cache::UniqueFd> OpenObject(const std::string& root, const std::string& path) {
  auto file = cache::OpenFile(path, O_RDONLY | O_NOFOLLOW);
  if (file.ok()) return file;
  RETURN_IF_ERROR(CheckRoot(root));
  return ShareStatus(file.status());
}

absl::Status SyncAndName(int fd, const std::string& unfinished, const std::string& path) {
  if (cache::RetryOnEintr([&] { return fsync(fd); }) != 0) {
    return ShareStatus(errno, "cannot sync", unfinished);
  }
  if (rename(unfinished.c_str(), path.c_str()) != 0) {
    return ShareStatus(errno, "cannot rename", unfinished);
  }
  return ShareStatus(cache::SyncFolder(std::filesystem::path(path).parent_path().string()));
}

// Names are listed folder by folder, so they are compared part by part.
using Parts = std::vector<absl::string_view>;
Parts PartsOf(absl::string_view name) { return absl::StrSplit(name, '/'); }

// Adds the names below `path` that come behind `after`, until there is one more than a Listing has.
absl::Status Collect(const std::string& path, const std::string& name, absl::string_view after,
                     std::vector<std::string>& names) {
  std::error_code error;
  std::vector<std::pair<std::string, bool>> entries;
  for (std::filesystem::directory_iterator it(path, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code gone;
    entries.emplace_back(it->path().filename().string(), it->is_directory(gone));
  }
  if (error == std::errc::no_such_file_or_directory) return absl::OkStatus();
  if (error)
    return absl::UnavailableError(absl::StrCat("cannot list ", path, ": ", error.message()));
  std::sort(entries.begin(), entries.end());
  for (const auto& [entry, is_folder] : entries) {
    if (names.size() > ObjectStore::kMaxListed) break;
    const std::string full = absl::StrCat(name, "/", entry);
    if (!IsObjectName(full)) continue;
    if (is_folder) {
      // All below it has come before `after`.
      if (PartsOf(full) < PartsOf(after) && !absl::StartsWith(after, absl::StrCat(full, "/"))) {
        continue;
      }
      RETURN_IF_ERROR(Collect(absl::StrCat(path, "/", entry), full, after, names));
    } else if (PartsOf(full) > PartsOf(after)) {
      names.push_back(full);
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string FolderStore::PathOf(absl::string_view name) const {
  NPUC_CHECK(IsObjectName(name));
  return absl::StrCat(root_, "/", name);
}

absl::Status FolderStore::Put(absl::string_view name, uint64_t bytes,
                              const base::ByteReader& read) {
  const std::string path = PathOf(name);
  const std::string unfinished = path + kUnfinished;
  const auto file = std::make_shared<cache::UniqueFd>();
  RETURN_IF_ERROR(calls_.Run([file, root = root_, name = std::string(name), unfinished] {
    RETURN_IF_ERROR(CheckRoot(root));
    RETURN_IF_ERROR(MakeFolders(root, name));
    auto opened = cache::OpenFile(unfinished, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW);
    // Another machine has removed the folder, which was empty.
    if (absl::IsNotFound(opened.status())) return absl::UnavailableError(opened.status().message());
    RETURN_IF_ERROR(ShareStatus(opened.status()));
    *file = *std::move(opened);
    return absl::OkStatus();
  }));
  for (uint64_t offset = 0; offset < bytes;) {
    ASSIGN_OR_RETURN(std::string part, base::ReadNext(read, offset, bytes, kWriteBytes, name));
    const uint64_t part_bytes = part.size();
    RETURN_IF_ERROR(calls_.Run([file, part = std::move(part), offset, unfinished] {
      return ShareStatus(cache::WriteAllAt(file->get(), part, offset, unfinished));
    }));
    offset += part_bytes;
  }
  return calls_.Run(
      [file, unfinished, path] { return SyncAndName(file->get(), unfinished, path); });
}

absl::StatusOr<std::string> FolderStore::Read(absl::string_view name, uint64_t offset,
                                              size_t max_bytes) {
  NPUC_CHECK(max_bytes <= kMaxReadBytes);
  const auto bytes = std::make_shared<std::string>();
  RETURN_IF_ERROR(
      calls_.Run([bytes, root = root_, path = PathOf(name), offset, max_bytes]() -> absl::Status {
        ASSIGN_OR_RETURN(const cache::UniqueFd file, OpenObject(root, path));
        auto got = cache::ReadUpToAt(file.get(), offset, max_bytes, path);
        RETURN_IF_ERROR(ShareStatus(got.status()));
        *bytes = *std::move(got);
        return absl::OkStatus();
      }));
  return std::move(*bytes);
}

absl::Status FolderStore::Remove(absl::string_view name) {
  return calls_.Run(
      [root = root_, path = PathOf(name), name = std::string(name)]() -> absl::Status {
        RETURN_IF_ERROR(CheckRoot(root));
        for (const std::string& one : {path + kUnfinished, path}) {
          if (unlink(one.c_str()) != 0 && errno != ENOENT) {
            return ShareStatus(errno, "cannot remove", one);
          }
        }
        // Folders that have become empty; others stay.
        std::vector<std::string> folders = FoldersOf(root, name);
        while (!folders.empty() && rmdir(folders.back().c_str()) == 0) folders.pop_back();
        return absl::OkStatus();
      });
}

absl::StatusOr<ObjectStore::Listing> FolderStore::List(absl::string_view folder,
                                                       absl::string_view after) {
  const auto names = std::make_shared<std::vector<std::string>>();
  RETURN_IF_ERROR(calls_.Run([names, root = root_, path = PathOf(folder),
                              folder = std::string(folder), after = std::string(after)] {
    RETURN_IF_ERROR(CheckRoot(root));
    return Collect(path, folder, after, *names);
  }));
  Listing listing{.names = std::move(*names)};
  listing.is_end = listing.names.size() <= kMaxListed;
  if (!listing.is_end) listing.names.resize(kMaxListed);
  return listing;
}

}  // namespace npuc::objects
