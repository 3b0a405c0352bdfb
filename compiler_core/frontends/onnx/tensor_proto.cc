#include "compiler_core/frontends/onnx/tensor_proto.h"

#include <bit>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/fp16.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/onnx/node_view.h"
#include "npuc/fe/onnx/model.pb.h"

namespace npuc::onnx {
namespace {

using fe::onnx::TensorProto;

static_assert(std::endian::native == std::endian::little,
              "raw_data is little-endian and is copied as it is");

template <typename To, typename From, typename Convert>
std::vector<uint8_t> ConvertAll(const From& from, size_t count, Convert convert) {
  std::vector<uint8_t> bytes(count * sizeof(To));
  for (size_t i = 0; i < count; ++i) {
    const To value = convert(from(i));
    std::memcpy(bytes.data() + i * sizeof(To), &value, sizeof(To));
  }
  return bytes;
}

float BFloat16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

absl::Status CheckUint64(uint64_t value) {
  if (value <= static_cast<uint64_t>(INT64_MAX)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the tensor holds the 64-bit value ", value, ", above 2^63 - 1"));
}

template <typename T>
T LoadAt(const std::string& raw, size_t i) {
  T value;
  std::memcpy(&value, raw.data() + i * sizeof(T), sizeof(T));
  return value;
}

// Where the tensor's data is in the file beside the model, checked against its size.
absl::StatusOr<std::string> ReadPart(const TensorProto& proto, const ByteSource& file,
                                     int64_t wanted) {
  int64_t offset = 0;
  int64_t length = wanted;
  for (const auto& entry : proto.external_data()) {
    int64_t* const number =
        entry.key() == "offset" ? &offset : (entry.key() == "length" ? &length : nullptr);
    if (number != nullptr && (!absl::SimpleAtoi(entry.value(), number) || *number < 0)) {
      return absl::InvalidArgumentError(absl::StrCat("the tensor's ", entry.key(), " is '",
                                                     Printable(entry.value()),
                                                     "', which is no number of bytes"));
    }
  }
  if (length != wanted || offset > file.size() || wanted > file.size() - offset) {
    return absl::InvalidArgumentError(
        absl::StrCat("the tensor takes ", wanted, " bytes; its data is stated as ", length,
                     " bytes from ", offset, " on, in a file of ", file.size()));
  }
  std::string part(static_cast<size_t>(wanted), '\0');
  RETURN_IF_ERROR(file.Read(offset, absl::MakeSpan(part.data(), part.size())));
  return part;
}

absl::StatusOr<std::vector<uint8_t>> FromRaw(const TensorProto& proto, const std::string& raw,
                                             size_t count) {
  const size_t wanted = count * static_cast<size_t>(WireSize(proto.data_type()));
  if (raw.size() != wanted) {
    return absl::InvalidArgumentError(
        absl::StrCat("raw_data has ", raw.size(), " bytes, but ", count, " elements of ",
                     DataTypeName(proto.data_type()), " need ", wanted));
  }
  switch (proto.data_type()) {
    case TensorProto::DOUBLE:
      return ConvertAll<float>([&](size_t i) { return LoadAt<double>(raw, i); }, count,
                               [](double v) { return static_cast<float>(v); });
    case TensorProto::FLOAT16:
      return ConvertAll<float>([&](size_t i) { return LoadAt<uint16_t>(raw, i); }, count,
                               HalfToFloat);
    case TensorProto::BFLOAT16:
      return ConvertAll<float>([&](size_t i) { return LoadAt<uint16_t>(raw, i); }, count,
                               BFloat16ToFloat);
    case TensorProto::BOOL:
      return ConvertAll<uint8_t>([&](size_t i) { return LoadAt<uint8_t>(raw, i); }, count,
                                 [](uint8_t v) -> uint8_t { return v != 0 ? 1 : 0; });
    case TensorProto::UINT64:
      for (size_t i = 0; i < count; ++i) RETURN_IF_ERROR(CheckUint64(LoadAt<uint64_t>(raw, i)));
      break;
    default:
      break;
  }
  return std::vector<uint8_t>(raw.begin(), raw.end());
}

template <typename To, typename List, typename Convert>
absl::StatusOr<std::vector<uint8_t>> FromList(const List& list, absl::string_view list_name,
                                              size_t count, Convert convert) {
  if (static_cast<size_t>(list.size()) != count) {
    return absl::InvalidArgumentError(absl::StrCat("the tensor has ", list.size(), " values in ",
                                                   list_name, " for ", count, " elements"));
  }
  return ConvertAll<To>([&](size_t i) { return list.Get(static_cast<int>(i)); }, count, convert);
}

template <typename To, typename List>
absl::StatusOr<std::vector<uint8_t>> FromList(const List& list, absl::string_view list_name,
                                              size_t count) {
  return FromList<To>(list, list_name, count, [](auto v) { return static_cast<To>(v); });
}

absl::StatusOr<std::vector<uint8_t>> FromLists(const TensorProto& p, size_t n) {
  switch (p.data_type()) {
    case TensorProto::FLOAT:
      return FromList<float>(p.float_data(), "float_data", n);
    case TensorProto::DOUBLE:
      return FromList<float>(p.double_data(), "double_data", n);
    case TensorProto::FLOAT16:
      return FromList<float>(p.int32_data(), "int32_data", n,
                             [](int32_t v) { return HalfToFloat(static_cast<uint16_t>(v)); });
    case TensorProto::BFLOAT16:
      return FromList<float>(p.int32_data(), "int32_data", n,
                             [](int32_t v) { return BFloat16ToFloat(static_cast<uint16_t>(v)); });
    case TensorProto::INT8:
      return FromList<int8_t>(p.int32_data(), "int32_data", n);
    case TensorProto::UINT8:
      return FromList<uint8_t>(p.int32_data(), "int32_data", n);
    case TensorProto::INT16:
      return FromList<int16_t>(p.int32_data(), "int32_data", n);
    case TensorProto::UINT16:
      return FromList<uint16_t>(p.int32_data(), "int32_data", n);
    case TensorProto::INT32:
      return FromList<int32_t>(p.int32_data(), "int32_data", n);
    case TensorProto::BOOL:
      return FromList<uint8_t>(p.int32_data(), "int32_data", n,
                               [](int32_t v) -> uint8_t { return v != 0 ? 1 : 0; });
    case TensorProto::INT64:
      return FromList<int64_t>(p.int64_data(), "int64_data", n);
    case TensorProto::UINT32:
      return FromList<uint32_t>(p.uint64_data(), "uint64_data", n);
    case TensorProto::UINT64:
      for (const uint64_t value : p.uint64_data()) RETURN_IF_ERROR(CheckUint64(value));
      return FromList<int64_t>(p.uint64_data(), "uint64_data", n);
    default:
      return absl::UnimplementedError(absl::StrCat(
          "the tensor has type ", DataTypeName(p.data_type()), ", which has no value here"));
  }
}

}  // namespace

int64_t WireSize(int data_type) {
  if (data_type == TensorProto::DOUBLE) return 8;
  const bool is_half = data_type == TensorProto::FLOAT16 || data_type == TensorProto::BFLOAT16;
  return is_half ? 2 : SizeOf(DTypeFromWire(data_type));
}

std::string LocationOf(const TensorProto& proto) {
  if (proto.data_location() == 0 && proto.external_data_size() == 0) return "";
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location" && !entry.value().empty()) return entry.value();
  }
  return "another file";
}

absl::StatusOr<Tensor> DecodeTensor(const TensorProto& proto, int64_t max_bytes,
                                    const ExternalFile& external) {
  const DType dtype = DTypeFromWire(proto.data_type());
  if (dtype == DType::kInvalid) {
    return absl::UnimplementedError(
        absl::StrCat("the tensor has type ", DataTypeName(proto.data_type()),
                     "; allowed are FLOAT, FLOAT16, BFLOAT16, DOUBLE, BOOL and 8- to 64-bit "
                     "integers"));
  }
  const std::string location = LocationOf(proto);
  const bool is_outside = !location.empty();
  if (is_outside && (external.bytes == nullptr || location != external.name)) {
    return absl::NotFoundError(absl::StrCat(
        "the tensor's data is in '", Printable(location), "', outside of the model file",
        external.bytes == nullptr
            ? ""
            : absl::StrCat(", and MODEL_BIN is '", Printable(external.name), "'")));
  }
  if (proto.dims_size() > kMaxRank) {
    return absl::InvalidArgumentError(absl::StrCat("the tensor has ", proto.dims_size(),
                                                   " dimensions; allowed are at most ", kMaxRank));
  }
  TensorType type{dtype, Shape(proto.dims().begin(), proto.dims().end())};
  RETURN_IF_ERROR(CheckShape(type.shape));
  if (type.size_bytes() > max_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the tensor of shape ", ShapeToString(type.shape), " takes ", type.size_bytes(),
        " bytes; the constants of one model may take ", max_bytes, " more"));
  }
  const size_t count = static_cast<size_t>(type.element_count());
  std::vector<uint8_t> bytes;
  if (is_outside) {
    const int64_t wanted = type.element_count() * WireSize(proto.data_type());
    ASSIGN_OR_RETURN(const std::string part, ReadPart(proto, *external.bytes, wanted));
    ASSIGN_OR_RETURN(bytes, FromRaw(proto, part, count));
  } else if (!proto.raw_data().empty()) {
    ASSIGN_OR_RETURN(bytes, FromRaw(proto, proto.raw_data(), count));
  } else {
    ASSIGN_OR_RETURN(bytes, FromLists(proto, count));
  }
  return Tensor(std::move(type), std::move(bytes));
}

}  // namespace npuc::onnx
