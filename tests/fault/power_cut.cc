#include "tests/fault/power_cut.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
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
  std::map<uint64_t, Synced> table;
  std::ifstream in(path, std::ios::binary);
  if (!in.is_open() && errno == ENOENT) return table;  // it wrote nothing yet
  if (!in.is_open()) return absl::ErrnoToStatus(errno, path);
  // One that was killed while it made the table leaves less than all slots, which are empty then.
  SyncedFile slot;
  while (in.read(reinterpret_cast<char*>(&slot), sizeof(slot))) {
    if (slot.inode != 0) table[slot.inode] = {slot.synced_bytes, slot.is_named != 0};
  }
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
