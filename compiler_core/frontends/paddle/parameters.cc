#include "compiler_core/frontends/paddle/parameters.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/base/zip_directory.h"
#include "compiler_core/base/zip_entry.h"
#include "compiler_core/frontends/common/import_state.h"
#include "npuc/fe/paddle/program.pb.h"

namespace npuc::paddle {
namespace {

constexpr int64_t kMaxZipBytes = int64_t{1} << 28;
constexpr int64_t kMaxZipEntries = 1 << 14;
constexpr uint64_t kMaxLodLevels = 8;
constexpr int32_t kMaxDescBytes = 1 << 12;

template <typename T>
absl::StatusOr<T> ReadNumber(const ByteSource& bytes, int64_t* offset) {
  char raw[sizeof(T)];
  const absl::Status read = bytes.Read(*offset, absl::MakeSpan(raw));
  if (!read.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("end at byte ", *offset, ", inside a tensor"));
  }
  *offset += static_cast<int64_t>(sizeof(T));
  T value;
  std::memcpy(&value, raw, sizeof(T));
  return value;
}

// Bytes of an element in the file; 0 where the type is not read.
int64_t StoredSize(int data_type) { return data_type == 6 ? 8 : SizeOf(DTypeFromWire(data_type)); }

}  // namespace

// Source: lod_tensor.cc, SerializeToStream, and tensor_util.cc, TensorToStream.
absl::StatusOr<Parameters::Stored> Parameters::ReadHead(const ByteSource& bytes, int64_t* offset) {
  const auto damaged = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("have ", what, " in front of byte ", *offset,
                                                   ", where a tensor should begin"));
  };
  ASSIGN_OR_RETURN(const uint32_t version, ReadNumber<uint32_t>(bytes, offset));
  ASSIGN_OR_RETURN(const uint64_t levels, ReadNumber<uint64_t>(bytes, offset));
  if (version != 0 || levels > kMaxLodLevels) return damaged("other bytes");
  for (uint64_t i = 0; i < levels; ++i) {
    ASSIGN_OR_RETURN(const uint64_t size, ReadNumber<uint64_t>(bytes, offset));
    if (size > static_cast<uint64_t>(bytes.size() - *offset)) return damaged("a level too long");
    *offset += static_cast<int64_t>(size);
  }
  ASSIGN_OR_RETURN(const uint32_t tensor_version, ReadNumber<uint32_t>(bytes, offset));
  ASSIGN_OR_RETURN(const int32_t desc_bytes, ReadNumber<int32_t>(bytes, offset));
  if (tensor_version != 0 || desc_bytes < 0 || desc_bytes > kMaxDescBytes) {
    return damaged("another version");
  }
  std::string desc(static_cast<size_t>(desc_bytes), '\0');
  fe::paddle::TensorDesc proto;
  if (!bytes.Read(*offset, absl::MakeSpan(desc)).ok() || !proto.ParseFromString(desc)) {
    return damaged("no description of a tensor");
  }
  *offset += desc_bytes;
  Stored stored{.owned = nullptr,
                .offset = *offset,
                .data_type = proto.data_type(),
                .shape = Shape(proto.dims().begin(), proto.dims().end())};
  RETURN_IF_ERROR(CheckShape(stored.shape));
  const int64_t element = StoredSize(stored.data_type);
  if (element == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("have a tensor of ", DataTypeName(stored.data_type), ", which is not read"));
  }
  const int64_t size = ElementCount(stored.shape) * element;
  if (size > bytes.size() - *offset) return damaged("too few values");
  *offset += size;
  return stored;
}

absl::Status Parameters::CheckShapeOf(const std::string& name, const Stored& stored,
                                      const Variable& variable) {
  if (stored.shape == variable.dims) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("have ", ShapeToString(stored.shape),
                                                 " where the program has '", Printable(name),
                                                 "' as ", ShapeToString(variable.dims)));
}

