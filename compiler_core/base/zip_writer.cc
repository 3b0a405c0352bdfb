#include "compiler_core/base/zip_writer.h"

#include <libdeflate.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace npuc {
namespace {

// Fields of the format. Source: PKWARE's APPNOTE.TXT 6.3, sections 4.3.7, 4.3.12 and 4.3.16.
constexpr uint32_t kLocalNumber = 0x04034b50;
constexpr uint32_t kCentralSignature = 0x02014b50;
constexpr uint32_t kEndNumber = 0x06054b50;
constexpr uint16_t kVersion = 20;
constexpr uint16_t kNamesAreUtf8 = 1 << 11;
constexpr uint16_t kEarliestDate = (1 << 5) | 1;  // 1 January 1980
constexpr size_t kMaxEntries = 0xffff - 1;
constexpr size_t kMaxNameBytes = 0xffff;
constexpr uint64_t kMaxBytes = 0xffffffff - 1;  // of the file; larger ones need zip64

void Append(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i, value >>= 8) out.push_back(static_cast<char>(value & 0xff));
}

// Appends the fields that a local header and a directory record share.
void AppendFields(const ZipFile& file, std::string& out) {
  Append(out, kVersion, 2);
  Append(out, kNamesAreUtf8, 2);
  Append(out, 0, 2);  // stored
  Append(out, 0, 2);  // midnight
  Append(out, kEarliestDate, 2);
  Append(out, libdeflate_crc32(0, file.bytes.data(), file.bytes.size()), 4);
  Append(out, file.bytes.size(), 4);
  Append(out, file.bytes.size(), 4);
  Append(out, file.name.size(), 2);
  Append(out, 0, 2);  // no extra field
}

}  // namespace

absl::StatusOr<std::string> WriteZip(const std::vector<ZipFile>& files) {
  constexpr uint64_t kHeadBytes = 30 + 46;  // of an entry, both heads
  uint64_t total = 22;
  for (const ZipFile& file : files) {
    if (file.name.size() > kMaxNameBytes) {
      return absl::ResourceExhaustedError("a name in a zip file has more than 65535 bytes");
    }
    total += kHeadBytes + 2 * file.name.size() + file.bytes.size();
  }
  if (files.size() > kMaxEntries || total > kMaxBytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        files.size(), " files of ", total, " bytes together are too many for a zip file"));
  }
  std::string out;
  std::string directory;
  for (const ZipFile& file : files) {
    const uint64_t local_offset = out.size();
    Append(out, kLocalNumber, 4);
    AppendFields(file, out);
    out += file.name;
    out += file.bytes;
    Append(directory, kCentralSignature, 4);
    Append(directory, kVersion, 2);
    AppendFields(file, directory);
    Append(directory, 0, 2 + 2 + 2 + 4);  // no comment, first disk, no attributes
    Append(directory, local_offset, 4);
    directory += file.name;
  }
  const uint64_t directory_offset = out.size();
  out += directory;
  Append(out, kEndNumber, 4);
  Append(out, 0, 2 + 2);  // of one disk
  Append(out, files.size(), 2);
  Append(out, files.size(), 2);
  Append(out, directory.size(), 4);
  Append(out, directory_offset, 4);
  Append(out, 0, 2);  // no comment
  return out;
}

}  // namespace npuc
