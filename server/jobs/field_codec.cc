#include "server/jobs/field_codec.h"

#include <bit>

namespace npuc {
namespace {

constexpr uint64_t kVarintField = 0;
constexpr uint64_t kBytesField = 2;

}  // namespace

void FieldWriter::Varint(uint64_t value) {
  while (value >= 0x80) {
    out_.push_back(static_cast<char>((value & 0x7f) | 0x80));
    value >>= 7;
  }
  out_.push_back(static_cast<char>(value));
}

void FieldWriter::Int(uint32_t tag, int64_t value) {
  if (value == 0) return;
  Varint((uint64_t{tag} << 3) | kVarintField);
  Varint(static_cast<uint64_t>(value));
}

void FieldWriter::Bytes(uint32_t tag, absl::string_view value) {
  if (!value.empty()) Entry(tag, value);
}

void FieldWriter::Entry(uint32_t tag, absl::string_view value) {
  Varint((uint64_t{tag} << 3) | kBytesField);
  Varint(value.size());
  out_.append(value.data(), value.size());
}

void FieldWriter::Double(uint32_t tag, double value) { Int(tag, std::bit_cast<int64_t>(value)); }

bool FieldReader::Varint(uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (rest_.empty()) return false;
    const auto byte = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    value |= uint64_t{byte & 0x7fu} << shift;
    if ((byte & 0x80) == 0) return true;
  }
  return false;
}

bool FieldReader::Next() {
  integer_ = 0;
  bytes_ = absl::string_view();
  if (!ok_ || rest_.empty()) return false;
  const absl::string_view before = rest_;
  uint64_t key = 0;
  if (!Varint(key) || (key >> 3) > UINT32_MAX) return Fail();
  tag_ = static_cast<uint32_t>(key >> 3);
  uint64_t value = 0;
  if (!Varint(value)) return Fail();
  if ((key & 7) == kVarintField) {
    integer_ = static_cast<int64_t>(value);
    field_ = before.substr(0, before.size() - rest_.size());
    return true;
  }
  if ((key & 7) != kBytesField || value > rest_.size()) return Fail();
  bytes_ = rest_.substr(0, value);
  rest_.remove_prefix(value);
  field_ = before.substr(0, before.size() - rest_.size());
  return true;
}

double FieldReader::real() const { return std::bit_cast<double>(integer_); }

}  // namespace npuc
