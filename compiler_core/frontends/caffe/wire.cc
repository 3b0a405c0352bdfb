#include "compiler_core/frontends/caffe/wire.h"

#include <cstring>

namespace npuc::caffe {

bool WireReader::Varint(uint64_t* value) {
  *value = 0;
  for (int i = 0; i < 10; ++i) {
    if (bytes_.empty()) return false;
    const uint8_t byte = static_cast<uint8_t>(bytes_[0]);
    bytes_.remove_prefix(1);
    *value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if ((byte & 0x80) == 0) return true;
  }
  return false;
}

bool WireReader::Bytes(uint64_t size, absl::string_view* taken) {
  if (size > bytes_.size()) return false;
  *taken = bytes_.substr(0, static_cast<size_t>(size));
  bytes_.remove_prefix(static_cast<size_t>(size));
  return true;
}

bool WireReader::Next(WireField* field) {
  uint64_t tag = 0;
  uint64_t size = 0;
  if (!Varint(&tag) || tag >> 3 == 0 || tag >> 3 > (uint64_t{1} << 29)) return false;
  *field = {.number = static_cast<uint32_t>(tag >> 3)};
  switch (tag & 7) {
    case 0:
      return Varint(&field->varint);
    case 1:
      field->type = WireField::Type::kFixed64;
      return Bytes(8, &field->bytes);
    case 2:
      field->type = WireField::Type::kBytes;
      return Varint(&size) && Bytes(size, &field->bytes);
    case 5:
      field->type = WireField::Type::kFixed32;
      return Bytes(4, &field->bytes);
    default:
      return false;  // no Caffe has groups
  }
}

float FloatAt(absl::string_view four_bytes) {
  float value = 0;
  std::memcpy(&value, four_bytes.data(), sizeof(value));
  return value;
}

double DoubleAt(absl::string_view eight_bytes) {
  double value = 0;
  std::memcpy(&value, eight_bytes.data(), sizeof(value));
  return value;
}

}  // namespace npuc::caffe
