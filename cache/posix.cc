#include "cache/posix.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"

namespace npuc::cache {

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  if (this != &other) {
    Reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void UniqueFd::Reset() {
  // On Linux the descriptor is gone whatever close says; repeating it could close another's.
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

absl::Status ErrnoStatus(int error, absl::string_view what, absl::string_view path) {
  char buffer[128];
  const std::string text =
      absl::StrCat(what, " '", Printable(path), "': ", strerror_r(error, buffer, sizeof(buffer)));
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return absl::ResourceExhaustedError(absl::StrCat(text, "; free some space on its disk"));
    case EACCES:
      return absl::InternalError(
          absl::StrCat(text, "; it must belong to the user of this process, user id ", geteuid()));
    case EFBIG:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return absl::ResourceExhaustedError(text);
    case ENOENT:
      return absl::NotFoundError(text);
    case EEXIST:
      return absl::AlreadyExistsError(text);
    default:
      return absl::InternalError(text);
  }
}

absl::Status CheckUsable(const std::string& folder) {
  std::vector<std::string> paths = {folder};
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    paths.push_back(entry.path().string());
  }
  for (const std::string& path : paths) {
    if (faccessat(AT_FDCWD, path.c_str(), R_OK | W_OK, AT_EACCESS) == 0) continue;
    if (errno == EACCES) return ErrnoStatus(errno, "cannot use", path);
  }
  return absl::OkStatus();
}

absl::StatusOr<UniqueFd> OpenFile(const std::string& path, int flags, mode_t mode) {
  const int fd = RetryOnEintr([&] { return open(path.c_str(), flags | O_CLOEXEC, mode); });
  if (fd < 0) return ErrnoStatus(errno, "cannot open", path);
  return UniqueFd(fd);
}

absl::Status WriteAllAt(int fd, absl::string_view bytes, uint64_t offset, absl::string_view path) {
  while (!bytes.empty()) {
    const ssize_t n = RetryOnEintr(
        [&] { return pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
    if (n < 0) return ErrnoStatus(errno, "cannot write", path);
    // A regular file never takes nothing; treat it as full rather than turn for ever.
    if (n == 0) return ErrnoStatus(ENOSPC, "cannot write", path);
    bytes.remove_prefix(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadUpToAt(int fd, uint64_t offset, size_t max_bytes,
                                       absl::string_view path) {
  // Not max_bytes at once, which is often far above what there is: a page that is made ready and
  // not filled costs as much as one that is. One more than the file has, so that its end is seen
  // without growing; files of /proc say that they are empty.
  ASSIGN_OR_RETURN(const uint64_t size, FileSize(fd, path));
  const uint64_t expected = std::max<uint64_t>(size - std::min(size, offset) + 1, 4096);
  std::string bytes(static_cast<size_t>(std::min<uint64_t>(max_bytes, expected)), '\0');
  size_t filled = 0;
  while (filled < max_bytes) {
    if (filled == bytes.size()) bytes.resize(std::min(max_bytes, 2 * filled));
    const ssize_t n = RetryOnEintr([&] {
      return pread(fd, bytes.data() + filled, bytes.size() - filled,
                   static_cast<off_t>(offset + filled));
    });
    if (n < 0) return ErrnoStatus(errno, "cannot read", path);
    if (n == 0) break;
    filled += static_cast<size_t>(n);
  }
  bytes.resize(filled);
  return bytes;
}

absl::StatusOr<uint64_t> FileSize(int fd, absl::string_view path) {
  struct stat info;
  if (fstat(fd, &info) != 0) return ErrnoStatus(errno, "cannot stat", path);
  return static_cast<uint64_t>(info.st_size);
}

absl::Status MakeFolder(const std::string& path, bool* made) {
  if (made != nullptr) *made = false;
  if (mkdir(path.c_str(), 0700) == 0) {
    if (made != nullptr) *made = true;
    return absl::OkStatus();
  }
  const int error = errno;
  struct stat info;
  if (error == EEXIST && stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
    return absl::OkStatus();
  }
  return ErrnoStatus(error, "cannot make folder", path);
}

absl::Status SyncFolder(const std::string& path) {
  ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(path, O_RDONLY | O_DIRECTORY));
  if (RetryOnEintr([&] { return fsync(fd.get()); }) != 0) {
    return ErrnoStatus(errno, "cannot sync", path);
  }
  return absl::OkStatus();
}

absl::Status GiveWay(pid_t pid, int by) {
  constexpr int kNicest = 19;
  // By the main thread: the calling one may give way already.
  errno = 0;
  const int own = getpriority(PRIO_PROCESS, static_cast<id_t>(getpid()));
  if (errno != 0) return ErrnoStatus(errno, "cannot read", "nice value");
  if (setpriority(PRIO_PROCESS, static_cast<id_t>(pid), std::min(own + by, kNicest)) != 0) {
    return ErrnoStatus(errno, "cannot set", "nice value");
  }
  if (pid == 0) return absl::OkStatus();
  const std::string path = absl::StrCat("/proc/", pid, "/autogroup");
  if (access(path.c_str(), F_OK) != 0) return absl::OkStatus();  // this kernel has none
  ASSIGN_OR_RETURN(const UniqueFd file, OpenFile(path, O_WRONLY));
  const std::string text = absl::StrCat(std::min(by, kNicest));
  // The kernel takes one such change in 100 ms, of all who are not root.
  constexpr int kTries = 5;
  constexpr std::chrono::milliseconds kPause(110);
  for (int i = 0; RetryOnEintr([&] { return write(file.get(), text.data(), text.size()); }) < 0;
       ++i) {
    const int error = errno;
    if (error != EAGAIN || i == kTries) return ErrnoStatus(error, "cannot write", path);
    std::this_thread::sleep_for(kPause);
  }
  return absl::OkStatus();
}

}  // namespace npuc::cache
