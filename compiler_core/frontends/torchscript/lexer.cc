#include "compiler_core/frontends/torchscript/lexer.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"

namespace npuc::pt {
namespace {

constexpr absl::string_view kPairs[] = {"**", "//", "<<", ">>", "==", "!=", "<=", ">=", "->"};
constexpr absl::string_view kSecondOfPairs = "*/<>=";
constexpr absl::string_view kSingles = "()[]{},:.;=+-*/%<>&|^~@";

// Of the punctuation that the text begins with, the longest one's; 0: none.
size_t PunctuationLength(absl::string_view text) {
  if (absl::StartsWith(text, "...")) return 3;
  if (text.size() > 1 && absl::StrContains(kSecondOfPairs, text[1]) &&
      std::find(std::begin(kPairs), std::end(kPairs), text.substr(0, 2)) != std::end(kPairs)) {
    return 2;
  }
  return absl::StrContains(kSingles, text[0]) ? 1 : 0;
}

// Fewer than torch writes, so that few files need a second piece of memory.
constexpr size_t kBytesPerToken = 3;

// By character. Most of a source is names.
constexpr std::array<bool, 256> kNameParts = [] {
  std::array<bool, 256> parts{};
  for (int c = '0'; c <= '9'; ++c) parts[c] = true;
  for (int c = 'a'; c <= 'z'; ++c) parts[c] = parts[c - 'a' + 'A'] = true;
  for (int c = 0x80; c <= 0xff; ++c) parts[c] = true;
  parts['_'] = true;
  return parts;
}();
bool IsNamePart(char c) { return kNameParts[static_cast<uint8_t>(c)]; }
bool IsNameStart(char c) { return IsNamePart(c) && !absl::ascii_isdigit(c); }

class Tokenizer {
 public:
  Tokenizer(absl::string_view source, const CodeLimits& limits, CodeError& error)
      : source_(source), limits_(limits), error_(error) {}

  std::vector<Token> Run() {
    while (at_ < source_.size() && error_.message.empty()) {
      if (at_line_start_ && depth_ == 0) {
        ReadIndentation();
      } else {
        ReadToken();
      }
    }
    if (!at_line_start_) Push(TokenKind::kNewline, 0);
    for (; indents_.size() > 1; indents_.pop_back()) Push(TokenKind::kDedent, 0);
    Push(TokenKind::kEnd, 0);
    return std::move(tokens_);
  }

 private:
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }
  int column() const { return static_cast<int>(at_ - line_start_) + 1; }

  void Fail(std::string message, bool is_limit = false) {
    if (!error_.message.empty()) return;
    error_ = {line_, column(), std::move(message), is_limit};
  }

  void Push(TokenKind kind, size_t length) {
    if (static_cast<int64_t>(tokens_.size()) >= limits_.tokens) {
      Fail(absl::StrCat("more than ", limits_.tokens, " tokens"), /*is_limit=*/true);
      at_ = source_.size();
      return;
    }
    if (tokens_.empty()) tokens_.reserve(source_.size() / kBytesPerToken);
    tokens_.push_back(
        {kind, source_.substr(std::min(at_, source_.size()), length), line_, column()});
    at_ += length;
  }

  void NextLine() {
    ++at_;
    ++line_;
    line_start_ = at_;
  }

  // Blank lines and comments do not count.
  void ReadIndentation() {
    size_t width = 0;
    while (Peek(width) == ' ') ++width;
    const char next = Peek(width);
    if (next == '\t') {
      at_ += width;
      return Fail("a tab in the indentation; torch writes spaces");
    }
    at_ += width;
    if (at_ >= source_.size()) return;
    if (next == '\n') return NextLine();
    if (next == '\r' && Peek(1) == '\n') {
      ++at_;
      return NextLine();
    }
    if (next == '#') return SkipComment();
    at_line_start_ = false;
    if (width > indents_.back()) {
      indents_.push_back(width);
      if (static_cast<int>(indents_.size()) > limits_.indentation) {
        return Fail(absl::StrCat("blocks are nested deeper than ", limits_.indentation),
                    /*is_limit=*/true);
      }
      return Push(TokenKind::kIndent, 0);
    }
    while (width < indents_.back()) {
      indents_.pop_back();
      Push(TokenKind::kDedent, 0);
    }
    if (width != indents_.back()) Fail("the indentation matches no block");
  }

  void SkipComment() {
    while (at_ < source_.size() && source_[at_] != '\n') ++at_;
  }

