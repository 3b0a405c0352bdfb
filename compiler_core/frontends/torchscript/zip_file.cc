#include "compiler_core/frontends/torchscript/zip_file.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/utf8.h"
#include "compiler_core/frontends/torchscript/archive_sniff.h"

namespace npuc::pt {
namespace {

constexpr uint16_t kStored = 0;
constexpr uint16_t kDeflated = 8;
constexpr uint64_t kRatioFreeBytes = uint64_t{1} << 20;
constexpr const char* kCopyAgain = "copy or download the whole file again, or save it again";

bool IsEntryName(absl::string_view name) {
  if (name.empty() || FirstInvalidUtf8(name) != absl::string_view::npos) return false;
  for (const char c : name) {
    if (static_cast<uint8_t>(c) < 0x20 || c == 0x7f) return false;
  }
  return true;
}

uint32_t Crc32(absl::string_view bytes) {
  return static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

// Fills `out` with the `size` bytes that `data` holds deflated; what is wrong, or "". zlib counts
// input and output in 32 bits; ArchiveLimits keeps both below that.
std::string Inflate(absl::string_view data, size_t size, std::string& out) {
  out.resize(size);
  z_stream stream = {};
  constexpr int kRawDeflate = -15;  // no header of zlib's own
  if (inflateInit2(&stream, kRawDeflate) != Z_OK) return "there is no memory to decompress it";
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  // A byte more than claimed, so that zlib sees whether the data end there.
  Bytef beyond = 0;
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(size);
  int code = inflate(&stream, Z_NO_FLUSH);
  const bool full = stream.avail_out == 0;
  if (code == Z_OK && full) {
    stream.next_out = &beyond;
    stream.avail_out = 1;
    code = inflate(&stream, Z_NO_FLUSH);
  }
  const std::string why = stream.msg == nullptr ? "its data end early" : stream.msg;
  const bool more = full && stream.next_out == &beyond + 1;
  const size_t left = full ? 0 : stream.avail_out;
  inflateEnd(&stream);
  if (more) return absl::StrCat("it claims ", size, " bytes, but has more");
  if (code == Z_STREAM_END && left == 0) return "";
  if (code == Z_STREAM_END)
    return absl::StrCat("it claims ", size, " bytes, but has ", size - left);
  return why;
}

}  // namespace

ZipFile::ZipFile(absl::string_view bytes, std::vector<ZipRecord> entries, absl::string_view file,
                 const ArchiveLimits& limits)
    : bytes_(bytes), entries_(std::move(entries)), file_(file), limits_(limits) {}

bool ZipFile::Damaged(std::string message, Diagnostics& diagnostics) const {
  diagnostics.Add({.kind = DiagnosticKind::kTorchArchiveDamaged,
                   .message = std::move(message),
                   .file = file_,
                   .fix = kCopyAgain});
  return false;
}

bool ZipFile::CheckSizes(const ZipRecord& entry, Diagnostics& diagnostics) const {
  const auto limit = [&](const std::string& message, absl::string_view fix) {
    diagnostics.Add({.kind = DiagnosticKind::kTorchArchiveLimit,
                     .message = absl::StrCat("entry '", Printable(entry.name), "' ", message),
                     .file = file_,
                     .fix = std::string(fix)});
    return false;
  };
  const uint64_t larger = std::max(entry.size, entry.compressed_size);
  if (larger > static_cast<uint64_t>(limits_.storage_bytes)) {
    return limit(
        absl::StrCat("has ", larger, " bytes; allowed are at most ", limits_.storage_bytes),
        "compile a smaller model");
  }
  const uint64_t most = entry.compressed_size * static_cast<uint64_t>(limits_.ratio);
  if (entry.size > kRatioFreeBytes && entry.size > most) {
    return limit(
        absl::StrCat("claims to decompress ", entry.compressed_size, " bytes into ", entry.size,
                     "; allowed are at most ", limits_.ratio, " times as many"),
        "use the file as torch.jit.save wrote it");
  }
  return true;
}

bool ZipFile::CheckEntries(Diagnostics& diagnostics) {
  bool ok = true;
  const auto refuse = [&](const ZipRecord& entry, const std::string& message) {
    diagnostics.Add({.kind = DiagnosticKind::kTorchArchiveEntry,
                     .message = absl::StrCat("entry '", Printable(entry.name), "' ", message),
                     .file = file_,
                     .fix = "use the file as torch.jit.save wrote it"});
    ok = false;
  };
  for (size_t i = 0; i < entries_.size(); ++i) {
    const ZipRecord& entry = entries_[i];
    if (!IsEntryName(entry.name) || entry.name.size() > static_cast<size_t>(limits_.name_bytes)) {
      refuse(entry, absl::StrCat("has a name that is not printable UTF-8 of 1 to ",
                                 limits_.name_bytes, " bytes"));
    } else if (!by_name_.emplace(entry.name, static_cast<int>(i)).second) {
      refuse(entry, "is in the archive twice");
    }
    if (entry.encrypted) refuse(entry, "is encrypted; allowed are plain entries");
    if (entry.method != kStored && entry.method != kDeflated) {
      refuse(entry, absl::StrCat("is compressed by method ", entry.method,
                                 "; allowed are stored (0) and deflated (8)"));
    }
    if (entry.method == kStored && entry.size != entry.compressed_size) {
      refuse(entry, absl::StrCat("is stored as it is, but claims ", entry.compressed_size,
                                 " bytes in the file and ", entry.size, " outside"));
    }
    ok &= CheckSizes(entry, diagnostics);
  }
  return ok;
}

std::unique_ptr<ZipFile> ZipFile::Open(absl::string_view bytes, absl::string_view file,
                                       const ArchiveLimits& limits, Diagnostics& diagnostics) {
  absl::StatusOr<std::vector<ZipRecord>> records = ReadZipDirectory(bytes, limits.entries);
  if (!records.ok()) {
    if (absl::IsNotFound(records.status())) {
      AddNotATorchArchive(bytes, file, diagnostics);
      return nullptr;
    }
    const bool limit = absl::IsResourceExhausted(records.status());
    diagnostics.Add(
        {.kind = limit ? DiagnosticKind::kTorchArchiveLimit : DiagnosticKind::kTorchArchiveDamaged,
         .message = std::string(records.status().message()),
         .file = std::string(file),
         .fix = limit ? "compile a smaller model" : kCopyAgain});
    return nullptr;
  }
  std::unique_ptr<ZipFile> result(new ZipFile(bytes, *std::move(records), file, limits));
  if (!result->CheckEntries(diagnostics)) return nullptr;
  return result;
}

int ZipFile::Find(absl::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? -1 : it->second;
}

bool ZipFile::Read(int entry, int64_t max_bytes, std::string& out, Diagnostics& diagnostics) {
  const ZipRecord& record = entries_[static_cast<size_t>(entry)];
  const std::string name = Printable(record.name);
  const auto size = static_cast<int64_t>(record.size);  // at most limits_.storage_bytes
  if (size > max_bytes || bytes_read_ + size > limits_.total_bytes) {
    diagnostics.Add(
        {.kind = DiagnosticKind::kTorchArchiveLimit,
         .message = size > max_bytes
                        ? absl::StrCat("entry '", name, "' has ", size,
                                       " bytes; allowed for its kind are at most ", max_bytes)
                        : absl::StrCat("entry '", name, "' has ", size, " bytes, which makes ",
                                       bytes_read_ + size, " of the whole archive; allowed are ",
                                       "at most ", limits_.total_bytes),
         .file = file_,
         .fix = "compile a smaller model"});
    return false;
  }
  bytes_read_ += size;
  const absl::string_view data =
      bytes_.substr(static_cast<size_t>(record.end_offset - record.compressed_size),
                    static_cast<size_t>(record.compressed_size));
  std::string why;
  if (record.method == kStored) {
    out.assign(data.data(), data.size());
  } else {
    why = Inflate(data, static_cast<size_t>(size), out);
  }
  if (why.empty() && Crc32(out) != record.crc32) why = "its checksum is another one";
  if (why.empty()) return true;
  out.clear();
  return Damaged(absl::StrCat("entry '", name, "' is damaged: ", why), diagnostics);
}

}  // namespace npuc::pt
