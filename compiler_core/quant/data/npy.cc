#include "compiler_core/quant/data/npy.h"

#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/fp16.h"
#include "compiler_core/base/status.h"

namespace npuc {
namespace {

constexpr absl::string_view kMagic = "\x93NUMPY";
constexpr int64_t kMaxNpyElements = int64_t{1} << 40;

struct TypeCode {
  DType dtype;
  absl::string_view code;
};
constexpr TypeCode kTypes[] = {
    {DType::kFloat16, "<f2"}, {DType::kFloat32, "<f4"}, {DType::kFloat64, "<f8"},
    {DType::kInt8, "|i1"},    {DType::kInt16, "<i2"},   {DType::kInt32, "<i4"},
    {DType::kInt64, "<i8"},   {DType::kUint8, "|u1"},   {DType::kUint16, "<u2"}};

absl::Status Invalid(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("not a usable .npy file: ", what));
}

// The value of 'key' in the header's dictionary literal, up to the `close` character that ends it.
absl::StatusOr<absl::string_view> ValueOf(absl::string_view dictionary, absl::string_view key,
                                          absl::string_view open, char close) {
  const size_t at = dictionary.find(absl::StrCat("'", key, "'"));
  if (at == absl::string_view::npos) return Invalid(absl::StrCat("its header has no '", key, "'"));
  absl::string_view rest = dictionary.substr(at + key.size() + 2);
  rest = absl::StripLeadingAsciiWhitespace(rest);
  if (!absl::ConsumePrefix(&rest, ":")) {
    return Invalid(absl::StrCat("no value follows '", key, "'"));
  }
  rest = absl::StripLeadingAsciiWhitespace(rest);
  const size_t end = absl::ConsumePrefix(&rest, open) ? rest.find(close) : absl::string_view::npos;
  if (end == absl::string_view::npos) {
    return Invalid(absl::StrCat("the value of '", key, "' has another form than known"));
  }
  return rest.substr(0, end);
}

absl::StatusOr<DType> ParseType(absl::string_view code) {
  for (const TypeCode& type : kTypes) {
    if (code == type.code) return type.dtype;
    if (code.size() == 3 && type.code[0] == '|' && code.substr(1) == type.code.substr(1)) {
      return type.dtype;  // one byte has no order
    }
  }
  return Invalid(absl::StrCat("its type is '", Printable(code), "'; known are ",
                              absl::StrJoin(kTypes, ", ", [](std::string* out, const TypeCode& t) {
                                absl::StrAppend(out, t.code);
                              })));
}

absl::StatusOr<std::vector<int64_t>> ParseShape(absl::string_view text) {
  std::vector<int64_t> shape;
  int64_t count = 1;
  while (true) {
    text = absl::StripLeadingAsciiWhitespace(text);
    if (text.empty()) return shape;
    const size_t comma = std::min(text.find(','), text.size());
    int64_t dim = 0;
    if (!absl::SimpleAtoi(text.substr(0, comma), &dim) || dim < 0) {
      return Invalid(absl::StrCat("a dimension is '", Printable(text.substr(0, comma)), "'"));
    }
    if (shape.size() == kMaxNpyRank || (dim > 0 && count > kMaxNpyElements / dim)) {
      return Invalid("its shape is beyond 32 dimensions or 2^40 elements");
    }
    count *= std::max<int64_t>(dim, 1);
    shape.push_back(dim);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
}

template <typename T>
void Convert(const char* bytes, std::vector<float>& out) {
  for (size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, bytes + i * sizeof(T), sizeof(T));
    out[i] = static_cast<float>(value);
  }
}

void ConvertHalf(const char* bytes, std::vector<float>& out) {
  for (size_t i = 0; i < out.size(); ++i) {
    uint16_t half;
    std::memcpy(&half, bytes + 2 * i, sizeof(half));
    out[i] = HalfToFloat(half);
  }
}

}  // namespace

absl::StatusOr<NpyStart> ReadNpyStart(absl::string_view file) {
  if (!absl::StartsWith(file, kMagic) || file.size() < 10) return Invalid("no NUMPY at its start");
  const auto byte = [file](size_t i) { return static_cast<size_t>(static_cast<uint8_t>(file[i])); };
  const size_t version = byte(6);
  if (version != 1 && version != 2) return Invalid(absl::StrCat("its version is ", version));
  const size_t start = version == 1 ? 10 : 12;
  if (file.size() < start) return Invalid("it ends within its header");
  size_t header_bytes = byte(8) | byte(9) << 8;
  if (version == 2) header_bytes |= byte(10) << 16 | byte(11) << 24;
  if (header_bytes > file.size() - start) return Invalid("it ends within its header");
  return NpyStart{file.substr(start, header_bytes), start + header_bytes};
}

