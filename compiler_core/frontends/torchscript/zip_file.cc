#include "compiler_core/frontends/torchscript/zip_file.h"

#include <zip.h>

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

}  // namespace

ZipFile::ZipFile(std::vector<ZipRecord> entries, absl::string_view file,
                 const ArchiveLimits& limits)
    : entries_(std::move(entries)), file_(file), limits_(limits) {}

ZipFile::~ZipFile() {
  if (zip_ != nullptr) zip_discard(zip_);
}

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

bool ZipFile::OpenLibrary(absl::string_view bytes, Diagnostics& diagnostics) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
  if (source != nullptr) {
    zip_ = zip_open_from_source(source, ZIP_RDONLY, &error);
    if (zip_ == nullptr) zip_source_free(source);
  }
  const std::string why = zip_ == nullptr ? zip_error_strerror(&error) : "";
  zip_error_fini(&error);
  if (zip_ == nullptr) {
    return Damaged(absl::StrCat("the zip archive cannot be opened: ", why), diagnostics);
  }
  const int64_t count = zip_get_num_entries(zip_, 0);
  if (count != static_cast<int64_t>(entries_.size())) {
    return Damaged(absl::StrCat("the zip archive's directory has ", entries_.size(),
                                " entries, of which ", count, " can be read"),
                   diagnostics);
  }
  for (size_t i = 0; i < entries_.size(); ++i) {
    zip_stat_t stat;
    if (zip_stat_index(zip_, i, ZIP_FL_ENC_RAW, &stat) != 0 || stat.name == nullptr ||
        entries_[i].name != stat.name || stat.size != entries_[i].size) {
      return Damaged(absl::StrCat("entry '", Printable(entries_[i].name),
                                  "' of the zip archive contradicts the directory"),
                     diagnostics);
    }
  }
  return true;
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
  std::unique_ptr<ZipFile> result(new ZipFile(*std::move(records), file, limits));
  if (!result->CheckEntries(diagnostics) || !result->OpenLibrary(bytes, diagnostics)) {
    return nullptr;
  }
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
  zip_file_t* handle = zip_fopen_index(zip_, static_cast<zip_uint64_t>(entry), 0);
  if (handle == nullptr) {
    return Damaged(absl::StrCat("entry '", name, "' cannot be opened: ", zip_strerror(zip_)),
                   diagnostics);
  }
  out.resize(static_cast<size_t>(size));
  const int64_t got = zip_fread(handle, out.data(), out.size());
  // libzip checks size and checksum when it reads on at the end.
  char beyond = 0;
  const int64_t more = got == size ? zip_fread(handle, &beyond, 1) : 0;
  const std::string why = zip_file_strerror(handle);
  zip_fclose(handle);
  if (got == size && more == 0) return true;
  out.clear();
  if (got < 0 || more < 0) {
    return Damaged(absl::StrCat("entry '", name, "' is damaged: ", why), diagnostics);
  }
  return Damaged(absl::StrCat("entry '", name, "' claims ", size, " bytes, but has ",
                              more > 0 ? "more" : absl::StrCat(got)),
                 diagnostics);
}

}  // namespace npuc::pt
