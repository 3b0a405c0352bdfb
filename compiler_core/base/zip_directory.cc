#include "compiler_core/base/zip_directory.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"

namespace npuc {
namespace {

constexpr absl::string_view kEndSignature = "PK\x05\x06";
constexpr absl::string_view kEnd64Signature = "PK\x06\x06";
constexpr absl::string_view kLocator64Signature = "PK\x06\x07";
constexpr absl::string_view kRecordSignature = "PK\x01\x02";
constexpr absl::string_view kLocalSignature = "PK\x03\x04";
constexpr size_t kEndBytes = 22;
constexpr size_t kEnd64Bytes = 56;
constexpr size_t kLocatorBytes = 20;
constexpr size_t kRecordBytes = 46;
constexpr size_t kLocalBytes = 30;
constexpr size_t kMaxComment = 65535;

uint64_t Number(absl::string_view bytes, uint64_t at, size_t width) {
  uint64_t value = 0;
  for (size_t i = width; i-- > 0;) {
    value = value << 8 | static_cast<uint8_t>(bytes[static_cast<size_t>(at) + i]);
  }
  return value;
}

bool HasAt(absl::string_view bytes, uint64_t at, absl::string_view signature, size_t length) {
  return at <= bytes.size() && length <= bytes.size() - at &&
         bytes.substr(static_cast<size_t>(at), signature.size()) == signature;
}

struct Directory {
  uint64_t entries = 0;
  uint64_t bytes = 0;
  uint64_t offset = 0;
};

absl::StatusOr<Directory> FindDirectory(absl::string_view bytes) {
  const size_t window = std::min(bytes.size(), kEndBytes + kMaxComment);
  const absl::string_view tail = bytes.substr(bytes.size() - window);
  const size_t found = tail.rfind(kEndSignature);
  if (found == absl::string_view::npos || tail.size() - found < kEndBytes) {
    return absl::NotFoundError("the file has no end record of a zip archive");
  }
  if (found > 0 && tail.rfind(kEndSignature, found - 1) != absl::string_view::npos) {
    return absl::InvalidArgumentError(
        "the file has more than one end record of a zip archive; allowed is one");
  }
  const size_t end = bytes.size() - window + found;
  Directory directory{.entries = Number(bytes, end + 10, 2),
                      .bytes = Number(bytes, end + 12, 4),
                      .offset = Number(bytes, end + 16, 4)};
  uint64_t limit = end;
  if (end >= kLocatorBytes &&
      HasAt(bytes, end - kLocatorBytes, kLocator64Signature, kLocatorBytes)) {
    const uint64_t at = Number(bytes, end - kLocatorBytes + 8, 8);
    if (!HasAt(bytes, at, kEnd64Signature, kEnd64Bytes)) {
      return absl::InvalidArgumentError(absl::StrCat("the zip64 end record is not at byte ", at,
                                                     ", where the file says that it is"));
    }
    directory = {.entries = Number(bytes, at + 32, 8),
                 .bytes = Number(bytes, at + 40, 8),
                 .offset = Number(bytes, at + 48, 8)};
    limit = at;
  }
  if (directory.offset > limit || directory.bytes > limit - directory.offset) {
    return absl::InvalidArgumentError(absl::StrCat("the central directory is at byte ",
                                                   directory.offset, " with ", directory.bytes,
                                                   " bytes; it must lie before byte ", limit));
  }
  return directory;
}

// Sizes and offset that do not fit 32 bits are in a zip64 extra field, those that are needed only.
void ReadZip64Extra(absl::string_view extra, ZipRecord& record) {
  uint64_t* const wanted[] = {&record.size, &record.compressed_size, &record.local_offset};
  while (extra.size() >= 4) {
    const uint64_t id = Number(extra, 0, 2);
    const auto length = static_cast<size_t>(Number(extra, 2, 2));
    if (length > extra.size() - 4) break;
    if (id == 1) {
      size_t at = 4;
      for (uint64_t* value : wanted) {
        if (*value != 0xffffffffu) continue;
        if (at + 8 > 4 + length) break;
        *value = Number(extra, at, 8);
        at += 8;
      }
      return;
    }
    extra.remove_prefix(4 + length);
  }
}

// Where the entry's data end, by its local header.
absl::Status FindEnd(absl::string_view bytes, uint64_t directory_offset, ZipRecord& record) {
  const std::string name = Printable(record.name);
  if (!HasAt(bytes, record.local_offset, kLocalSignature, kLocalBytes)) {
    return absl::InvalidArgumentError(absl::StrCat("entry '", name, "' has no header at byte ",
                                                   record.local_offset,
                                                   ", where the directory says that it is"));
  }
  const uint64_t name_bytes = Number(bytes, record.local_offset + 26, 2);
  const uint64_t data =
      record.local_offset + kLocalBytes + name_bytes + Number(bytes, record.local_offset + 28, 2);
  if (data > directory_offset || record.compressed_size > directory_offset - data) {
    return absl::InvalidArgumentError(
        absl::StrCat("entry '", name, "' has ", record.compressed_size, " bytes from byte ", data,
                     " on; it must end before the directory at byte ", directory_offset));
  }
  if (bytes.substr(static_cast<size_t>(record.local_offset) + kLocalBytes,
                   static_cast<size_t>(name_bytes)) != record.name) {
    return absl::InvalidArgumentError(absl::StrCat(
        "entry '", name, "' has another name in its header at byte ", record.local_offset));
  }
  record.data_offset = data;
  record.end_offset = data + record.compressed_size;
  return absl::OkStatus();
}

absl::Status CheckNoOverlap(const std::vector<ZipRecord>& records) {
  std::vector<const ZipRecord*> by_offset;
  by_offset.reserve(records.size());
  for (const ZipRecord& record : records) by_offset.push_back(&record);
  std::sort(by_offset.begin(), by_offset.end(), [](const ZipRecord* a, const ZipRecord* b) {
    return a->local_offset < b->local_offset;
  });
  for (size_t i = 1; i < by_offset.size(); ++i) {
    if (by_offset[i]->local_offset < by_offset[i - 1]->end_offset) {
      return absl::InvalidArgumentError(absl::StrCat(
          "entries '", Printable(by_offset[i - 1]->name), "' and '", Printable(by_offset[i]->name),
          "' overlap: one ends at byte ", by_offset[i - 1]->end_offset, ", the other starts at ",
          by_offset[i]->local_offset));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<ZipRecord>> ReadZipDirectory(absl::string_view bytes,
                                                        int64_t max_entries) {
  ASSIGN_OR_RETURN(const Directory directory, FindDirectory(bytes));
  if (directory.entries > static_cast<uint64_t>(max_entries)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the archive has ", directory.entries, " entries; allowed are at most ", max_entries));
  }
  const uint64_t end = directory.offset + directory.bytes;
  uint64_t at = directory.offset;
  std::vector<ZipRecord> records;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    if (!HasAt(bytes, at, kRecordSignature, kRecordBytes) || at + kRecordBytes > end) {
      return absl::InvalidArgumentError(absl::StrCat("the central directory says that it has ",
                                                     directory.entries, " entries, but number ", i,
                                                     " is not at byte ", at));
    }
    const uint64_t name_bytes = Number(bytes, at + 28, 2);
    const uint64_t extra_bytes = Number(bytes, at + 30, 2);
    const uint64_t comment_bytes = Number(bytes, at + 32, 2);
    if (name_bytes + extra_bytes + comment_bytes > end - at - kRecordBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("record ", i, " of the central directory does not end within it"));
    }
    const absl::string_view name =
        bytes.substr(static_cast<size_t>(at) + kRecordBytes, static_cast<size_t>(name_bytes));
    const absl::string_view extra = bytes.substr(
        static_cast<size_t>(at + kRecordBytes + name_bytes), static_cast<size_t>(extra_bytes));
    ZipRecord record{.name = name,
                     .method = static_cast<uint16_t>(Number(bytes, at + 10, 2)),
                     .encrypted = (Number(bytes, at + 8, 2) & 0x2041) != 0,
                     .crc = static_cast<uint32_t>(Number(bytes, at + 16, 4)),
                     .size = Number(bytes, at + 24, 4),
                     .compressed_size = Number(bytes, at + 20, 4),
                     .local_offset = Number(bytes, at + 42, 4)};
    ReadZip64Extra(extra, record);
    RETURN_IF_ERROR(FindEnd(bytes, directory.offset, record));
    records.push_back(record);
    at += kRecordBytes + name_bytes + extra_bytes + comment_bytes;
  }
  if (at != end) {
    return absl::InvalidArgumentError(absl::StrCat("the central directory has ", end - at,
                                                   " bytes behind its last record; allowed are "
                                                   "none"));
  }
  RETURN_IF_ERROR(CheckNoOverlap(records));
  return records;
}

}  // namespace npuc
