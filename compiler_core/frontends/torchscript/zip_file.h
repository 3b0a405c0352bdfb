#ifndef NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_ZIP_FILE_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_ZIP_FILE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/zip_directory.h"
#include "compiler_core/frontends/torchscript/archive.h"

namespace npuc::pt {

// A zip file in memory, its directory checked. Counts what it reads: not thread-safe.
class ZipFile {
 public:
  // Null after a diagnostic. `bytes` must outlive the object. Beside the directory (see
  // ReadZipDirectory), the names, methods and claimed sizes of all entries are checked.
  static std::unique_ptr<ZipFile> Open(absl::string_view bytes, absl::string_view file,
                                       const ArchiveLimits& limits, Diagnostics& diagnostics);

  const std::vector<ZipRecord>& entries() const { return entries_; }
  int Find(absl::string_view name) const;  // -1 where there is none

  // The decompressed bytes of an entry, its checksum checked: a view of the file where it has them
  // as they are, else of `inflated`. Null after a diagnostic: more than max_bytes, or more of all
  // reads together than the limits allow, for which nothing is allocated, or damage.
  std::optional<absl::string_view> Read(int entry, int64_t max_bytes, std::string& inflated,
                                        Diagnostics& diagnostics);

 private:
  ZipFile(absl::string_view bytes, std::vector<ZipRecord> entries, absl::string_view file,
          const ArchiveLimits& limits);
  bool CheckEntries(Diagnostics& diagnostics);
  bool CheckSizes(const ZipRecord& entry, Diagnostics& diagnostics) const;
  bool CheckLimits(const ZipRecord& entry, int64_t max_bytes, Diagnostics& diagnostics) const;
  void Damaged(std::string message, Diagnostics& diagnostics) const;

  absl::string_view bytes_;
  std::vector<ZipRecord> entries_;
  absl::flat_hash_map<absl::string_view, int> by_name_;
  std::string file_;
  ArchiveLimits limits_;
  int64_t bytes_read_ = 0;
};

}  // namespace npuc::pt

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_ZIP_FILE_H_
