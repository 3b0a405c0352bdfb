#include "compiler_core/frontends/mxnet/params_file.h"

#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/fp16.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/sniff.h"

namespace npuc::mxnet {
namespace {

static_assert(std::endian::native == std::endian::little, "values are copied as they are");

// Numbers of mx.nd.save and of the versions of an NDArray (src/ndarray/ndarray.cc). A number that
// is none of these versions is the rank of an array of version 0.
constexpr uint64_t kListMagic = 0x112;
constexpr uint32_t kVersion1 = 0xF993FAC8;
constexpr uint32_t kVersion2 = 0xF993FAC9;
constexpr uint32_t kVersion3 = 0xF993FACA;

constexpr int32_t kDense = 0;
constexpr int32_t kUndefined = -1;

constexpr uint64_t kMaxArrays = 1 << 17;
constexpr uint64_t kMaxRankInFile = 32;

struct ElementType {
  const char* name;
  int64_t bytes;  // of an element in the file
  DType dtype;    // as it is decoded
};
constexpr ElementType kTypes[] = {{"float32", 4, DType::kFloat32}, {"float64", 8, DType::kFloat32},
                                  {"float16", 2, DType::kFloat32}, {"uint8", 1, DType::kUint8},
                                  {"int32", 4, DType::kInt32},     {"int8", 1, DType::kInt8},
                                  {"int64", 8, DType::kInt64},     {"bool", 1, DType::kBool},
                                  {"int16", 2, DType::kInt16},     {"uint16", 2, DType::kUint16},
                                  {"uint32", 4, DType::kUint32},   {"uint64", 8, DType::kInt64},
                                  {"bfloat16", 2, DType::kFloat32}};
enum TypeFlag : int64_t { kDouble = 1, kHalf = 2, kBoolean = 7, kUnsigned64 = 11, kBFloat16 = 12 };

const ElementType* TypeOf(int64_t flag) {
  if (flag < 0 || flag >= static_cast<int64_t>(std::size(kTypes))) return nullptr;
  return &kTypes[flag];
}

// Reads numbers from the file's begin on. OUT_OF_RANGE where it ends first.
class Cursor {
 public:
  explicit Cursor(const ByteSource& bytes) : bytes_(bytes) {}

  template <typename T>
  absl::StatusOr<T> Read() {
    T value;
    char raw[sizeof(T)];
    RETURN_IF_ERROR(bytes_.Read(offset_, absl::MakeSpan(raw)));
    std::memcpy(&value, raw, sizeof(T));
    offset_ += static_cast<int64_t>(sizeof(T));
    return value;
  }
  absl::StatusOr<std::string> ReadText(uint64_t length) {
    if (length > kMaxNodeNameBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("a name has ", length, " bytes, more than ", kMaxNodeNameBytes));
    }
    std::string text(static_cast<size_t>(length), '\0');
    RETURN_IF_ERROR(bytes_.Read(offset_, absl::MakeSpan(text.data(), text.size())));
    offset_ += static_cast<int64_t>(length);
    return text;
  }
  absl::Status Skip(int64_t count) {
    if (count > bytes_.size() - offset_) {
      return absl::OutOfRangeError(absl::StrCat("an array has ", count, " bytes of values; ",
                                                bytes_.size() - offset_, " are left"));
    }
    offset_ += count;
    return absl::OkStatus();
  }
  int64_t offset() const { return offset_; }

