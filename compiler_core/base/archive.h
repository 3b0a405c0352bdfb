#ifndef NPUC_COMPILER_CORE_BASE_ARCHIVE_H_
#define NPUC_COMPILER_CORE_BASE_ARCHIVE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/zip_writer.h"

namespace npuc {

inline constexpr int64_t kMaxArchiveEntries = 65534;

bool LooksLikeZip(absl::string_view start);

// The files of a zip archive, by name: of an .npz file, or of a folder (folder_archive.h). Left
// out are folders, and files whose names begin with '.' or that lie in __MACOSX. INVALID_ARGUMENT
// saying what is wrong; RESOURCE_EXHAUSTED above kMaxArchiveEntries, or max_bytes of data, or 1100
// times the compressed size (deflate gives no more). Nothing is allocated beyond.
absl::StatusOr<std::vector<ZipFile>> ReadArchive(absl::string_view file, int64_t max_bytes);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_ARCHIVE_H_
