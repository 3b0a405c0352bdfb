#include "compiler_core/frontends/torchscript/archive.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/utf8.h"
#include "compiler_core/frontends/torchscript/archive_sniff.h"
#include "compiler_core/frontends/torchscript/parser.h"
#include "compiler_core/frontends/torchscript/unpickler.h"
#include "compiler_core/frontends/torchscript/zip_file.h"

namespace npuc::pt {
namespace {

constexpr int64_t kMaxVersion = 10;  // of the file format, in PyTorch up to 2.x
constexpr int64_t kMaxShortEntry = 64;
// Reads one archive. Steps that do not depend on each other go on after an error of another one.
class ArchiveReader {
 public:
  ArchiveReader(absl::string_view file, const ArchiveLimits& limits, Diagnostics& diagnostics)
      : limits_(limits), diagnostics_(diagnostics) {
    archive_.file = std::string(file);
  }

  absl::StatusOr<TorchArchive> Read(absl::string_view bytes);

 private:
  void Report(DiagnosticKind kind, std::string message, std::string fix = kSaveAgain);
  // Sets folder_, the archive's one top folder, with '/' at its end.
  bool FindFolder();
  // The entry below the top folder; -1 after a diagnostic.
  int Need(absl::string_view name);
  bool ReadText(absl::string_view name, std::string& text);
  void ReadVersion();
  void ReadByteOrder();
  PyId ReadPickle(absl::string_view name, absl::string_view storage_folder);
  void ReadRoot();
  void ReadConstants();
  void ReadSources();
  void ReadStorages();
  void ReadValues(size_t errors_before);
  void ReadStorage(const PyStorage& storage);

  const ArchiveLimits& limits_;
  Diagnostics& diagnostics_;
  TorchArchive archive_;
  std::unique_ptr<ZipFile> zip_;
  std::string folder_;
};

void ArchiveReader::Report(DiagnosticKind kind, std::string message, std::string fix) {
  diagnostics_.Add(
      {.kind = kind, .message = std::move(message), .file = archive_.file, .fix = std::move(fix)});
}

bool ArchiveReader::FindFolder() {
  std::vector<absl::string_view> names;
  std::vector<absl::string_view> folders;
  for (const ZipRecord& entry : zip_->entries()) {
    names.push_back(entry.name);
    const size_t slash = entry.name.find('/');
    if (slash != absl::string_view::npos && entry.name.substr(slash) == "/data.pkl") {
      folders.push_back(entry.name.substr(0, slash + 1));
    }
  }
  if (folders.size() > 1) {
    Report(
        DiagnosticKind::kTorchArchiveEntry,
        absl::StrCat("the archive has ", folders.size(), " entries named data.pkl, below '",
                     Printable(folders[0]), "' and '", Printable(folders[1]), "'; allowed is one"));
    return false;
  }
  if (!folders.empty()) {
    folder_ = std::string(folders[0]);
    const std::string code = absl::StrCat(folder_, "code/");
    const bool has_code = std::any_of(names.begin(), names.end(), [&](absl::string_view name) {
      return absl::StartsWith(name, code) && absl::EndsWith(name, ".py");
    });
    if (has_code) return true;
  }
  AddOtherZip(names, archive_.file, diagnostics_);
  return false;
}

int ArchiveReader::Need(absl::string_view name) {
  const int entry = zip_->Find(absl::StrCat(folder_, name));
  if (entry < 0) {
    Report(DiagnosticKind::kTorchArchiveEntry,
           absl::StrCat("the archive has no entry '", Printable(name), "'"),
           "use the file as torch.jit.save wrote it");
  }
  return entry;
}

bool ArchiveReader::ReadText(absl::string_view name, std::string& text) {
  const int entry = Need(name);
  if (entry < 0) return false;
  std::string inflated;
  const auto found = zip_->Read(entry, kMaxShortEntry, inflated, diagnostics_);
  text = std::string(found.value_or(""));
  return found.has_value();
}

void ArchiveReader::ReadVersion() {
  // Archives of PyTorch 2 may have it in a hidden folder.
  const bool hidden =
      zip_->Find(folder_ + "version") < 0 && zip_->Find(folder_ + ".data/version") >= 0;
  std::string text;
  if (!ReadText(hidden ? ".data/version" : "version", text)) return;
  if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(text), &archive_.version) ||
      archive_.version < 1 || archive_.version > kMaxVersion) {
    Report(DiagnosticKind::kTorchArchiveEntry,
           absl::StrCat("entry 'version' says '", Printable(text),
                        "'; allowed are the format's versions 1 to ", kMaxVersion),
           "save the model by PyTorch 1.10 to 2.x");
  }
}

void ArchiveReader::ReadByteOrder() {
  if (zip_->Find(folder_ + "byteorder") < 0) return;  // written since PyTorch 2.1
  std::string text;
  if (!ReadText("byteorder", text)) return;
  archive_.big_endian = text == "big";
  if (!archive_.big_endian && text != "little") {
    Report(DiagnosticKind::kTorchArchiveEntry,
           absl::StrCat("entry 'byteorder' says '", Printable(text),
                        "'; allowed are 'little' and 'big'"));
  }
}

PyId ArchiveReader::ReadPickle(absl::string_view name, absl::string_view storage_folder) {
  const int entry = Need(name);
  if (entry < 0) return PyId();
  std::string inflated;
  const auto bytes = zip_->Read(entry, limits_.pickle_bytes, inflated, diagnostics_);
  if (!bytes.has_value()) return PyId();
  return Unpickle(*bytes, archive_.file, name, storage_folder, limits_.pickle, archive_.values,
                  diagnostics_);
}