 private:
  const ByteSource& bytes_;
  int64_t offset_ = 0;
};

// The dimensions, as numbers of type T. The shape of an array that is not there is one that no
// array can have.
template <typename T>
absl::StatusOr<Shape> ReadShape(Cursor& in, int64_t rank) {
  if (rank < 0 || rank > static_cast<int64_t>(kMaxRankInFile)) {
    return absl::InvalidArgumentError(
        absl::StrCat("an array has ", rank, " dimensions, more than ", kMaxRankInFile));
  }
  Shape shape;
  for (int64_t i = 0; i < rank; ++i) {
    ASSIGN_OR_RETURN(const T dim, in.Read<T>());
    shape.push_back(static_cast<int64_t>(dim));
  }
  return shape;
}

// Reads the head of an array of version 1 or later behind its magic, up to the device. False: the
// array is not there, and nothing follows.
absl::StatusOr<bool> ReadHead(Cursor& in, uint32_t version, ParamsFile::Array& array) {
  int32_t storage = 0;
  if (version != kVersion1) {
    ASSIGN_OR_RETURN(storage, in.Read<int32_t>());
  }
  if (storage != kDense && storage != kUndefined) {
    return absl::InvalidArgumentError("an array is sparse, or of a storage that is not known");
  }
  ASSIGN_OR_RETURN(const int32_t rank, in.Read<int32_t>());
  const int32_t none = version == kVersion3 ? -1 : 0;
  if (rank == none) return false;
  if (storage == kUndefined) return absl::InvalidArgumentError("an array has no storage");
  ASSIGN_OR_RETURN(array.shape, ReadShape<int64_t>(in, rank));
  return true;
}

absl::StatusOr<ParamsFile::Array> ReadArray(Cursor& in) {
  ParamsFile::Array array;
  ASSIGN_OR_RETURN(const uint32_t version, in.Read<uint32_t>());
  bool is_there = version != 0;
  if (version == kVersion1 || version == kVersion2 || version == kVersion3) {
    ASSIGN_OR_RETURN(is_there, ReadHead(in, version, array));
  } else {
    ASSIGN_OR_RETURN(array.shape, ReadShape<uint32_t>(in, version));
  }
  if (!is_there) {
    array.problem = "the file states no values for it";
    return array;
  }
  RETURN_IF_ERROR(in.Skip(8));  // the device: its type and number
  ASSIGN_OR_RETURN(array.type_flag, in.Read<int32_t>());
  const ElementType* const type = TypeOf(array.type_flag);
  if (type == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("an array is of ", TypeFlagName(array.type_flag)));
  }
  const absl::Status fits = CheckShape(array.shape);
  if (!fits.ok()) return absl::InvalidArgumentError(fits.message());
  array.offset = in.offset();
  array.bytes = ElementCount(array.shape) * type->bytes;
  RETURN_IF_ERROR(in.Skip(array.bytes));
  return array;
}

absl::Status ReadAll(const ByteSource& bytes, std::vector<ParamsFile::Array>& arrays) {
  Cursor in(bytes);
  ASSIGN_OR_RETURN(const uint64_t magic, in.Read<uint64_t>());
  if (magic != kListMagic)
    return absl::NotFoundError("it does not begin with MXNet's number 0x112");
  RETURN_IF_ERROR(in.Read<uint64_t>().status());  // reserved
  ASSIGN_OR_RETURN(const uint64_t count, in.Read<uint64_t>());
  if (count > kMaxArrays) {
    return absl::InvalidArgumentError(
        absl::StrCat("it states ", count, " arrays, more than ", kMaxArrays));
  }
  for (uint64_t i = 0; i < count; ++i) {
    absl::StatusOr<ParamsFile::Array> array = ReadArray(in);
    if (!array.ok()) {
      return absl::Status(array.status().code(),
                          absl::StrCat("array ", i, " of ", count, ": ", array.status().message()));
    }
    arrays.push_back(*std::move(array));
  }
  ASSIGN_OR_RETURN(const uint64_t names, in.Read<uint64_t>());
  if (names == 0) return absl::OkStatus();  // a list without names
  if (names != count) {
    return absl::InvalidArgumentError(
        absl::StrCat("it has ", count, " arrays and ", names, " names"));
  }
  for (ParamsFile::Array& array : arrays) {
    ASSIGN_OR_RETURN(const uint64_t length, in.Read<uint64_t>());
    ASSIGN_OR_RETURN(const std::string name, in.ReadText(length));
    absl::string_view plain = name;
    if (!absl::ConsumePrefix(&plain, "arg:")) absl::ConsumePrefix(&plain, "aux:");
    array.name = std::string(plain);
  }
  return absl::OkStatus();
}

