#include "cache/byte_lists.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>

#include "compiler_core/base/byte_text.h"

namespace npuc::cache {
namespace {

constexpr size_t kLengthBytes = 4;
constexpr size_t kValuesPerLine = 10;
constexpr absl::string_view kBreak = "\n\t";
// Shorter lists stay text: they save little more than their section costs.
constexpr size_t kLeastValues = 16;

void PutLength(size_t length, std::string& out) {
  for (size_t i = 0; i < kLengthBytes; ++i) out.push_back(static_cast<char>(length >> (8 * i)));
}

// False: there is none.
bool TakeLength(absl::string_view& from, size_t& length) {
  if (from.size() < kLengthBytes) return false;
  length = 0;
  for (size_t i = kLengthBytes; i-- > 0;) length = length << 8 | static_cast<uint8_t>(from[i]);
  from.remove_prefix(kLengthBytes);
  return true;
}

// "0xNN, " at p.
bool ReadValue(const char* p, const char* end, char& value) {
  if (end - p < static_cast<ptrdiff_t>(kByteTextChars)) return false;
  const uint8_t high = kLowerHexDigitValues[static_cast<uint8_t>(p[2])];
  const uint8_t low = kLowerHexDigitValues[static_cast<uint8_t>(p[3])];
  value = static_cast<char>(high << 4 | low);
  return std::memcmp(p, "0x", 2) == 0 && std::memcmp(p + 4, ", ", 2) == 0 && (high | low) <= 15;
}

// Writes the values of the list that begins at p behind `values`, which is moved; the list's end.
// There is room for a value for every kByteTextChars of the text.
const char* ReadList(const char* p, const char* end, char*& values) {
  while (true) {
    char value = 0;
    size_t in_line = 0;
    for (; in_line < kValuesPerLine && ReadValue(p, end, value); ++in_line, p += kByteTextChars) {
      *values++ = value;
    }
    if (in_line < kValuesPerLine || end - p < static_cast<ptrdiff_t>(kBreak.size()) ||
        std::memcmp(p, kBreak.data(), kBreak.size()) != 0 ||
        !ReadValue(p + kBreak.size(), end, value)) {
      return p;
    }
    p += kBreak.size();
  }
}

void PutSection(absl::string_view text, absl::string_view values, std::string& out) {
  PutLength(text.size(), out);
  out.append(text.data(), text.size());
  PutLength(values.size(), out);
  out.append(values.data(), values.size());
}

}  // namespace

std::optional<std::string> ShortenByteLists(absl::string_view text) {
  if (text.size() > std::numeric_limits<uint32_t>::max()) return std::nullopt;
  const char* const end = text.data() + text.size();
  const char* told = text.data();  // what is before it is in `out`
  std::string out;
  const auto values = std::make_unique_for_overwrite<char[]>(text.size() / kByteTextChars);
  for (size_t at = text.find("\t0x"); at != absl::string_view::npos;) {
    const char* const begin = text.data() + at + 1;
    char* values_end = values.get();
    const char* const stop = ReadList(begin, end, values_end);
    const absl::string_view list(values.get(), static_cast<size_t>(values_end - values.get()));
    if (list.size() >= kLeastValues) {
      if (out.empty()) out.reserve(text.size() / 4);
      PutSection(absl::string_view(told, static_cast<size_t>(begin - told)), list, out);
      told = stop;
    }
    at = text.find("\t0x", static_cast<size_t>(stop - text.data()));
  }
  const absl::string_view rest(told, static_cast<size_t>(end - told));
  if (out.size() + rest.size() >= text.size() / 2) return std::nullopt;
  if (!rest.empty()) PutSection(rest, "", out);
  return out;
}

std::optional<std::string> RestoreByteLists(absl::string_view shortened, size_t size) {
  std::string text;
  // A byte stands for six characters and a fifth at most.
  if (size / 7 > shortened.size()) return std::nullopt;
  text.resize(size);
  char* to = text.data();
  const auto left = [&] { return size - static_cast<size_t>(to - text.data()); };
  const auto put = [&to](absl::string_view bytes) {
    std::memcpy(to, bytes.data(), bytes.size());
    to += bytes.size();
  };
  while (!shortened.empty()) {
    size_t length = 0;
    if (!TakeLength(shortened, length) || length > shortened.size() || length > left()) {
      return std::nullopt;
    }
    put(shortened.substr(0, length));
    shortened.remove_prefix(length);
    if (!TakeLength(shortened, length) || length > shortened.size()) return std::nullopt;
    const size_t breaks = length == 0 ? 0 : (length - 1) / kValuesPerLine;
    if (length * kByteTextChars + breaks * kBreak.size() > left()) return std::nullopt;
    for (size_t i = 0; i < length; ++i) {
      if (i > 0 && i % kValuesPerLine == 0) put(kBreak);
      put({kByteTexts[static_cast<uint8_t>(shortened[i])].data(), kByteTextChars});
    }
    shortened.remove_prefix(length);
  }
  if (left() != 0) return std::nullopt;
  return text;
}

}  // namespace npuc::cache
