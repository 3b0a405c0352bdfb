#ifndef NPUC_CLIENT_LIB_ATOMIC_FILE_H_
#define NPUC_CLIENT_LIB_ATOMIC_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace npuc::client {

// An error of errno, with what failed and the path.
absl::Status ErrnoStatus(int error, absl::string_view what, absl::string_view path);

// A file that appears whole or not at all: written under a temporary name in the same folder,
// synced, then renamed over `path`. Without Commit nothing of it stays. Move-only; not thread-safe.
// Errors: the absl code of errno, the path in the message.
class AtomicFile {
 public:
  static absl::StatusOr<AtomicFile> Create(const std::string& path);
  ~AtomicFile();
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;

  absl::Status Append(absl::string_view bytes);
  // Makes the bytes durable. Append may not follow.
  absl::Status Sync();
  // Sync where that is due, then the rename.
  absl::Status Commit();
  const std::string& path() const { return path_; }

 private:
  AtomicFile(std::string path, std::string temporary, int fd);

  std::string path_;
  std::string temporary_;  // empty once committed
  int fd_ = -1;
};

}  // namespace npuc::client

#endif  // NPUC_CLIENT_LIB_ATOMIC_FILE_H_
