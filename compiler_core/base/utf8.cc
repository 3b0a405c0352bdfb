#include "compiler_core/base/utf8.h"

#include <cstdint>
#include <cstring>

namespace npuc {

size_t Utf8SequenceLength(absl::string_view text, size_t i) {
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char c = byte(i);
  size_t length = 0;
  uint32_t code_point = 0;
  if (c < 0x80) return 1;
  if (c >= 0xc2 && c <= 0xdf) {
    length = 2;
    code_point = c & 0x1f;
  } else if (c >= 0xe0 && c <= 0xef) {
    length = 3;
    code_point = c & 0x0f;
  } else if (c >= 0xf0 && c <= 0xf4) {
    length = 4;
    code_point = c & 0x07;
  } else {
    return 0;
  }
  if (i + length > text.size()) return 0;
  for (size_t k = 1; k < length; ++k) {
    if ((byte(i + k) & 0xc0) != 0x80) return 0;
    code_point = code_point << 6 | (byte(i + k) & 0x3f);
  }
  if (length == 3 && (code_point < 0x800 || (code_point >= 0xd800 && code_point <= 0xdfff))) {
    return 0;
  }
  if (length == 4 && (code_point < 0x10000 || code_point > 0x10ffff)) return 0;
  return length;
}

size_t FirstInvalidUtf8(absl::string_view text) {
  for (size_t i = 0; i < text.size();) {
    // Mostly ASCII: eight bytes at a time.
    uint64_t word = 0;
    while (i + sizeof(word) <= text.size()) {
      std::memcpy(&word, text.data() + i, sizeof(word));
      if ((word & 0x8080808080808080) != 0) break;
      i += sizeof(word);
    }
    if (i == text.size()) break;
    const size_t length = Utf8SequenceLength(text, i);
    if (length == 0) return i;
    i += length;
  }
  return absl::string_view::npos;
}

}  // namespace npuc