void ArchiveReader::ReadRoot() {
  const PyId root = ReadPickle("data.pkl", "data");
  if (!root.valid()) return;
  archive_.root = root;
  const PyKind kind = archive_.values.kind(root);
  if (kind != PyKind::kObject) {
    Report(DiagnosticKind::kNotATorchArchive,
           absl::StrCat("data.pkl holds ", NameOf(kind), "; allowed is a TorchScript module"));
  }
}

void ArchiveReader::ReadConstants() {
  const PyId constants = ReadPickle("constants.pkl", "constants");
  if (!constants.valid()) return;
  const PyKind kind = archive_.values.kind(constants);
  if (kind != PyKind::kTuple && kind != PyKind::kList) {
    Report(DiagnosticKind::kTorchPickleMalformed,
           absl::StrCat("constants.pkl holds ", NameOf(kind), "; allowed is a tuple"));
    return;
  }
  const absl::Span<const PyId> items = archive_.values.items(constants);
  archive_.constants.assign(items.begin(), items.end());
}

void ArchiveReader::ReadSources() {
  const std::string code = folder_ + "code/";
  for (size_t i = 0; i < zip_->entries().size(); ++i) {
    absl::string_view path = zip_->entries()[i].name;
    if (!absl::ConsumePrefix(&path, code) || !absl::EndsWith(path, ".py")) continue;
    std::string inflated;
    const auto text = zip_->Read(static_cast<int>(i), limits_.source_bytes, inflated, diagnostics_);
    if (!text.has_value()) continue;
    SourceFile source{.path = std::string(path), .text = std::string(*text)};
    size_t bad = FirstInvalidUtf8(source.text);
    if (bad == absl::string_view::npos) bad = source.text.find('\0');
    if (bad != absl::string_view::npos) {
      Report(DiagnosticKind::kTorchSourceInvalid,
             absl::StrCat("entry 'code/", Printable(path), "', byte ", bad,
                          ": the source is not UTF-8 text; allowed is what torch.jit.save wrote"));
      continue;
    }
    archive_.sources.push_back(std::move(source));
  }
  std::sort(archive_.sources.begin(), archive_.sources.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
}

void ArchiveReader::ReadStorage(const PyStorage& storage) {
  StorageBytes& held = archive_.storage_bytes.emplace_back();
  if (storage.element_count == 0) return;
  const int64_t size = SizeOf(storage.type);
  const int64_t needed = storage.element_count * size;  // both checked when unpickled: at most 2^52
  const int entry = zip_->Find(absl::StrCat(folder_, storage.entry));
  const auto wrong = [&](absl::string_view found) {
    Report(DiagnosticKind::kTorchStorageMismatch,
           absl::StrCat("entry '", Printable(storage.entry), "' ", found, "; its tensor has ",
                        storage.element_count, " elements of ", NameOf(storage.type), ": ", needed,
                        " bytes"),
           "copy or download the whole file again, or save it again");
  };
  if (entry < 0) return wrong("is not in the archive");
  const auto found = static_cast<int64_t>(zip_->entries()[static_cast<size_t>(entry)].size);
  // A storage seen as wider elements may have a few bytes behind the last.
  if (found < needed || found - needed >= size) return wrong(absl::StrCat("has ", found, " bytes"));
  auto inflated = std::make_shared<std::string>();
  const auto bytes = zip_->Read(entry, limits_.storage_bytes, *inflated, diagnostics_);
  if (!bytes.has_value()) return;
  held.bytes = bytes->substr(0, static_cast<size_t>(needed));
  if (!inflated->empty()) held.inflated = std::move(inflated);
}

void ArchiveReader::ReadStorages() {
  for (const PyStorage& storage : archive_.values.storages()) ReadStorage(storage);
}

void ArchiveReader::ReadValues(size_t errors_before) {
  ReadRoot();
  ReadConstants();
  // With a damaged pickle, what the storages should be is not known.
  if (diagnostics_.error_count() == errors_before) ReadStorages();
}

absl::StatusOr<TorchArchive> ArchiveReader::Read(absl::string_view bytes) {
  const size_t before = diagnostics_.error_count();
  if (static_cast<int64_t>(bytes.size()) > limits_.file_bytes) {
    Report(DiagnosticKind::kTorchArchiveLimit,
           absl::StrCat("the file has ", bytes.size(), " bytes; allowed are at most ",
                        limits_.file_bytes),
           "compile a smaller model");
    return diagnostics_.ToStatus();
  }
  zip_ = ZipFile::Open(bytes, archive_.file, limits_, diagnostics_);
  if (zip_ == nullptr || !FindFolder()) return diagnostics_.ToStatus();
  ReadVersion();
  ReadByteOrder();
  ReadSources();
  ReadValues(before);
  if (diagnostics_.error_count() > before) return diagnostics_.ToStatus();
  return std::move(archive_);
}

}  // namespace

const SourceFile* TorchArchive::FindSource(absl::string_view path) const {
  const auto it = std::lower_bound(
      sources.begin(), sources.end(), path,
      [](const SourceFile& source, absl::string_view wanted) { return source.path < wanted; });
  return it != sources.end() && it->path == path ? &*it : nullptr;
}

absl::StatusOr<TorchArchive> ReadTorchArchive(absl::string_view bytes, absl::string_view file,
                                              const ArchiveLimits& limits,
                                              Diagnostics& diagnostics) {
  return ArchiveReader(file, limits, diagnostics).Read(bytes);
}

}  // namespace npuc::pt