absl::StatusOr<NpyHeader> ReadNpyHeader(absl::string_view file, int64_t file_bytes) {
  ASSIGN_OR_RETURN(const NpyStart start, ReadNpyStart(file));
  const absl::string_view dictionary = start.dictionary;
  NpyHeader header;
  ASSIGN_OR_RETURN(const absl::string_view type, ValueOf(dictionary, "descr", "'", '\''));
  ASSIGN_OR_RETURN(header.dtype, ParseType(type));
  ASSIGN_OR_RETURN(const absl::string_view order, ValueOf(dictionary, "fortran_order", "", ','));
  ASSIGN_OR_RETURN(const absl::string_view shape, ValueOf(dictionary, "shape", "(", ')'));
  ASSIGN_OR_RETURN(header.shape, ParseShape(shape));
  const absl::string_view order_text = absl::StripAsciiWhitespace(order);
  if (order_text != "False" && !(order_text == "True" && header.shape.size() < 2)) {
    return Invalid("it is in Fortran order; save it with numpy.ascontiguousarray");
  }
  header.data_offset = static_cast<int64_t>(start.data_offset);
  const int64_t data = file_bytes - header.data_offset;
  const int64_t expected = ElementCount(header.shape) * SizeOf(header.dtype);
  if (data != expected) {
    return Invalid(absl::StrCat("it holds ", data, " bytes of data; its shape needs ", expected));
  }
  return header;
}

absl::StatusOr<NpyArray> ReadNpy(absl::string_view file) {
  ASSIGN_OR_RETURN(NpyHeader header, ReadNpyHeader(file, static_cast<int64_t>(file.size())));
  return NpyArray{header.dtype, std::move(header.shape),
                  std::string(file.substr(static_cast<size_t>(header.data_offset)))};
}

absl::StatusOr<std::string> WriteNpy(const NpyArray& array) {
  absl::string_view code;
  for (const TypeCode& type : kTypes) {
    if (type.dtype == array.dtype) code = type.code;
  }
  if (code.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no .npy form for ", NameOf(array.dtype), " here"));
  }
  if (static_cast<int64_t>(array.bytes.size()) != array.element_count() * SizeOf(array.dtype) ||
      array.shape.size() > kMaxNpyRank) {
    return absl::InvalidArgumentError(
        absl::StrCat(array.bytes.size(), " bytes do not fit shape ", ShapeToString(array.shape)));
  }
  std::string header =
      absl::StrCat("{'descr': '", code, "', 'fortran_order': False, 'shape': (",
                   absl::StrJoin(array.shape, ", "), array.shape.size() == 1 ? ",), }" : "), }");
  // Data starts at a multiple of 64 bytes; the header ends in a line feed.
  constexpr size_t kPrefix = 10;
  while ((kPrefix + header.size() + 1) % 64 != 0) header.push_back(' ');
  header.push_back('\n');
  std::string out = absl::StrCat(kMagic, absl::string_view("\1\0", 2));
  out.push_back(static_cast<char>(header.size() & 0xff));
  out.push_back(static_cast<char>(header.size() >> 8));
  absl::StrAppend(&out, header, array.bytes);
  return out;
}

void NpyElements(DType dtype, const char* bytes, std::vector<float>& out) {
  switch (dtype) {
    case DType::kFloat16:
      return ConvertHalf(bytes, out);
    case DType::kFloat32:
      return Convert<float>(bytes, out);
    case DType::kFloat64:
      return Convert<double>(bytes, out);
    case DType::kInt8:
      return Convert<int8_t>(bytes, out);
    case DType::kInt16:
      return Convert<int16_t>(bytes, out);
    case DType::kInt32:
      return Convert<int32_t>(bytes, out);
    case DType::kInt64:
      return Convert<int64_t>(bytes, out);
    case DType::kUint8:
      return Convert<uint8_t>(bytes, out);
    case DType::kUint16:
      return Convert<uint16_t>(bytes, out);
    default:
      NPUC_CHECK(false);  // ReadNpyHeader gives no other
  }
}

}  // namespace npuc
