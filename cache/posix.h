#ifndef NPUC_CACHE_POSIX_H_
#define NPUC_CACHE_POSIX_H_

#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace npuc::cache {

// Small wrappers of POSIX calls with Status errors, repeated after EINTR. Linux only. Every
// descriptor is made close-on-exec. Functions are thread-safe.

// Owns a descriptor. Move-only; not thread-safe.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept;
  ~UniqueFd() { Reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  void Reset();
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

// Repeats a call that returns -1 with EINTR.
template <typename F>
auto RetryOnEintr(F&& call) {
  decltype(call()) result;
  do {
    result = call();
  } while (result == -1 && errno == EINTR);
  return result;
}

// "what 'path': No space left on device", and what to do where the owner of the machine can do
// something. ENOSPC, EDQUOT, EFBIG, EMFILE, ENFILE, ENOMEM: RESOURCE_EXHAUSTED; ENOENT: NOT_FOUND;
// EEXIST: ALREADY_EXISTS; else INTERNAL.
absl::Status ErrnoStatus(int error, absl::string_view what, absl::string_view path);

// Names what this process may not read and write of a folder and the files in it. For where a
// library that opens them fails, which tells less.
absl::Status CheckUsable(const std::string& folder);

absl::StatusOr<UniqueFd> OpenFile(const std::string& path, int flags, mode_t mode = 0600);
// All of `bytes` at `offset`. On an error some bytes may have been written.
absl::Status WriteAllAt(int fd, absl::string_view bytes, uint64_t offset, absl::string_view path);
// Up to max_bytes from offset; fewer only at the end of the file.
absl::StatusOr<std::string> ReadUpToAt(int fd, uint64_t offset, size_t max_bytes,
                                       absl::string_view path);
absl::StatusOr<uint64_t> FileSize(int fd, absl::string_view path);
// One folder, mode 0700; OK where it is there already. *made tells which.
absl::Status MakeFolder(const std::string& path, bool* made = nullptr);
// Makes names in the folder durable.
absl::Status SyncFolder(const std::string& path);
// Gives a process, or with 0 the calling thread, the nice value of this process plus `by` (at most
// 19), so that it gives way to this process's other threads. What it starts later inherits that.
// Where the kernel groups processes by session (sched(7), autogroup), that of `pid` gets it as
// well: between sessions nothing else counts.
absl::Status GiveWay(pid_t pid, int by);

}  // namespace npuc::cache

#endif  // NPUC_CACHE_POSIX_H_
