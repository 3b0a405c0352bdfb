#include "compiler_core/emit/model_set.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/status.h"
#include "compiler_core/emit/model_file.h"

namespace npuc {
namespace {

constexpr absl::string_view kSetMagic = "NPUCSET1";
constexpr uint64_t kVersion = 1;
constexpr size_t kSetDigestBytes = 32;
constexpr size_t kPartAlignment = 16;
constexpr size_t kMaxPartsOfModel = 16;  // a model file is written in nine pieces

void Put(uint64_t value, int bytes, std::string& out) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

size_t PaddingAt(size_t offset) {
  return (kPartAlignment - offset % kPartAlignment) % kPartAlignment;
}

// The parts of all models, each once.
struct Parts {
  std::vector<std::string> parts;
  std::map<std::string, size_t> numbers;
  std::vector<std::vector<size_t>> of_models;

  absl::Status Add(const CompiledModel& model) {
    std::vector<size_t>& mine = of_models.emplace_back();
    return WriteModelFile(model, [&](absl::string_view bytes) {
      if (bytes.empty()) return absl::OkStatus();
      const auto [at, added] = numbers.emplace(std::string(bytes), parts.size());
      if (added) parts.emplace_back(bytes);
      mine.push_back(at->second);
      return absl::OkStatus();
    });
  }
};

// Takes values off the front; a short read returns 0 or nothing and is remembered.
class SetCursor {
 public:
  explicit SetCursor(absl::string_view bytes) : bytes_(bytes), size_(bytes.size()) {}
  uint64_t Number(size_t bytes) {
    const absl::string_view text = Text(bytes);
    uint64_t value = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      value |= uint64_t{static_cast<unsigned char>(text[i])} << (8 * i);
    }
    return value;
  }
  absl::string_view Text(uint64_t bytes) {
    if (bytes > bytes_.size()) {
      ok_ = false;
      bytes_ = {};
      return {};
    }
    const absl::string_view text = bytes_.substr(0, bytes);
    bytes_.remove_prefix(bytes);
    return text;
  }
  size_t offset() const { return size_ - bytes_.size(); }
  bool ok() const { return ok_; }
  bool at_end() const { return bytes_.empty(); }

 private:
  absl::string_view bytes_;
  const size_t size_;
  bool ok_ = true;
};

struct Entry {
  std::string name;
  std::vector<uint64_t> parts;
};

absl::Status InvalidSet(const std::string& message) { return absl::InvalidArgumentError(message); }

absl::StatusOr<std::vector<Entry>> TakeEntries(SetCursor& cursor, uint64_t models, uint64_t parts) {
  std::vector<Entry> entries;
  for (uint64_t i = 0; i < models; ++i) {
    Entry entry;
    const uint64_t name_bytes = cursor.Number(4);
    if (name_bytes > kMaxModelNameBytes) return InvalidSet("a model's name is too long");
    entry.name = std::string(cursor.Text(name_bytes));
    const uint64_t count = cursor.Number(4);
    if (count > kMaxPartsOfModel) return InvalidSet(absl::StrCat("a model of ", count, " parts"));
    for (uint64_t k = 0; k < count; ++k) {
      entry.parts.push_back(cursor.Number(4));
      if (entry.parts.back() >= parts) return InvalidSet("a model names a part that is not there");
    }
    entries.push_back(std::move(entry));
  }
  if (!cursor.ok()) return InvalidSet("its table is cut short");
  return entries;
}

absl::StatusOr<ModelSet> ParseSet(absl::string_view bytes, absl::string_view file_name,
                                  Diagnostics& diagnostics) {
  if (bytes.size() < kSetMagic.size() + kSetDigestBytes) return InvalidSet("it is cut short");
  const absl::string_view content = bytes.substr(0, bytes.size() - kSetDigestBytes);
  if (absl::HexStringToBytes(Sha256Hex(content)) != bytes.substr(content.size())) {
    return InvalidSet("its SHA-256 does not match: it is damaged or cut short");
  }
  SetCursor cursor(content);
  cursor.Text(kSetMagic.size());
  const uint64_t version = cursor.Number(4);
  const uint64_t models = cursor.Number(4);
  const uint64_t part_count = cursor.Number(4);
  if (version != kVersion || cursor.Number(4) != 0) {
    return InvalidSet(absl::StrCat("format version ", version, "; this program reads ", kVersion));
  }
  if (models == 0 || models > kMaxSetModels || part_count > models * kMaxPartsOfModel) {
    return InvalidSet(absl::StrCat(models, " models of ", part_count, " parts"));
  }
  std::vector<uint64_t> sizes;
  for (uint64_t i = 0; i < part_count; ++i) sizes.push_back(cursor.Number(8));
  ASSIGN_OR_RETURN(const std::vector<Entry> entries, TakeEntries(cursor, models, part_count));
  std::vector<absl::string_view> parts;
  for (const uint64_t size : sizes) {
    cursor.Text(PaddingAt(cursor.offset()));
    parts.push_back(cursor.Text(size));
  }
  if (!cursor.ok() || !cursor.at_end()) return InvalidSet("its parts are not as long as it says");
  ModelSet set;
  int64_t whole_bytes = 0;
  for (const Entry& entry : entries) {
    std::string file;
    for (const uint64_t part : entry.parts) {
      whole_bytes += static_cast<int64_t>(sizes[part]);
      if (whole_bytes > kMaxArtifactBytes) return InvalidSet("its models are too large together");
      file.append(parts[part].data(), parts[part].size());
    }
    ASSIGN_OR_RETURN(CompiledModel model,
                     ReadModelFile(file, absl::StrCat(file_name, ", model ", Printable(entry.name)),
                                   diagnostics));
    set.models.push_back({entry.name, std::move(model)});
  }
  set.shared_bytes = whole_bytes;
  for (const uint64_t size : sizes) set.shared_bytes -= static_cast<int64_t>(size);
  return set;
}

}  // namespace