template <typename From, typename Convert>
std::vector<uint8_t> ToFloats(const std::string& raw, Convert convert) {
  const size_t count = raw.size() / sizeof(From);
  std::vector<uint8_t> bytes(count * sizeof(float));
  for (size_t i = 0; i < count; ++i) {
    From from;
    std::memcpy(&from, raw.data() + i * sizeof(From), sizeof(From));
    const float value = convert(from);
    std::memcpy(bytes.data() + i * sizeof(float), &value, sizeof(float));
  }
  return bytes;
}

absl::Status CheckUnsigned64(const std::string& raw) {
  for (size_t i = 7; i < raw.size(); i += 8) {
    if ((static_cast<uint8_t>(raw[i]) & 0x80) != 0) {
      return absl::InvalidArgumentError("it holds a number above 2^63 - 1");
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string TypeFlagName(int64_t type_flag) {
  const ElementType* const type = TypeOf(type_flag);
  return type != nullptr ? type->name : absl::StrCat("element type ", type_flag);
}

DType DTypeOfFlag(int64_t type_flag) {
  const ElementType* const type = TypeOf(type_flag);
  return type != nullptr ? type->dtype : DType::kInvalid;
}

std::unique_ptr<ParamsFile> ParamsFile::Parse(const ByteSource& bytes, absl::string_view file,
                                              Diagnostics& diagnostics) {
  auto params = std::unique_ptr<ParamsFile>(new ParamsFile(bytes));
  const absl::Status read = ReadAll(bytes, params->arrays_);
  if (read.ok()) {
    params->IndexNames();
    return params;
  }
  const std::string what = absl::IsNotFound(read)     ? "is no .params file of MXNet"
                           : absl::IsOutOfRange(read) ? "is cut short"
                                                      : "is damaged";
  return RefuseFile(DiagnosticKind::kMxNetParams, file,
                    absl::StrCat("the file of the parameters ", what, ": ", read.message()),
                    "name the .params file that was saved with the symbol as WEIGHTS_FILE",
                    diagnostics);
}

void ParamsFile::IndexNames() {
  by_name_.clear();
  for (size_t i = 0; i < arrays_.size(); ++i) by_name_.emplace(arrays_[i].name, i);
}

void ParamsFile::AddPrefix(absl::string_view prefix) {
  for (Array& array : arrays_) array.name = absl::StrCat(prefix, array.name);
  IndexNames();
}

const ParamsFile::Array* ParamsFile::Find(absl::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &arrays_[it->second];
}

absl::StatusOr<Tensor> ParamsFile::Decode(const Array& array, int64_t max_bytes) const {
  if (!array.problem.empty()) return absl::InvalidArgumentError(array.problem);
  const TensorType type = {DTypeOfFlag(array.type_flag), array.shape};
  if (type.size_bytes() > max_bytes || array.bytes > 2 * max_bytes) {
    return absl::ResourceExhaustedError("the model's constants are too large");
  }
  std::string raw(static_cast<size_t>(array.bytes), '\0');
  RETURN_IF_ERROR(bytes_.Read(array.offset, absl::MakeSpan(raw.data(), raw.size())));
  switch (array.type_flag) {
    case kDouble:
      return Tensor(type, ToFloats<double>(raw, [](double v) { return static_cast<float>(v); }));
    case kHalf:
      return Tensor(type, ToFloats<uint16_t>(raw, HalfToFloat));
    case kBFloat16:
      return Tensor(type, ToFloats<uint16_t>(raw, [](uint16_t v) {
                      return std::bit_cast<float>(static_cast<uint32_t>(v) << 16);
                    }));
    case kBoolean:
      for (char& value : raw) value = value != 0 ? 1 : 0;
      break;
    case kUnsigned64:
      RETURN_IF_ERROR(CheckUnsigned64(raw));
      break;
    default:
      break;
  }
  return Tensor(type, std::vector<uint8_t>(raw.begin(), raw.end()));
}

}  // namespace npuc::mxnet
