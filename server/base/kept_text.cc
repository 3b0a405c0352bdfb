#include "server/base/kept_text.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "cache/posix.h"
#include "compiler_core/base/status.h"

namespace npuc::base {
namespace {

absl::Status Remove(const std::string& path) {
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return cache::ErrnoStatus(errno, "cannot remove", path);
}

absl::Status Write(const std::string& path, absl::string_view text) {
  const std::string fresh = path + ".new";
  ASSIGN_OR_RETURN(const cache::UniqueFd file,
                   cache::OpenFile(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW));
  RETURN_IF_ERROR(cache::WriteAllAt(file.get(), text, 0, fresh));
  if (fsync(file.get()) == 0 && std::rename(fresh.c_str(), path.c_str()) == 0) {
    return absl::OkStatus();
  }
  return cache::ErrnoStatus(errno, "cannot keep", path);
}

}  // namespace

absl::StatusOr<std::string> FileText::Read() {
  const auto file = cache::OpenFile(path_, O_RDONLY | O_NOFOLLOW);
  if (absl::IsNotFound(file.status())) return std::string();
  RETURN_IF_ERROR(file.status());
  return cache::ReadUpToAt(file->get(), 0, kMaxBytes, path_);
}

absl::Status FileText::Replace(absl::string_view, absl::string_view after) {
  if (after.size() > kMaxBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path_, " would have ", after.size(), " bytes, at most ", kMaxBytes));
  }
  RETURN_IF_ERROR(after.empty() ? Remove(path_) : Write(path_, after));
  return cache::SyncFolder(std::filesystem::path(path_).parent_path().string());
}

}  // namespace npuc::base
