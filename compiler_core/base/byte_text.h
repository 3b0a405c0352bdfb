#ifndef NPUC_COMPILER_CORE_BASE_BYTE_TEXT_H_
#define NPUC_COMPILER_CORE_BASE_BYTE_TEXT_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace npuc {

// Bytes as our C headers list them, as tables for code that goes through millions.

inline constexpr size_t kByteTextChars = 6;  // "0xNN, "
// Room for one store; what is behind the six characters is blank.
inline constexpr size_t kByteTextRoom = 8;

inline constexpr uint8_t kNoHexDigit = 0xff;

// By character; kNoHexDigit for what is no hexadecimal digit.
constexpr std::array<uint8_t, 256> HexDigitValues(bool upper_case_too) {
  std::array<uint8_t, 256> values{};
  values.fill(kNoHexDigit);
  for (uint8_t i = 0; i < 10; ++i) values['0' + i] = i;
  for (uint8_t i = 10; i < 16; ++i) values['a' + i - 10] = i;
  for (uint8_t i = 10; upper_case_too && i < 16; ++i) values['A' + i - 10] = i;
  return values;
}

inline constexpr std::array<uint8_t, 256> kHexDigitValues = HexDigitValues(true);
inline constexpr std::array<uint8_t, 256> kLowerHexDigitValues = HexDigitValues(false);

// "0xNN, " of each byte, in lower case.
inline constexpr std::array<std::array<char, kByteTextRoom>, 256> kByteTexts = [] {
  constexpr char kDigits[] = "0123456789abcdef";
  std::array<std::array<char, kByteTextRoom>, 256> texts{};
  for (size_t i = 0; i < texts.size(); ++i) {
    texts[i] = {'0', 'x', kDigits[i >> 4], kDigits[i & 15], ',', ' ', ' ', ' '};
  }
  return texts;
}();

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_BYTE_TEXT_H_