absl::Status Parameters::ReadCombined(const ProgramFile& program) {
  int64_t offset = 0;
  for (const auto& [name, variable] : program.variables()) {  // sorted by name
    if (!variable.is_parameter) continue;
    if (offset == bytes_->size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("end in front of '", Printable(name), "', which the program has"));
    }
    ASSIGN_OR_RETURN(Stored stored, ReadHead(*bytes_, &offset));
    RETURN_IF_ERROR(CheckShapeOf(name, stored, variable));
    tensors_.emplace(name, std::move(stored));
  }
  if (offset == bytes_->size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("have ", bytes_->size() - offset, " bytes behind the tensors of the program"));
}

absl::Status Parameters::ReadZip(const ProgramFile& program) {
  ASSIGN_OR_RETURN(const std::string file, ReadAll(*bytes_, kMaxZipBytes));
  ASSIGN_OR_RETURN(const std::vector<ZipRecord> records, ReadZipDirectory(file, kMaxZipEntries));
  std::map<absl::string_view, const ZipRecord*> by_name;  // without folders
  for (const ZipRecord& record : records) {
    by_name.emplace(record.name.substr(record.name.rfind('/') + 1), &record);
  }
  int64_t left = kMaxZipBytes;
  for (const auto& [name, variable] : program.variables()) {
    if (!variable.is_parameter) continue;
    const auto found = by_name.find(name);
    if (found == by_name.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("have no file '", Printable(name), "', a parameter of the program"));
    }
    const ZipRecord& record = *found->second;
    const bool is_read = record.method == kZipStored || record.method == kZipDeflated;
    if (!is_read || record.encrypted || record.size > static_cast<uint64_t>(left)) {
      return absl::InvalidArgumentError(
          absl::StrCat("have '", Printable(name), "' encrypted, in an unusual way, or too large"));
    }
    left -= static_cast<int64_t>(record.size);
    std::string inflated;
    const absl::StatusOr<absl::string_view> content = ReadZipEntry(file, record, inflated);
    if (!content.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("have '", Printable(name), "', which ", content.status().message()));
    }
    auto entry = std::make_shared<OwnedSource>(std::string(*content));
    int64_t offset = 0;
    ASSIGN_OR_RETURN(Stored stored, ReadHead(*entry, &offset));
    RETURN_IF_ERROR(CheckShapeOf(name, stored, variable));
    stored.owned = std::move(entry);
    tensors_.emplace(name, std::move(stored));
  }
  return absl::OkStatus();
}

absl::StatusOr<Parameters> Parameters::Open(const ByteSource& bytes, const ProgramFile& program) {
  Parameters parameters;
  parameters.bytes_ = &bytes;
  std::string head(static_cast<size_t>(std::min<int64_t>(bytes.size(), 16)), '\0');
  RETURN_IF_ERROR(bytes.Read(0, absl::MakeSpan(head)));
  if (absl::StartsWith(head, absl::string_view("PK\x03\x04", 4))) {
    RETURN_IF_ERROR(parameters.ReadZip(program));
  } else if (absl::StartsWith(head, "\x80")) {
    return absl::InvalidArgumentError(
        "are a pickle, as .pdparams of training and .pdiparams.info are");
  } else {
    RETURN_IF_ERROR(parameters.ReadCombined(program));
  }
  return parameters;
}

absl::StatusOr<Tensor> Parameters::Read(absl::string_view name, int64_t max_bytes) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) return absl::NotFoundError("no such parameter");
  const Stored& stored = found->second;
  const bool is_double = stored.data_type == 6;
  TensorType type{is_double ? DType::kFloat64 : DTypeFromWire(stored.data_type), stored.shape};
  if (type.size_bytes() > max_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the constants take more than ", frontend::kMaxConstantBytes, " bytes"));
  }
  std::vector<uint8_t> values(static_cast<size_t>(type.size_bytes()));
  const ByteSource& bytes = stored.owned != nullptr ? *stored.owned : *bytes_;
  RETURN_IF_ERROR(bytes.Read(
      stored.offset, absl::MakeSpan(reinterpret_cast<char*>(values.data()), values.size())));
  if (type.dtype == DType::kBool) {
    for (uint8_t& value : values) value = value != 0 ? 1 : 0;
  }
  const Tensor tensor(std::move(type), std::move(values));
  return is_double ? CastTensor(tensor, DType::kFloat32) : tensor;
}

}  // namespace npuc::paddle
