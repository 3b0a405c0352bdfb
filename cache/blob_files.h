#ifndef NPUC_CACHE_BLOB_FILES_H_
#define NPUC_CACHE_BLOB_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cache/blob_store.h"

namespace npuc::cache {

// The files of the blob store: their names (drawn in keys.h), and how they come into place.
// Functions are thread-safe; errors are those of posix.h.

inline constexpr size_t kBlobHashChunkBytes = 1 << 20;

struct BlobFile {
  std::string scope;
  BlobInfo info;
  std::string path;
  absl::Time used;  // the file's time
};
// All blobs below a folder. Files with other names, and what is no plain file, are left out.
absl::StatusOr<std::vector<BlobFile>> FindBlobFiles(const std::string& folder);

struct UploadFile {
  std::string scope;
  BlobDigest digest;
  std::string path;
  uint64_t size_bytes = 0;
};
// All uploads below a folder, by the same rule.
absl::StatusOr<std::vector<UploadFile>> FindUploadFiles(const std::string& folder);

// The name of an upload's file.
std::string UploadName(const BlobDigest& digest);

// Makes `path` below `parent`, durable.
absl::Status MakeDurableFolder(const std::string& parent, const std::string& path);

// Makes a finished upload a blob: read-only, durable, then visible.
absl::Status MoveIntoPlace(int fd, const std::string& from, const std::string& to,
                           const std::string& to_folder);

// Reads a blob and compares its digests. A file that is gone or cannot be read is not whole.
// RESOURCE_EXHAUSTED: this process has no descriptor or memory for it.
absl::StatusOr<bool> IsWholeBlob(const BlobInfo& info, const std::string& path);

}  // namespace npuc::cache

#endif  // NPUC_CACHE_BLOB_FILES_H_
