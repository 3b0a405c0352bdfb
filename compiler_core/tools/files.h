#ifndef NPUC_COMPILER_CORE_TOOLS_FILES_H_
#define NPUC_COMPILER_CORE_TOOLS_FILES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/byte_sink.h"
#include "compiler_core/base/byte_source.h"

namespace npuc {

// File access for the command-line tools; the compiler itself touches no files.

// The bytes of a file that is read whole, in memory that nobody cleared beforehand: that takes as
// long as reading a model.
class FileBytes {
 public:
  FileBytes() = default;
  FileBytes(std::unique_ptr<char[]> data, size_t size) : data_(std::move(data)), size_(size) {}
  absl::string_view view() const { return {data_.get(), size_}; }

 private:
  std::unique_ptr<char[]> data_;
  size_t size_ = 0;
};

// The whole file; "-" is standard input. Errors name the path and the system's reason; a file over
// max_bytes is RESOURCE_EXHAUSTED before it is read.
absl::StatusOr<FileBytes> ReadFileBytes(const std::string& path, int64_t max_bytes);
absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t max_bytes);

// The same, read in parts where it is a plain file, which must not change meanwhile.
absl::StatusOr<std::shared_ptr<const ByteSource>> OpenFile(const std::string& path,
                                                           int64_t max_bytes);

// Both for a path in a config, where a folder stands for the archive of its files
// (base/folder_archive.h).
absl::StatusOr<FileBytes> ReadInputBytes(const std::string& path, int64_t max_bytes);
absl::StatusOr<std::shared_ptr<const ByteSource>> OpenInput(const std::string& path,
                                                            int64_t max_bytes);

// A file's new bytes in a temporary file beside it, which goes with the object where the bytes were
// not put in place: they can be written before it is known whether they are wanted.
class PendingFile {
 public:
  // Makes missing folders.
  static absl::StatusOr<PendingFile> Write(const std::string& path, const ByteWriter& write);
  PendingFile(PendingFile&& other) noexcept;
  PendingFile& operator=(PendingFile&& other) = delete;
  ~PendingFile();
  // Others see the old file or the new one. Once.
  absl::Status PutInPlace();

 private:
  PendingFile(std::string path, std::string temporary)
      : path_(std::move(path)), temporary_(std::move(temporary)) {}
  std::string path_;
  std::string temporary_;  // empty: no longer there
};

// Both steps at once.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view bytes);

// `path` seen from the folder that holds `config_path`; absolute paths stay as they are. For a
// config from standard input ("-") the folder is the current one.
std::string ResolveBeside(const std::string& config_path, const std::string& path);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TOOLS_FILES_H_
