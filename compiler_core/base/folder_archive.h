#ifndef NPUC_COMPILER_CORE_BASE_FOLDER_ARCHIVE_H_
#define NPUC_COMPILER_CORE_BASE_FOLDER_ARCHIVE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace npuc {

// Where a config names a folder, the folder stands for the zip archive of its files. The programs
// that read files for the compiler and the service make it by this function, so that both see the
// same bytes; the compiler itself touches no files.
inline constexpr int64_t kMaxFolderBytes = int64_t{1} << 30;

bool IsFolder(const std::string& path);

// The archive (archive.h) of the files in the folder and in folders in it, up to 8 deep, in the
// order of their names; names that begin with '.' are left out, links to folders are not followed,
// an archive among them is refused. Errors name the path; RESOURCE_EXHAUSTED above kMaxFolderBytes
// or kMaxArchiveEntries.
absl::StatusOr<std::string> ArchiveFolder(const std::string& path);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_FOLDER_ARCHIVE_H_
