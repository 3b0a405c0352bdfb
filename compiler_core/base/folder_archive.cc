#include "compiler_core/base/folder_archive.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/archive.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"

namespace npuc {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxDepth = 8;

absl::Status Unreadable(const fs::path& path, absl::string_view why) {
  return absl::FailedPreconditionError(
      absl::StrCat("cannot read ", Printable(path.string()), ": ", why));
}

bool IsHidden(const fs::path& path) { return path.filename().string()[0] == '.'; }

absl::StatusOr<std::vector<fs::path>> FilesIn(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  fs::recursive_directory_iterator it(folder, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    if (IsHidden(it->path())) {
      it.disable_recursion_pending();
    } else if (it->is_regular_file(error) && !error) {
      files.push_back(it->path());
    }
    if (it.depth() > kMaxDepth || static_cast<int64_t>(files.size()) > kMaxArchiveEntries) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the folder ", Printable(folder.string()), " holds over ",
                       kMaxArchiveEntries, " files, or folders over ", kMaxDepth, " deep"));
    }
  }
  if (error) return Unreadable(folder, error.message());
  return files;
}

absl::StatusOr<std::string> ReadWhole(const fs::path& path, int64_t max_bytes) {
  std::error_code error;
  const uintmax_t size = fs::file_size(path, error);
  if (error) return Unreadable(path, error.message());
  if (size > static_cast<uintmax_t>(max_bytes)) {
    return absl::ResourceExhaustedError(absl::StrCat("with ", Printable(path.string()),
                                                     " its folder holds more than ",
                                                     kMaxFolderBytes, " bytes"));
  }
  std::string bytes(static_cast<size_t>(size), '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) {
    return Unreadable(path, "it cannot be opened, or is shorter than it was");
  }
  return bytes;
}

}  // namespace

bool IsFolder(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

absl::StatusOr<std::string> ArchiveFolder(const std::string& path) {
  ASSIGN_OR_RETURN(const std::vector<fs::path> files, FilesIn(path));
  std::vector<ZipFile> entries;
  int64_t left = kMaxFolderBytes;
  for (const fs::path& file : files) {
    ASSIGN_OR_RETURN(std::string bytes, ReadWhole(file, left));
    left -= static_cast<int64_t>(bytes.size());
    // ReadZipDirectory refuses an archive in an archive: other programs could read its files.
    if (LooksLikeZip(bytes)) {
      return Unreadable(file, "it is an archive in a folder that stands for one; unpack it");
    }
    entries.push_back({file.lexically_relative(path).generic_string(), std::move(bytes)});
  }
  std::sort(entries.begin(), entries.end(),
            [](const ZipFile& a, const ZipFile& b) { return a.name < b.name; });
  return WriteZip(entries);
}

}  // namespace npuc
