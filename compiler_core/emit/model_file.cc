#include "compiler_core/emit/model_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <type_traits>
#include <vector>

#include "absl/base/casts.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/status.h"
#include "compiler_core/emit/header_reader.h"
#include "compiler_core/emit/raw_file.h"

namespace npuc {
namespace {

constexpr absl::string_view kMagic = "NPUCMDL1";
constexpr uint32_t kGrusVersion = 1;
constexpr uint32_t kIntegerVersion = 3;
constexpr size_t kDigestBytes = 32;
constexpr size_t kAlignment = 16;
// A port's type tag is its place here, counted from 1.
constexpr std::array<DType, 6> kPortTypes = {DType::kFloat16, DType::kFloat32, DType::kInt8,
                                             DType::kUint8,   DType::kInt16,   DType::kUint16};

enum SectionTag : uint32_t { kMetadata = 1, kCommands = 2, kWeights = 3, kOps = 4 };
constexpr size_t kSectionCount = 4;
constexpr size_t kHeadBytes = 16;
constexpr size_t kTableEntryBytes = 24;

template <typename T>
void Put(T value, std::string& out) {
  static_assert(std::is_unsigned_v<T>);
  for (size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

void PutString(absl::string_view text, std::string& out) {
  Put(static_cast<uint32_t>(text.size()), out);
  out.append(text.data(), text.size());
}

void PutPorts(const std::vector<PortTensor>& ports, std::string& out) {
  Put(static_cast<uint32_t>(ports.size()), out);
  for (const PortTensor& port : ports) {
    PutString(port.name, out);
    const auto* const type = std::find(kPortTypes.begin(), kPortTypes.end(), port.dtype);
    Put(static_cast<uint8_t>(type - kPortTypes.begin() + 1), out);
    Put(static_cast<uint8_t>(port.shape.size()), out);
    Put(static_cast<uint16_t>(port.state_input), out);
    for (const int64_t dim : port.shape) Put(static_cast<uint64_t>(dim), out);
    if (!IsInteger(port.dtype)) continue;
    Put(absl::bit_cast<uint64_t>(port.scale), out);
    Put(static_cast<uint64_t>(port.zero_point), out);
  }
}

std::string Metadata(const CompiledModel& model) {
  std::string out;
  for (const std::string* text :
       {&model.version, &model.model_md5, &model.npu_unit, &model.model_info, &model.core}) {
    PutString(*text, out);
  }
  Put(static_cast<uint64_t>(model.data_bytes), out);
  if (model.command_set == CommandSet::kInteger) {
    Put(static_cast<uint64_t>(model.input_offset), out);
    Put(static_cast<uint64_t>(model.output_offset), out);
  }
  PutPorts(model.inputs, out);
  PutPorts(model.outputs, out);
  return out;
}

absl::string_view Chars(const std::vector<uint8_t>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

uint64_t Aligned(uint64_t offset) { return (offset + kAlignment - 1) / kAlignment * kAlignment; }

// Takes values off the front of a byte range; after a short read all further reads fail too.
class Cursor {
 public:
  explicit Cursor(absl::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  T Take() {
    T value = 0;
    if (bytes_.size() < sizeof(T)) {
      ok_ = false;
      bytes_ = {};
      return 0;
    }
    for (size_t i = 0; i < sizeof(T); ++i) {
      value = static_cast<T>(
          value | static_cast<T>(static_cast<T>(static_cast<uint8_t>(bytes_[i])) << (8 * i)));
    }
    bytes_.remove_prefix(sizeof(T));
    return value;
  }

  std::string TakeString() {
    const uint32_t size = Take<uint32_t>();
    if (size > bytes_.size()) {
      ok_ = false;
      bytes_ = {};
      return {};
    }
    std::string text(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return text;
  }

  bool ok() const { return ok_; }
  bool at_end() const { return bytes_.empty(); }

 private:
  absl::string_view bytes_;
  bool ok_ = true;
};

absl::Status Invalid(const std::string& message) { return absl::InvalidArgumentError(message); }

// Scale and zero point of an integer port.
absl::Status TakeParameters(Cursor& cursor, PortTensor& port) {
  port.scale = absl::bit_cast<double>(cursor.Take<uint64_t>());
  port.zero_point = static_cast<int64_t>(cursor.Take<uint64_t>());
  if (!std::isfinite(port.scale) || port.scale <= 0) {
    return Invalid(absl::StrCat("port ", Printable(port.name), " has scale ", port.scale));
  }
  if (port.zero_point < INT16_MIN || port.zero_point > UINT16_MAX) {
    return Invalid(
        absl::StrCat("port ", Printable(port.name), " has zero point ", port.zero_point));
  }
  return absl::OkStatus();
}

absl::Status TakePorts(Cursor& cursor, CommandSet command_set, std::vector<PortTensor>& ports) {
  const uint32_t count = cursor.Take<uint32_t>();
  if (count > kMaxPorts) return Invalid(absl::StrCat(count, " ports; at most ", kMaxPorts));
  int64_t offset = 0;
  for (uint32_t i = 0; i < count && cursor.ok(); ++i) {
    PortTensor port;
    port.name = cursor.TakeString();
    const uint8_t dtype = cursor.Take<uint8_t>();
    const uint8_t rank = cursor.Take<uint8_t>();
    port.state_input = static_cast<int16_t>(cursor.Take<uint16_t>());
    if (dtype < 1 || dtype > kPortTypes.size() ||
        IsInteger(kPortTypes[dtype - 1]) != (command_set == CommandSet::kInteger)) {
      return Invalid(absl::StrCat("port ", i, " has type tag ", dtype));
    }
    port.dtype = kPortTypes[dtype - 1];
    if (rank > kMaxRank) return Invalid(absl::StrCat("port ", i, " has rank ", rank));
    for (int d = 0; d < rank; ++d) {
      port.shape.push_back(static_cast<int64_t>(cursor.Take<uint64_t>()));
    }
    RETURN_IF_ERROR(CheckShape(port.shape));
    if (IsInteger(port.dtype)) RETURN_IF_ERROR(TakeParameters(cursor, port));
    port.offset_bytes = offset;
    offset += ElementCount(port.shape) * SizeOf(port.dtype);
    ports.push_back(std::move(port));
  }
  return absl::OkStatus();
}

absl::Status TakeMetadata(absl::string_view bytes, CompiledModel& model) {
  Cursor cursor(bytes);
  for (std::string* text :
       {&model.version, &model.model_md5, &model.npu_unit, &model.model_info, &model.core}) {
    *text = cursor.TakeString();
  }
  const uint64_t data_bytes = cursor.Take<uint64_t>();
  if (model.command_set == CommandSet::kInteger) {
    model.input_offset = static_cast<int64_t>(cursor.Take<uint64_t>());
    model.output_offset = static_cast<int64_t>(cursor.Take<uint64_t>());
  }
  RETURN_IF_ERROR(TakePorts(cursor, model.command_set, model.inputs));
  RETURN_IF_ERROR(TakePorts(cursor, model.command_set, model.outputs));
  if (!cursor.ok() || !cursor.at_end()) return Invalid("the metadata section has a wrong length");
  if (data_bytes > static_cast<uint64_t>(INT64_MAX)) return Invalid("data of a negative size");
  model.data_bytes = static_cast<int64_t>(data_bytes);
  RETURN_IF_ERROR(CheckPortPlaces(model));
  return CheckStates(model);
}

using Sections = std::map<uint32_t, absl::string_view>;

absl::StatusOr<Sections> TakeSections(absl::string_view bytes, CommandSet& command_set) {
  if (!absl::StartsWith(bytes, kMagic)) return Invalid("it does not begin with NPUCMDL1");
  if (bytes.size() < kHeadBytes + kSectionCount * kTableEntryBytes + kDigestBytes) {
    return Invalid(absl::StrCat("it has only ", bytes.size(), " bytes"));
  }
  const absl::string_view content = bytes.substr(0, bytes.size() - kDigestBytes);
  Cursor cursor(content.substr(kMagic.size()));
  const uint32_t version = cursor.Take<uint32_t>();
  if (version != kGrusVersion && version != kIntegerVersion) {
    return Invalid(absl::StrCat("format version ", version, "; this program reads ", kGrusVersion,
                                " and ", kIntegerVersion));
  }
  command_set = version == kGrusVersion ? CommandSet::kGrus : CommandSet::kInteger;
  if (absl::HexStringToBytes(Sha256Hex(content)) != bytes.substr(content.size())) {
    return Invalid("its SHA-256 does not match: it is damaged or cut short");
  }
  if (cursor.Take<uint32_t>() != kSectionCount) return Invalid("it has not four sections");
  Sections sections;
  uint64_t end = kHeadBytes + kSectionCount * kTableEntryBytes;
  for (size_t i = 0; i < kSectionCount; ++i) {
    const uint32_t tag = cursor.Take<uint32_t>();
    const uint32_t zero = cursor.Take<uint32_t>();
    const uint64_t offset = cursor.Take<uint64_t>();
    const uint64_t size = cursor.Take<uint64_t>();
    // One place is right for each section, since equal models give equal bytes.
    const uint64_t expected = Aligned(end);
    if (tag != i + 1 || zero != 0 || offset != expected || offset > content.size() ||
        size > content.size() - offset) {
      return Invalid(absl::StrCat("entry ", i, " of its section table is wrong"));
    }
    sections[tag] = content.substr(offset, size);
    end = offset + size;
  }
  if (end != content.size()) return Invalid("it has bytes that belong to no section");
  return sections;
}

absl::StatusOr<CompiledModel> Parse(absl::string_view bytes) {
  CompiledModel model;
  ASSIGN_OR_RETURN(Sections sections, TakeSections(bytes, model.command_set));
  RETURN_IF_ERROR(TakeMetadata(sections[kMetadata], model));
  const auto copy = [&sections](uint32_t tag) {
    return std::vector<uint8_t>(sections[tag].begin(), sections[tag].end());
  };
  model.cmd_content = copy(kCommands);
  model.weight_content = copy(kWeights);
  model.ops_content = copy(kOps);
  return model;
}

}  // namespace

absl::Status WriteModelFile(const CompiledModel& model, const ByteSink& sink) {
  const std::string metadata = Metadata(model);
  const std::array<absl::string_view, kSectionCount> sections = {
      metadata, Chars(model.cmd_content), Chars(model.weight_content), Chars(model.ops_content)};
  std::string piece(kMagic);
  Put(model.command_set == CommandSet::kGrus ? kGrusVersion : kIntegerVersion, piece);
  Put(static_cast<uint32_t>(kSectionCount), piece);
  uint64_t end = kHeadBytes + kSectionCount * kTableEntryBytes;
  for (size_t i = 0; i < kSectionCount; ++i) {
    const uint64_t offset = Aligned(end);
    Put(static_cast<uint32_t>(i + 1), piece);
    Put(uint32_t{0}, piece);
    Put(offset, piece);
    Put(static_cast<uint64_t>(sections[i].size()), piece);
    end = offset + sections[i].size();
  }
  Sha256Stream digest;
  uint64_t offset = 0;
  const auto pass = [&](absl::string_view bytes) {
    digest.Update(bytes);
    offset += bytes.size();
    return sink(bytes);
  };
  for (const absl::string_view section : sections) {
    piece.append(Aligned(offset + piece.size()) - offset - piece.size(), '\0');
    RETURN_IF_ERROR(pass(piece));
    RETURN_IF_ERROR(pass(section));
    piece.clear();
  }
  return sink(absl::HexStringToBytes(digest.FinishHex()));
}

absl::StatusOr<CompiledModel> ReadModelFile(absl::string_view bytes, absl::string_view file_name,
                                            Diagnostics& diagnostics) {
  absl::StatusOr<CompiledModel> model = Parse(bytes);
  return CheckedModel(std::move(model), "model file", file_name, diagnostics);
}

absl::StatusOr<CompiledModel> ReadArtifact(absl::string_view bytes, absl::string_view file_name,
                                           Diagnostics& diagnostics) {
  if (absl::StartsWith(bytes, kMagic)) return ReadModelFile(bytes, file_name, diagnostics);
  if (IsRawFile(bytes)) return ReadRawFile(bytes, file_name, diagnostics);
  return ReadCHeader(bytes, file_name, diagnostics);
}

}  // namespace npuc