  void ReadToken() {
    const char c = Peek();
    if (c == '\n') {
      if (depth_ == 0) {
        Push(TokenKind::kNewline, 0);
        at_line_start_ = true;
      }
      return NextLine();
    }
    if (c == ' ' || c == '\r' || c == '\t') {
      ++at_;
    } else if (c == '#') {
      SkipComment();
    } else if (IsNameStart(c)) {
      size_t length = 1;
      while (IsNamePart(Peek(length))) ++length;
      Push(TokenKind::kName, length);
    } else if (absl::ascii_isdigit(c) || (c == '.' && absl::ascii_isdigit(Peek(1)))) {
      ReadNumber();
    } else if (c == '"' || c == '\'') {
      ReadString(c);
    } else {
      ReadPunctuation();
    }
  }

  void ReadNumber() {
    size_t length = 0;
    bool is_float = false;
    while (true) {
      const char c = Peek(length);
      if (absl::ascii_isdigit(c)) {
        ++length;
      } else if (c == '.' && !is_float) {
        is_float = true;
        ++length;
      } else if ((c == 'e' || c == 'E') && length > 0) {
        const size_t sign = Peek(length + 1) == '+' || Peek(length + 1) == '-' ? 1 : 0;
        if (!absl::ascii_isdigit(Peek(length + 1 + sign))) break;
        is_float = true;
        length += 1 + sign;
        while (absl::ascii_isdigit(Peek(length))) ++length;
        break;
      } else {
        break;
      }
    }
    if (IsNamePart(Peek(length))) {
      at_ += length;
      return Fail("a number runs into a name");
    }
    Push(is_float ? TokenKind::kFloat : TokenKind::kInt, length);
  }

  void ReadString(char quote) {
    size_t length = 1;
    while (at_ + length < source_.size() && Peek(length) != quote) {
      if (Peek(length) == '\n') break;
      length += Peek(length) == '\\' ? 2 : 1;
    }
    if (at_ + length >= source_.size() || Peek(length) != quote) {
      return Fail("a string that does not end on its line");
    }
    Push(TokenKind::kString, length + 1);
  }

  void ReadPunctuation() {
    const size_t length = PunctuationLength(source_.substr(at_));
    const char c = source_[at_];
    if (c == '(' || c == '[' || c == '{') ++depth_;
    if (c == ')' || c == ']' || c == '}') depth_ = std::max(depth_ - 1, 0);
    if (length > 0) return Push(TokenKind::kPunctuation, length);
    Fail(absl::StrCat("character '", Printable(source_.substr(at_, 1)),
                      "' is not part of TorchScript"));
  }

  absl::string_view source_;
  const CodeLimits& limits_;
  CodeError& error_;
  std::vector<Token> tokens_;
  std::vector<size_t> indents_ = {0};
  size_t at_ = 0;
  size_t line_start_ = 0;
  int line_ = 1;
  int depth_ = 0;  // of brackets: inside them line ends do not count
  bool at_line_start_ = true;
};

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = absl::ascii_tolower(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

}  // namespace

std::vector<Token> Tokenize(absl::string_view source, const CodeLimits& limits, CodeError& error) {
  return Tokenizer(source, limits, error).Run();
}

// torch writes \n and its like, and \ooo with three octal digits.
bool UnescapeString(absl::string_view token, std::string& value) {
  value.clear();
  token = token.substr(1, token.size() - 2);
  for (size_t i = 0; i < token.size(); ++i) {
    if (token[i] != '\\') {
      value += token[i];
      continue;
    }
    if (++i >= token.size()) return false;
    constexpr absl::string_view kLetters = "ntrabfv\\'\"";
    constexpr absl::string_view kMeanings = "\n\t\r\a\b\f\v\\'\"";
    const size_t letter = kLetters.find(token[i]);
    if (letter != absl::string_view::npos) {
      value += kMeanings[letter];
    } else if (token[i] == 'x' && i + 2 < token.size() && HexDigit(token[i + 1]) >= 0 &&
               HexDigit(token[i + 2]) >= 0) {
      value += static_cast<char>(HexDigit(token[i + 1]) * 16 + HexDigit(token[i + 2]));
      i += 2;
    } else if (token[i] >= '0' && token[i] <= '7') {
      int code = 0;
      size_t digits = 0;
      while (digits < 3 && i + digits < token.size() && token[i + digits] >= '0' &&
             token[i + digits] <= '7') {
        code = code * 8 + (token[i + digits] - '0');
        ++digits;
      }
      value += static_cast<char>(code);
      i += digits - 1;
    } else {
      return false;
    }
  }
  return true;
}

absl::string_view SourceLine(absl::string_view source, int line) {
  size_t start = 0;
  for (int i = 1; i < line; ++i) {
    const size_t end = source.find('\n', start);
    if (end == absl::string_view::npos) return "";
    start = end + 1;
  }
  const size_t end = source.find('\n', start);
  return absl::StripAsciiWhitespace(
      source.substr(start, end == absl::string_view::npos ? end : end - start));
}

}  // namespace npuc::pt
