#include "client/lib/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler_core/base/status.h"

namespace npuc::client {
namespace {

constexpr int kNameTries = 16;

}  // namespace

absl::Status ErrnoStatus(int error, absl::string_view what, absl::string_view path) {
  return absl::ErrnoToStatus(error, absl::StrCat(what, " '", path, "'"));
}

AtomicFile::AtomicFile(std::string path, std::string temporary, int fd)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, std::string())),
      fd_(std::exchange(other.fd_, -1)) {}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

absl::StatusOr<AtomicFile> AtomicFile::Create(const std::string& path) {
  std::random_device random;
  for (int i = 0; i < kNameTries; ++i) {
    std::string temporary = absl::StrFormat("%s.%08x.part", path, random());
    // open() rather than mkstemp(), so that the user's umask decides on the mode.
    const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) return AtomicFile(path, std::move(temporary), fd);
    if (errno != EEXIST) return ErrnoStatus(errno, "cannot create", temporary);
  }
  return absl::AlreadyExistsError(absl::StrCat("no free temporary name beside '", path, "'"));
}

absl::Status AtomicFile::Append(absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus(errno, "cannot write", temporary_);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status AtomicFile::Sync() {
  if (fd_ < 0) return absl::OkStatus();
  const bool synced = fsync(fd_) == 0;
  const int error = errno;
  const bool closed = close(std::exchange(fd_, -1)) == 0;
  if (!synced) return ErrnoStatus(error, "cannot sync", temporary_);
  if (!closed) return ErrnoStatus(errno, "cannot close", temporary_);
  return absl::OkStatus();
}

absl::Status AtomicFile::Commit() {
  RETURN_IF_ERROR(Sync());
  if (rename(temporary_.c_str(), path_.c_str()) != 0) {
    return ErrnoStatus(errno, "cannot replace", path_);
  }
  temporary_.clear();
  return absl::OkStatus();
}

}  // namespace npuc::client
