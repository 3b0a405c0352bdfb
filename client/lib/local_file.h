#ifndef NPUC_CLIENT_LIB_LOCAL_FILE_H_
#define NPUC_CLIENT_LIB_LOCAL_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace npuc::client {

// A file to upload: named by its content, which must not change until the upload is done.
struct LocalFile {
  std::string path;
  std::string sha256;  // 64 lower-case hexadecimal digits
  int64_t size_bytes = 0;
  std::shared_ptr<const std::string> archive = nullptr;  // of a folder, which has no bytes itself
};

// Reads the file once for its digest, in constant memory. INVALID_ARGUMENT: not a regular file.
// Else the absl code of errno, the path in the message.
absl::StatusOr<LocalFile> DescribeFile(const std::string& path);

// Makes the archive of a folder's files (base/folder_archive.h) in memory, and its digest.
absl::StatusOr<LocalFile> DescribeFolder(const std::string& path);

// Up to max_bytes of it from offset; empty at the end.
absl::StatusOr<std::string> ReadRange(const LocalFile& file, int64_t offset, size_t max_bytes);

// The whole file. RESOURCE_EXHAUSTED: more than max_bytes. "-" reads standard input.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path, size_t max_bytes);

// 1..128 of A-Z a-z 0-9 '_' '-' '.' '+', not beginning with '.': safe as a file's base name.
// Nothing that a server calls otherwise is written to a disk.
bool IsSafeFileName(absl::string_view name);

}  // namespace npuc::client

#endif  // NPUC_CLIENT_LIB_LOCAL_FILE_H_
