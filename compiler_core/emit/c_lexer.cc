#include "compiler_core/emit/c_lexer.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/byte_text.h"

namespace npuc {
namespace {

bool IsWordStart(char c) { return absl::ascii_isalpha(c) || c == '_'; }
bool IsWordPart(char c) { return absl::ascii_isalnum(c) || c == '_'; }

}  // namespace

void CLexer::SkipSpace() {
  bool line_start = at_ == 0 || text_[at_ - 1] == '\n';
  while (at_ < text_.size()) {
    const char c = text_[at_];
    const char next = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    if (c == '\n') {
      ++line_;
      ++at_;
      line_start = true;
    } else if (absl::ascii_isspace(c)) {
      ++at_;
    } else if ((c == '/' && next == '/') || (c == '#' && line_start)) {
      // To the end of the line; a backslash before it continues the line.
      const size_t start = at_;
      const int first_line = line_;
      while (at_ < text_.size() && (text_[at_] != '\n' || text_[at_ - 1] == '\\')) {
        if (text_[at_] == '\n') ++line_;
        ++at_;
      }
      if (c == '#') TakeDirective(text_.substr(start + 1, at_ - start - 1), first_line);
    } else if (c == '/' && next == '*') {
      const size_t end = text_.find("*/", at_ + 2);
      const size_t stop = end == absl::string_view::npos ? text_.size() : end + 2;
      for (; at_ < stop; ++at_) {
        if (text_[at_] == '\n') ++line_;
      }
    } else {
      return;
    }
  }
}

void CLexer::TakeDirective(absl::string_view directive, int line) {
  directive = absl::StripAsciiWhitespace(directive);
  const auto set_last = [this](bool is_off) {
    off_count_ += (is_off ? 1 : 0) - (conditions_.back() ? 1 : 0);
    conditions_.back() = is_off;
  };
  if (absl::StartsWith(directive, "if")) {  // #ifdef and #ifndef, too
    conditions_.push_back(false);
    set_last(absl::StripAsciiWhitespace(directive.substr(2)) == "0");
  } else if (absl::StartsWith(directive, "el") && !conditions_.empty()) {
    set_last(false);
  } else if (absl::StartsWith(directive, "endif") && !conditions_.empty()) {
    set_last(false);
    conditions_.pop_back();
  } else {
    TakeMacro(directive, line);
  }
}

void CLexer::TakeMacro(absl::string_view directive, int line) {
  if (!absl::ConsumePrefix(&directive, "define") || macros_.size() >= kMaxMacros) return;
  directive = absl::StripLeadingAsciiWhitespace(directive);
  size_t end = 0;
  while (end < directive.size() && IsWordPart(directive[end])) ++end;
  if (end == 0 || (end < directive.size() && directive[end] == '(')) return;
  const absl::string_view value = directive.substr(end);
  macros_.push_back({directive.substr(0, end), absl::StripAsciiWhitespace(value), line});
}

CLexer::Token CLexer::Next() {
  SkipSpace();
  Token token;
  token.line = line_;
  token.is_off = off_count_ > 0;
  if (at_ >= text_.size()) return token;
  const size_t start = at_;
  const char c = text_[at_++];
  if (IsWordStart(c) || absl::ascii_isdigit(c)) {
    token.kind = IsWordStart(c) ? Token::Kind::kWord : Token::Kind::kNumber;
    while (at_ < text_.size() && IsWordPart(text_[at_])) ++at_;
    token.text = text_.substr(start, at_ - start);
  } else if (c == '"' || c == '\'') {
    token.kind = Token::Kind::kString;
    while (at_ < text_.size() && text_[at_] != c && text_[at_] != '\n') {
      at_ += text_[at_] == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] != '\n' ? 2 : 1;
    }
    token.text = text_.substr(start + 1, at_ - start - 1);
    if (at_ < text_.size() && text_[at_] == c) ++at_;
  } else {
    token.kind = Token::Kind::kPunctuator;
    token.text = text_.substr(start, 1);
  }
  return token;
}

// The usual run "0xNN, 0xNN,\n0xNN, ..." at a few instructions a byte: most of a header is that.
bool CLexer::ReadUsualBytes(std::vector<uint8_t>& bytes) {
  const char* p = text_.data() + at_;
  const char* const end = text_.data() + text_.size();
  bool is_good = true;
  while (end - p >= 6 && p[0] == '0' && p[1] == 'x' && p[4] == ',' &&
         (p[5] == ' ' || p[5] == '\n')) {
    const uint8_t high = kHexDigitValues[static_cast<uint8_t>(p[2])];
    const uint8_t low = kHexDigitValues[static_cast<uint8_t>(p[3])];
    is_good = (high | low) <= 15;
    if (!is_good) break;
    bytes.push_back(static_cast<uint8_t>(high << 4 | low));
    if (p[5] == '\n') ++line_;
    p += 6;
  }
  at_ = static_cast<size_t>(p - text_.data());
  return is_good;
}

bool CLexer::ReadByteList(std::vector<uint8_t>& bytes) {
  bool separated = true;
  while (true) {
    if (separated && !ReadUsualBytes(bytes)) return false;
    const Token token = Next();
    if (token.is('}')) return true;
    if (token.kind == Token::Kind::kNumber && separated) {
      const int64_t value = NumberValue(token.text);
      if (value < 0 || value > 255) return false;
      bytes.push_back(static_cast<uint8_t>(value));
      separated = false;
    } else if (token.is(',') && !separated) {
      separated = true;
      SkipSpace();
    } else {
      return false;
    }
    if (separated) SkipSpace();
  }
}

int64_t CLexer::NumberValue(absl::string_view text) {
  while (!text.empty() &&
         (text.back() == 'u' || text.back() == 'U' || text.back() == 'l' || text.back() == 'L')) {
    text.remove_suffix(1);
  }
  int base = 10;
  if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
    base = 16;
    text.remove_prefix(2);
  } else if (text.size() > 1 && text[0] == '0') {
    base = 8;
  }
  if (text.empty()) return -1;
  int64_t value = 0;
  for (const char c : text) {
    const int digit = kHexDigitValues[static_cast<uint8_t>(c)];
    if (digit >= base) return -1;
    value = value * base + digit;
    if (value > int64_t{1} << 40) return -1;
  }
  return value;
}

std::string CLexer::StringValue(absl::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out.push_back(text[i]);
      continue;
    }
    const char c = text[++i];
    if (c >= '0' && c <= '7') {
      int value = 0;
      size_t digits = 0;
      while (digits < 3 && i < text.size() && text[i] >= '0' && text[i] <= '7') {
        value = value * 8 + (text[i++] - '0');
        ++digits;
      }
      --i;
      out.push_back(static_cast<char>(value));
    } else if (c == '"' || c == '\\' || c == '?' || c == '\'') {
      out.push_back(c);
    } else {
      out.push_back('\\');
      out.push_back(c);
    }
  }
  return out;
}

}  // namespace npuc
