#ifndef NPUC_COMPILER_CORE_BASE_ZIP_DIRECTORY_H_
#define NPUC_COMPILER_CORE_BASE_ZIP_DIRECTORY_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace npuc {

// One record of a zip file's central directory.
struct ZipRecord {
  absl::string_view name;  // a view of the file's bytes, as they are
  uint16_t method = 0;     // 0: stored; 8: deflated
  bool encrypted = false;
  uint32_t crc = 0;   // of the decompressed data
  uint64_t size = 0;  // as the record claims, decompressed
  uint64_t compressed_size = 0;
  uint64_t local_offset = 0;  // of the entry's local header in the file
  uint64_t data_offset = 0;   // of its compressed data
  uint64_t end_offset = 0;    // behind them
};

// Walks a zip file's central directory, zip64 or not. What holds afterwards: there is one end
// record, at most max_entries records fill the directory exactly, and every entry has a local
// header of its name, lies within the file, before the directory, and overlaps no other one.
//
// Errors: NOT_FOUND where there is no end record at all (no zip file, or one that is cut short);
// RESOURCE_EXHAUSTED above max_entries; INVALID_ARGUMENT for all else, saying where and what.
absl::StatusOr<std::vector<ZipRecord>> ReadZipDirectory(absl::string_view bytes,
                                                        int64_t max_entries);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_ZIP_DIRECTORY_H_
