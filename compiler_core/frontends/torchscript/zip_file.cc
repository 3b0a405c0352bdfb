#include "compiler_core/frontends/torchscript/zip_file.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/utf8.h"
#include "compiler_core/base/zip_entry.h"
#include "compiler_core/frontends/torchscript/archive_sniff.h"

namespace npuc::pt {
namespace {

constexpr uint64_t kRatioFreeBytes = uint64_t{1} << 20;
constexpr const char* kCopyAgain = "copy or download the whole file again, or save it again";

bool IsEntryName(absl::string_view name) {
  if (name.empty() || FirstInvalidUtf8(name) != absl::string_view::npos) return false;
  for (const char c : name) {
    if (static_cast<uint8_t>(c) < 0x20 || c == 0x7f) return false;
  }
  return true;
}

}  // namespace

ZipFile::ZipFile(absl::string_view bytes, std::vector<ZipRecord> entries, absl::string_view file,
                 const ArchiveLimits& limits)
    : bytes_(bytes), entries_(std::move(entries)), file_(file), limits_(limits) {}

void ZipFile::Damaged(std::string message, Diagnostics& diagnostics) const {
  diagnostics.Add({.kind = DiagnosticKind::kTorchArchiveDamaged,
                   .message = std::move(message),
                   .file = file_,
                   .fix = kCopyAgain});
}

bool ZipFile::CheckSizes(const ZipRecord& entry, Diagnostics& diagnostics) const {
  const auto limit = [&](const std::string& message, absl::string_view fix) {
    diagnostics.Add({.kind = DiagnosticKind::kTorchArchiveLimit,
                     .message = absl::StrCat("entry '", Printable(entry.name), "' ", message),
                     .file = file_,
                     .fix = std::string(fix)});
    return false;
  };
  if (entry.size > static_cast<uint64_t>(limits_.storage_bytes)) {
    return limit(
        absl::StrCat("has ", entry.size, " bytes; allowed are at most ", limits_.storage_bytes),
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
    if (entry.method != kZipStored && entry.method != kZipDeflated) {
      refuse(entry, absl::StrCat("is compressed by method ", entry.method,
                                 "; allowed are stored (0) and deflated (8)"));
    }
    if (entry.method == kZipStored && entry.size != entry.compressed_size) {
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

bool ZipFile::CheckLimits(const ZipRecord& entry, int64_t max_bytes,
                          Diagnostics& diagnostics) const {
  const auto size = static_cast<int64_t>(entry.size);  // at most limits_.storage_bytes
  std::string message;
  if (size > max_bytes) {
    message = absl::StrCat("has ", size, " bytes; allowed for its kind are at most ", max_bytes);
  } else if (bytes_read_ + size > limits_.total_bytes) {
    message = absl::StrCat("has ", size, " bytes, which makes ", bytes_read_ + size,
                           " of the whole archive; allowed are at most ", limits_.total_bytes);
  } else {
    return true;
  }
  diagnostics.Add({.kind = DiagnosticKind::kTorchArchiveLimit,
                   .message = absl::StrCat("entry '", Printable(entry.name), "' ", message),
                   .file = file_,
                   .fix = "compile a smaller model"});
  return false;
}

std::optional<absl::string_view> ZipFile::Read(int entry, int64_t max_bytes, std::string& inflated,
                                               Diagnostics& diagnostics) {
  const ZipRecord& record = entries_[static_cast<size_t>(entry)];
  if (!CheckLimits(record, max_bytes, diagnostics)) return std::nullopt;
  bytes_read_ += static_cast<int64_t>(record.size);
  const absl::StatusOr<absl::string_view> data = ReadZipEntry(bytes_, record, inflated);
  if (data.ok()) return *data;
  Damaged(absl::StrCat("entry '", Printable(record.name), "' ", data.status().message()),
          diagnostics);
  return std::nullopt;
}

}  // namespace npuc::pt
