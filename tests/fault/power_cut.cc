#include "tests/fault/power_cut.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <random>

#include "absl/strings/str_cat.h"

namespace npuc::fault {
namespace {

struct Synced {
  uint64_t bytes = 0;
  bool is_named = false;
};

absl::StatusOr<std::map<uint64_t, Synced>> ReadTable(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return std::map<uint64_t, Synced>();  // it wrote nothing yet
  if (fd < 0) return absl::ErrnoToStatus(errno, path);
  const size_t bytes = kSyncTableSlots * sizeof(SyncedFile);
  void* const map = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  if (map == MAP_FAILED) return absl::ErrnoToStatus(errno, path);
  const auto* slots = static_cast<const SyncedFile*>(map);
  std::map<uint64_t, Synced> table;
  for (uint64_t i = 0; i < kSyncTableSlots; ++i) {
    if (slots[i].inode == 0) continue;
    table[slots[i].inode] = {slots[i].synced_bytes, slots[i].is_named != 0};
  }
  munmap(map, bytes);
  return table;
}

}  // namespace

absl::StatusOr<CutReport> DropUnsynced(const std::string& table, const std::string& folder,
                                       uint64_t random) {
  const auto synced = ReadTable(table);
  if (!synced.ok()) return synced.status();
  std::mt19937_64 generator(random);
  CutReport report;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error)) {
    struct stat info = {};
    const std::string path = entry.path().string();
    if (lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    const auto found = synced->find(info.st_ino);
    if (found == synced->end()) continue;
    const auto size = static_cast<uint64_t>(info.st_size);
    if (!found->second.is_named) {
      if (unlink(path.c_str()) != 0) return absl::ErrnoToStatus(errno, path);
      ++report.files_gone;
      report.bytes_dropped += size;
      continue;
    }
    uint64_t keep = found->second.bytes;
    if (size <= keep) continue;
    if (generator() % 2 == 0) keep += generator() % (size - keep);
    if (truncate(path.c_str(), static_cast<off_t>(keep)) != 0) {
      return absl::ErrnoToStatus(errno, path);
    }
    ++report.files_cut;
    report.bytes_dropped += size - keep;
  }
  if (error) return absl::InternalError(absl::StrCat(folder, ": ", error.message()));
  return report;
}

}  // namespace npuc::fault
