#include "compiler_core/tools/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/folder_archive.h"
#include "compiler_core/base/status.h"
#include "compiler_core/tools/descriptor.h"

namespace npuc {
namespace {

absl::Status Failed(absl::string_view what, const std::string& path) {
  const std::string text = absl::StrCat(what, " ", Printable(path), ": ", std::strerror(errno));
  switch (errno) {
    case ENOENT:
      return absl::NotFoundError(text);
    case EACCES:
      return absl::PermissionDeniedError(text);
    case ENOSPC:
      return absl::ResourceExhaustedError(text);
    default:
      return absl::FailedPreconditionError(text);
  }
}

absl::Status ReadAt(int fd, int64_t offset, absl::Span<char> to) {
  for (size_t done = 0; done < to.size();) {
    const ssize_t got =
        ::pread(fd, to.data() + done, to.size() - done, offset + static_cast<int64_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::FailedPreconditionError(std::strerror(errno));
    if (got == 0) return absl::OutOfRangeError("a read beyond the end of the file");
    done += static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

class FileSource : public ByteSource {
 public:
  FileSource(Descriptor file, int64_t size) : file_(std::move(file)), size_(size) {}
  int64_t size() const override { return size_; }
  absl::Status Read(int64_t offset, absl::Span<char> to) const override {
    return ReadAt(file_.get(), offset, to);
  }

 private:
  Descriptor file_;
  int64_t size_;
};

// Puts `temporary` in the place of `path`: others see the old file or the new one. A plain rename
// onto a file would do, but ext4 then sends the new bytes to the disk at once, which takes longer
// than compiling a small net (more than a millisecond a megabyte); an exchange of names does not.
// Neither waits for the disk.
absl::Status Replace(const std::string& temporary, const std::string& path) {
  struct stat old {};
  const bool is_file = ::lstat(path.c_str(), &old) == 0 && S_ISREG(old.st_mode);
  if (is_file &&
      ::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0) {
    ::unlink(temporary.c_str());
    return absl::OkStatus();
  }
  // No old file, or a file system without exchange.
  if (::rename(temporary.c_str(), path.c_str()) != 0) return Failed("cannot create", path);
  return absl::OkStatus();
}

absl::Status WriteAll(int fd, absl::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Failed("cannot write", path);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status TooLarge(const std::string& path, int64_t max_bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat(Printable(path), " is larger than ", max_bytes, " bytes"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const ByteSource>> OpenFile(const std::string& path,
                                                           int64_t max_bytes) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return Failed("cannot open", path);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return Failed("cannot read", path);
  if (!S_ISREG(info.st_mode)) {
    ASSIGN_OR_RETURN(std::string bytes, ReadFile(path, max_bytes));
    return std::make_shared<OwnedSource>(std::move(bytes));
  }
  if (info.st_size > max_bytes) return TooLarge(path, max_bytes);
  return std::make_shared<FileSource>(std::move(file), info.st_size);
}

absl::StatusOr<FileBytes> ReadFileBytes(const std::string& path, int64_t max_bytes) {
  const Descriptor file(path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return Failed("cannot open", path);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return Failed("cannot read", path);
  if (S_ISDIR(info.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot read ", Printable(path), ": it is a directory"));
  }
  constexpr size_t kChunk = 1 << 16;
  // One byte more than a plain file has, so that the end is seen without growing.
  size_t room = S_ISREG(info.st_mode)
                    ? static_cast<size_t>(std::min<int64_t>(info.st_size, max_bytes)) + 1
                    : kChunk;
  auto bytes = std::make_unique_for_overwrite<char[]>(room);
  size_t have = 0;
  while (true) {
    if (have == room) {
      room *= 2;
      auto larger = std::make_unique_for_overwrite<char[]>(room);
      std::copy_n(bytes.get(), have, larger.get());
      bytes = std::move(larger);
    }
    const ssize_t got = ::read(file.get(), bytes.get() + have, room - have);
    if (got < 0 && errno != EINTR) return Failed("cannot read", path);
    if (got > 0) have += static_cast<size_t>(got);
    if (static_cast<int64_t>(have) > max_bytes) return TooLarge(path, max_bytes);
    if (got == 0) break;
  }
  return FileBytes(std::move(bytes), have);
}

absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t max_bytes) {
  ASSIGN_OR_RETURN(const FileBytes bytes, ReadFileBytes(path, max_bytes));
  return std::string(bytes.view());
}

absl::StatusOr<FileBytes> ReadInputBytes(const std::string& path, int64_t max_bytes) {
  if (!IsFolder(path)) return ReadFileBytes(path, max_bytes);
  ASSIGN_OR_RETURN(const std::string archive, ArchiveFolder(path));
  if (static_cast<int64_t>(archive.size()) > max_bytes) return TooLarge(path, max_bytes);
  auto bytes = std::make_unique_for_overwrite<char[]>(archive.size());
  std::copy(archive.begin(), archive.end(), bytes.get());
  return FileBytes(std::move(bytes), archive.size());
}

absl::StatusOr<std::shared_ptr<const ByteSource>> OpenInput(const std::string& path,
                                                            int64_t max_bytes) {
  if (!IsFolder(path)) return OpenFile(path, max_bytes);
  ASSIGN_OR_RETURN(std::string archive, ArchiveFolder(path));
  if (static_cast<int64_t>(archive.size()) > max_bytes) return TooLarge(path, max_bytes);
  return std::make_shared<OwnedSource>(std::move(archive));
}

absl::StatusOr<PendingFile> PendingFile::Write(const std::string& path, const ByteWriter& write) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  if (error) {
    errno = error.value();
    return Failed("cannot make folder", parent.string());
  }
  std::string temporary = absl::StrCat(path, ".XXXXXX");
  const Descriptor file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (file.get() < 0) return Failed("cannot create", path);
  PendingFile pending(path, std::move(temporary));
  constexpr mode_t kReadableByAll = 0644;
  if (::fchmod(file.get(), kReadableByAll) != 0) return Failed("cannot set the mode of", path);
  RETURN_IF_ERROR(
      write([&](absl::string_view piece) { return WriteAll(file.get(), piece, path); }));
  return pending;
}

PendingFile::PendingFile(PendingFile&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, {})) {}

PendingFile::~PendingFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

absl::Status PendingFile::PutInPlace() {
  RETURN_IF_ERROR(Replace(temporary_, path_));
  temporary_.clear();
  return absl::OkStatus();
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view bytes) {
  ASSIGN_OR_RETURN(PendingFile file,
                   PendingFile::Write(path, [&](const ByteSink& sink) { return sink(bytes); }));
  return file.PutInPlace();
}

std::string ResolveBeside(const std::string& config_path, const std::string& path) {
  if (config_path == "-") return path;
  return (std::filesystem::path(config_path).parent_path() / path).string();
}

}  // namespace npuc
