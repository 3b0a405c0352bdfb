#include "client/lib/local_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/lib/atomic_file.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/folder_archive.h"
#include "compiler_core/base/status.h"

namespace npuc::client {
namespace {

constexpr size_t kReadBytes = 1 << 20;
constexpr size_t kMaxNameBytes = 128;

absl::StatusOr<int> OpenRegular(const std::string& path) {
  // O_NONBLOCK, so that a named pipe is refused instead of waited for.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return ErrnoStatus(errno, "cannot open", path);
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd);
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is not a regular file"));
  }
  return fd;
}

// Reads from `filled` on until `buffer` is full or the file ends; how much of it is filled then.
absl::StatusOr<size_t> ReadFull(int fd, std::string& buffer, absl::string_view path,
                                size_t filled = 0) {
  while (filled < buffer.size()) {
    const ssize_t count = read(fd, &buffer[filled], buffer.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrnoStatus(errno, "cannot read", path);
    if (count == 0) break;
    filled += static_cast<size_t>(count);
  }
  return filled;
}

absl::StatusOr<std::string> ReadFileRange(const std::string& path, int64_t offset,
                                          size_t max_bytes) {
  ASSIGN_OR_RETURN(const int fd, OpenRegular(path));
  const absl::Cleanup closer = [fd] { close(fd); };
  if (lseek(fd, offset, SEEK_SET) != offset) return ErrnoStatus(errno, "cannot seek in", path);
  std::string bytes(max_bytes, '\0');
  ASSIGN_OR_RETURN(const size_t count, ReadFull(fd, bytes, path));
  bytes.resize(count);
  return bytes;
}

}  // namespace

absl::StatusOr<LocalFile> DescribeFile(const std::string& path) {
  ASSIGN_OR_RETURN(const int fd, OpenRegular(path));
  const absl::Cleanup closer = [fd] { close(fd); };
  StreamDigest digest;
  std::string buffer(kReadBytes, '\0');
  while (true) {
    ASSIGN_OR_RETURN(const size_t count, ReadFull(fd, buffer, path));
    digest.Update(absl::string_view(buffer).substr(0, count));
    if (count < buffer.size()) break;
  }
  StreamDigest::Result result = digest.Finish();
  return LocalFile{path, std::move(result.sha256_hex), static_cast<int64_t>(result.size_bytes)};
}

absl::StatusOr<LocalFile> DescribeFolder(const std::string& path) {
  ASSIGN_OR_RETURN(std::string archive, ArchiveFolder(path));
  StreamDigest digest;
  digest.Update(archive);
  StreamDigest::Result result = digest.Finish();
  return LocalFile{path, std::move(result.sha256_hex), static_cast<int64_t>(result.size_bytes),
                   std::make_shared<const std::string>(std::move(archive))};
}

absl::StatusOr<std::string> ReadRange(const LocalFile& file, int64_t offset, size_t max_bytes) {
  if (file.archive == nullptr) return ReadFileRange(file.path, offset, max_bytes);
  return file.archive->substr(std::min(static_cast<size_t>(offset), file.archive->size()),
                              max_bytes);
}

absl::StatusOr<std::string> ReadWholeFile(const std::string& path, size_t max_bytes) {
  int fd = STDIN_FILENO;
  if (path != "-") {
    ASSIGN_OR_RETURN(fd, OpenRegular(path));
  }
  const absl::Cleanup closer = [fd] {
    if (fd != STDIN_FILENO) close(fd);
  };
  // Not max_bytes at once, which is often far above what there is.
  std::string bytes;
  size_t filled = 0;
  while (filled == bytes.size() && filled <= max_bytes) {
    bytes.resize(std::min(max_bytes + 1, std::max(kReadBytes, 2 * filled)));
    ASSIGN_OR_RETURN(filled, ReadFull(fd, bytes, path, filled));
  }
  if (filled > max_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("'", path, "' has more than ", max_bytes, " bytes"));
  }
  bytes.resize(filled);
  return bytes;
}

bool IsSafeFileName(absl::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes || name[0] == '.') return false;
  return std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.' || c == '+';
  });
}

}  // namespace npuc::client
