#include "compiler_core/quant/data/npz.h"

#include <zlib.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "compiler_core/base/zip_directory.h"

namespace npuc {
namespace {

constexpr uint16_t kStored = 0;
constexpr uint16_t kDeflated = 8;
constexpr uint64_t kMostRatio = 1100;  // deflate reaches 1032

absl::Status Broken(const ZipRecord& record, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("not a usable .npz file: entry '", Printable(record.name), "' ", what));
}

// A raw deflate stream of exactly record.size bytes.
absl::Status Inflate(const ZipRecord& record, absl::string_view data, std::string& out) {
  z_stream stream{};
  constexpr int kRawDeflate = -15;
  if (inflateInit2(&stream, kRawDeflate) != Z_OK) return Broken(record, "cannot be inflated");
  out.resize(static_cast<size_t>(record.size) +
             1);  // the byte beyond shows a stream that is longer
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());  // within kMaxArchiveBytes
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int code = inflate(&stream, Z_FINISH);
  const uint64_t got = stream.total_out;
  inflateEnd(&stream);
  out.resize(static_cast<size_t>(record.size));
  if (code != Z_STREAM_END || got != record.size) return Broken(record, "has damaged data");
  return absl::OkStatus();
}

absl::Status ReadEntry(absl::string_view file, const ZipRecord& record, std::string& out) {
  const absl::string_view data = file.substr(static_cast<size_t>(record.data_offset),
                                             static_cast<size_t>(record.compressed_size));
  if (record.encrypted) return Broken(record, "is encrypted");
  if (record.method == kDeflated) {
    RETURN_IF_ERROR(Inflate(record, data, out));
  } else if (record.method == kStored && record.size == record.compressed_size) {
    out = std::string(data);
  } else {
    return Broken(record, "is neither stored nor deflated");
  }
  const uLong crc =
      crc32_z(crc32_z(0, nullptr, 0), reinterpret_cast<const Bytef*>(out.data()), out.size());
  if (crc != record.crc) return Broken(record, "has a wrong checksum");
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
