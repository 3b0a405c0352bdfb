#include "compiler_core/base/archive.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "compiler_core/base/zip_entry.h"

namespace npuc {
namespace {

constexpr uint64_t kMostRatio = 1100;  // deflate reaches 1032

absl::Status Broken(const ZipRecord& record, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("not a usable zip archive: entry '", Printable(record.name), "' ", what));
}

absl::Status ReadEntry(absl::string_view file, const ZipRecord& record, std::string& out) {
  if (record.encrypted) return Broken(record, "is encrypted");
  const bool is_stored = record.method == kZipStored && record.size == record.compressed_size;
  if (!is_stored && record.method != kZipDeflated) {
    return Broken(record, "is neither stored nor deflated");
  }
  const absl::StatusOr<absl::string_view> data = ReadZipEntry(file, record, out);
  if (!data.ok()) return Broken(record, data.status().message());
  if (is_stored) out = std::string(*data);
  return absl::OkStatus();
}

// Folders, and what a desktop leaves beside the files.
bool IsLeftOut(absl::string_view name) {
  const absl::string_view base = name.substr(name.rfind('/') + 1);
  return base.empty() || base[0] == '.' || absl::StartsWith(name, "__MACOSX/");
}

}  // namespace

bool LooksLikeZip(absl::string_view start) {
  return absl::StartsWith(start, "PK\x03\x04") || absl::StartsWith(start, "PK\x05\x06");
}

absl::StatusOr<std::vector<ZipFile>> ReadArchive(absl::string_view file, int64_t max_bytes) {
  if (static_cast<int64_t>(file.size()) > max_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the archive has ", file.size(), " bytes; allowed are at most ", max_bytes));
  }
  const absl::StatusOr<std::vector<ZipRecord>> records = ReadZipDirectory(file, kMaxArchiveEntries);
  if (!records.ok()) {
    return absl::Status(absl::IsResourceExhausted(records.status())
                            ? absl::StatusCode::kResourceExhausted
                            : absl::StatusCode::kInvalidArgument,
                        absl::StrCat("not a usable zip archive: ", records.status().message()));
  }
  uint64_t total = 0;
  std::vector<ZipFile> entries;
  for (const ZipRecord& record : *records) {
    if (record.size > static_cast<uint64_t>(max_bytes) - total ||
        record.size > record.compressed_size * kMostRatio) {
      return absl::ResourceExhaustedError(
          absl::StrCat("not a usable zip archive: entry '", Printable(record.name), "' claims ",
                       record.size, " bytes of ", record.compressed_size,
                       " compressed ones; at most ", max_bytes, " are allowed in all"));
    }
    total += record.size;
    if (IsLeftOut(record.name)) continue;
    ZipFile entry{std::string(record.name), ""};
    RETURN_IF_ERROR(ReadEntry(file, record, entry.bytes));
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(),
            [](const ZipFile& a, const ZipFile& b) { return a.name < b.name; });
  return entries;
}

}  // namespace npuc
