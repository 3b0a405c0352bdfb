#include "compiler_core/ir/graph/text_cursor.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"

namespace npuc {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

void AppendHex(absl::Span<const uint8_t> bytes, std::string& out) {
  for (const uint8_t byte : bytes) {
    out.push_back(kHexDigits[byte >> 4]);
    out.push_back(kHexDigits[byte & 15]);
  }
}

void AppendQuoted(absl::string_view text, std::string& out) {
  out.push_back('"');
  for (const char c : text) {
    const uint8_t byte = static_cast<uint8_t>(c);
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (byte < 0x20 || byte > 0x7e) {
      out += "\\x";
      AppendHex({&byte, 1}, out);
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
}

bool ParseHex(absl::string_view hex, std::vector<uint8_t>& bytes) {
  if (hex.size() % 2 != 0) return false;
  bytes.resize(hex.size() / 2);
  for (size_t i = 0; i < bytes.size(); ++i) {
    const int high = HexValue(hex[2 * i]);
    const int low = HexValue(hex[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    bytes[i] = static_cast<uint8_t>(high * 16 + low);
  }
  return true;
}

absl::Status TextCursor::Error(absl::string_view what) const {
  return absl::InvalidArgumentError(
      absl::StrCat("line ", line_, ", column ", position_ - line_start_ + 1, ": ", what));
}

absl::Status TextCursor::Expected(absl::string_view what) const {
  if (position_ >= text_.size()) return Error(absl::StrCat("expected ", what, ", found the end"));
  return Error(
      absl::StrCat("expected ", what, ", found '", Printable(text_.substr(position_, 1)), "'"));
}

void TextCursor::Skip() {
  for (; position_ < text_.size(); ++position_) {
    const char c = text_[position_];
    if (c == '#') {
      const size_t end = text_.find('\n', position_);
      position_ = end == absl::string_view::npos ? text_.size() : end;
      if (position_ == text_.size()) return;
    }
    if (text_[position_] == '\n') {
      ++line_;
      line_start_ = position_ + 1;
    } else if (!absl::ascii_isspace(static_cast<unsigned char>(text_[position_]))) {
      return;
    }
  }
}

bool TextCursor::AtEnd() {
  Skip();
  return position_ >= text_.size();
}

char TextCursor::Peek() {
  Skip();
  return position_ < text_.size() ? text_[position_] : '\0';
}

bool TextCursor::Accept(char c) {
  if (Peek() != c || position_ >= text_.size()) return false;
  ++position_;
  return true;
}

absl::Status TextCursor::Expect(char c) {
  if (Accept(c)) return absl::OkStatus();
  return Expected(absl::StrCat("'", std::string(1, c), "'"));
}

absl::string_view TextCursor::Word(bool number) {
  Skip();
  const size_t begin = position_;
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.' &&
        !(number && (c == '-' || c == '+'))) {
      break;
    }
    ++position_;
  }
  return text_.substr(begin, position_ - begin);
}

absl::Status TextCursor::ExpectWord(absl::string_view word) {
  const TextCursor before = *this;
  if (Word(false) == word) return absl::OkStatus();
  return before.ExpectedHere(absl::StrCat("'", word, "'"));
}

absl::StatusOr<absl::string_view> TextCursor::Name(absl::string_view what) {
  Skip();
  const TextCursor before = *this;
  const absl::string_view word = Word(false);
  if (word.empty() || word.size() > kMaxNameBytes) return before.Expected(what);
  return word;
}

absl::StatusOr<absl::string_view> TextCursor::RawQuoted() {
  RETURN_IF_ERROR(Expect('"'));
  const size_t begin = position_;
  while (position_ < text_.size() && text_[position_] != '"' && text_[position_] != '\n') {
    position_ += text_[position_] == '\\' ? 2 : 1;
  }
  if (position_ >= text_.size() || text_[position_] != '"') {
    position_ = std::min(position_, text_.size());
    return Expected("'\"' that closes the string");
  }
  return text_.substr(begin, position_++ - begin);
}

absl::Status TextCursor::ExpectedHere(absl::string_view what) const {
  TextCursor here = *this;
  here.Skip();
  return here.Expected(what);
}

absl::StatusOr<std::string> TextCursor::String(size_t max_bytes) {
  Skip();
  const TextCursor before = *this;
  ASSIGN_OR_RETURN(const absl::string_view raw, RawQuoted());
  std::string text;
  for (size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\') {
      text.push_back(raw[i]);
      continue;
    }
    ++i;  // RawQuoted leaves no backslash at the end
    if (raw[i] == '"' || raw[i] == '\\') {
      text.push_back(raw[i]);
      continue;
    }
    std::vector<uint8_t> byte;
    if (raw[i] != 'x' || i + 2 >= raw.size() || !ParseHex(raw.substr(i + 1, 2), byte)) {
      return before.Error("a string with an escape other than \\\", \\\\ and \\xNN");
    }
    text.push_back(static_cast<char>(byte[0]));
    i += 2;
  }
  if (text.size() > max_bytes) {
    return before.Error(absl::StrCat("a string of ", text.size(), " bytes; at most ", max_bytes));
  }
  return text;
}

}  // namespace npuc