absl::StatusOr<std::string> WriteModelSet(const std::vector<NamedModel>& models) {
  if (models.empty() || models.size() > kMaxSetModels) {
    return absl::InvalidArgumentError(
        absl::StrCat(models.size(), " models; a file holds 1 to ", kMaxSetModels));
  }
  Parts parts;
  std::set<absl::string_view> names;
  for (const NamedModel& named : models) {
    if (named.name.size() > kMaxModelNameBytes || !names.insert(named.name).second) {
      return absl::InvalidArgumentError(absl::StrCat("two models are named '",
                                                     Printable(named.name, 80),
                                                     "', or the name is "
                                                     "longer than ",
                                                     kMaxModelNameBytes, " bytes"));
    }
    RETURN_IF_ERROR(parts.Add(named.model));
  }
  std::string out(kSetMagic);
  Put(kVersion, 4, out);
  Put(models.size(), 4, out);
  Put(parts.parts.size(), 4, out);
  Put(0, 4, out);
  for (const std::string& part : parts.parts) Put(part.size(), 8, out);
  for (size_t i = 0; i < models.size(); ++i) {
    Put(models[i].name.size(), 4, out);
    out += models[i].name;
    Put(parts.of_models[i].size(), 4, out);
    for (const size_t part : parts.of_models[i]) Put(part, 4, out);
  }
  for (const std::string& part : parts.parts) {
    out.append(PaddingAt(out.size()), '\0');
    out += part;
    if (static_cast<int64_t>(out.size()) > kMaxArtifactBytes) {
      return absl::ResourceExhaustedError("the models are too large for one file");
    }
  }
  return out + absl::HexStringToBytes(Sha256Hex(out));
}

bool IsModelSet(absl::string_view bytes) { return absl::StartsWith(bytes, kSetMagic); }

absl::StatusOr<ModelSet> ReadModelSet(absl::string_view bytes, absl::string_view file_name,
                                      Diagnostics& diagnostics) {
  absl::StatusOr<ModelSet> set = ParseSet(bytes, file_name, diagnostics);
  if (set.ok() || diagnostics.has_errors()) return set;
  diagnostics.Add({.kind = DiagnosticKind::kModelFileInvalid,
                   .message = absl::StrCat("not a sound file of models: ", set.status().message()),
                   .file = std::string(file_name),
                   .fix = kFixOfDamage});
  return diagnostics.ToStatus();
}

}  // namespace npuc
