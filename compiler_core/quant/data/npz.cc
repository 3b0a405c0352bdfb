#include "compiler_core/quant/data/npz.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "compiler_core/base/zip_entry.h"

namespace npuc {
namespace {

constexpr uint64_t kMostRatio = 1100;  // deflate reaches 1032

absl::Status Broken(const ZipRecord& record, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("not a usable .npz file: entry '", Printable(record.name), "' ", what));
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

}  // namespace

bool LooksLikeZip(absl::string_view start) {
  return absl::StartsWith(start, "PK\x03\x04") || absl::StartsWith(start, "PK\x05\x06");
}

absl::StatusOr<std::vector<NpzEntry>> ReadNpz(absl::string_view file, int64_t max_bytes) {
  if (static_cast<int64_t>(file.size()) > max_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the .npz file has ", file.size(), " bytes; allowed are at most ", max_bytes));
  }
  const absl::StatusOr<std::vector<ZipRecord>> records = ReadZipDirectory(file, kMaxNpzEntries);
  if (!records.ok()) {
    return absl::Status(absl::IsResourceExhausted(records.status())
                            ? absl::StatusCode::kResourceExhausted
                            : absl::StatusCode::kInvalidArgument,
                        absl::StrCat("not a usable .npz file: ", records.status().message()));
  }
  uint64_t total = 0;
  std::vector<NpzEntry> entries;
  for (const ZipRecord& record : *records) {
    if (record.size > static_cast<uint64_t>(max_bytes) - total ||
        record.size > record.compressed_size * kMostRatio) {
      return absl::ResourceExhaustedError(
          absl::StrCat("not a usable .npz file: entry '", Printable(record.name), "' claims ",
                       record.size, " bytes of ", record.compressed_size,
                       " compressed ones; at most ", max_bytes, " are allowed in all"));
    }
    total += record.size;
    absl::string_view name = record.name;
    if (!absl::ConsumeSuffix(&name, ".npy")) return Broken(record, "is no .npy file");
    NpzEntry entry{std::string(name), ""};
    RETURN_IF_ERROR(ReadEntry(file, record, entry.npy));
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace npuc
