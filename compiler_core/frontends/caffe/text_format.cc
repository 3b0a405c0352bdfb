#include "compiler_core/frontends/caffe/text_format.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"

namespace npuc::caffe {
namespace {

bool IsNameByte(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }

class Parser {
 public:
  explicit Parser(absl::string_view text) : text_(text) {}

  absl::StatusOr<std::unique_ptr<Message>> Parse() {
    auto root = std::make_unique<Message>();
    RETURN_IF_ERROR(ParseFields(*root, '\0', 0));
    return root;
  }

 private:
  absl::Status Error(absl::string_view what) const {
    size_t line = 1;
    size_t start = 0;
    for (size_t i = 0; i < at_; ++i) {
      if (text_[i] != '\n') continue;
      ++line;
      start = i + 1;
    }
    return absl::InvalidArgumentError(absl::StrCat(line, ":", at_ - start + 1, ": ", what));
  }
  // The text at the place, for a message.
  std::string Found() const {
    if (at_ >= text_.size()) return "the end of the text";
    size_t size = 1;
    while (IsNameByte(text_[at_]) && at_ + size < text_.size() && IsNameByte(text_[at_ + size]) &&
           size < 40) {
      ++size;
    }
    return absl::StrCat("'", Printable(text_.substr(at_, size)), "'");
  }

  void SkipSpace() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (absl::ascii_isspace(static_cast<unsigned char>(c))) {
        ++at_;
      } else {
        return;
      }
    }
  }
  bool At(char c) const { return at_ < text_.size() && text_[at_] == c; }
  bool Take(char c) {
    if (!At(c)) return false;
    ++at_;
    SkipSpace();
    return true;
  }

  // Recurses as deep as messages nest, which is at most kMaxDepth.
  absl::Status ParseFields(Message& message, char end, int depth) {
    SkipSpace();
    while (at_ < text_.size()) {
      if (end != '\0' && Take(end)) return absl::OkStatus();
      RETURN_IF_ERROR(ParseField(message, depth));
      while (Take(',') || Take(';')) {
      }
    }
    if (end == '\0') return absl::OkStatus();
    return Error(
        absl::StrCat("the text ends inside of a message; '", std::string(1, end), "' is missing"));
  }

  // The name of a field; of an extension, the name in its brackets.
  absl::StatusOr<absl::string_view> ParseName() {
    const bool is_extension = Take('[');
    const size_t begin = at_;
    while (at_ < text_.size() && (IsNameByte(text_[at_]) || (is_extension && At('.')))) ++at_;
    const absl::string_view name = text_.substr(begin, at_ - begin);
    if (name.empty()) return Error(absl::StrCat("the name of a field is expected, not ", Found()));
    SkipSpace();
    if (is_extension && !Take(']')) return Error(absl::StrCat("']' is expected, not ", Found()));
    return name;
  }

  absl::Status ParseField(Message& message, int depth) {
    ASSIGN_OR_RETURN(const absl::string_view name, ParseName());
    const bool has_colon = Take(':');
    if (Take('[')) {
      if (!has_colon) return Error("a list needs ':' before it");
      while (!Take(']')) {
        RETURN_IF_ERROR(ParseValue(message, name, true, depth));
        if (!Take(',') && !At(']')) {
          return Error(absl::StrCat("',' or ']' is expected, not ", Found()));
        }
      }
      return absl::OkStatus();
    }
    return ParseValue(message, name, has_colon, depth);
  }

  absl::Status ParseValue(Message& message, absl::string_view name, bool has_colon, int depth) {
    if (++field_count_ > kMaxFields) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the text has more than ", kMaxFields, " fields"));
    }
    Field field{.name = name};
    if (At('{') || At('<')) {
      if (depth + 1 >= kMaxDepth) {
        return absl::ResourceExhaustedError(
            absl::StrCat("messages are nested more than ", kMaxDepth, " deep"));
      }
      const char end = At('{') ? '}' : '>';
      (void)Take(text_[at_]);
      field.kind = Field::Kind::kMessage;
      field.message = std::make_unique<Message>();
      RETURN_IF_ERROR(ParseFields(*field.message, end, depth + 1));
    } else if (!has_colon) {
      return Error(
          absl::StrCat("':' or '{' is expected behind '", Printable(name, 60), "', not ", Found()));
    } else if (At('"') || At('\'')) {
      RETURN_IF_ERROR(ParseString(field));
    } else {
      RETURN_IF_ERROR(ParseScalar(field));
    }
    message.fields.push_back(std::move(field));
    return absl::OkStatus();
  }

  absl::Status ParseString(Field& field) {
    field.kind = Field::Kind::kString;
    while (At('"') || At('\'')) {
      const char quote = text_[at_];
      const size_t begin = at_ + 1;
      size_t end = begin;
      while (end < text_.size() && text_[end] != quote && text_[end] != '\n') {
        end += text_[end] == '\\' ? 2 : 1;
      }
      if (end >= text_.size() || text_[end] != quote) return Error("the string does not end");
      std::string part;
      if (!absl::CUnescape(text_.substr(begin, end - begin), &part)) {
        return Error("the string has an escape that is none");
      }
      field.text += part;
      at_ = end + 1;
      SkipSpace();
    }
    return absl::OkStatus();
  }

  absl::Status ParseScalar(Field& field) {
    const size_t begin = at_;
    while (at_ < text_.size() && (IsNameByte(text_[at_]) || At('.') || At('-') || At('+'))) ++at_;
    const absl::string_view token = text_.substr(begin, at_ - begin);
    if (token.empty()) return Error(absl::StrCat("a value is expected, not ", Found()));
    if (!ParseNumber(token, &field.number)) {
      if (!absl::ascii_isalpha(static_cast<unsigned char>(token[0])) && token[0] != '_') {
        at_ = begin;
        return Error(absl::StrCat("'", Printable(token, 60), "' is no number"));
      }
      field.kind = Field::Kind::kWord;
      field.text = std::string(token);
    }
    SkipSpace();
    return absl::OkStatus();
  }

  static bool ParseNumber(absl::string_view token, double* number) {
    absl::string_view digits = token;
    const bool is_negative = absl::ConsumePrefix(&digits, "-");
    if (digits.empty() || digits[0] == '-' || digits[0] == '+') return false;
    const std::string lower = absl::AsciiStrToLower(digits);
    double value = 0;
    uint64_t whole = 0;
    if (lower == "inf" || lower == "infinity" || lower == "inff") {
      value = std::numeric_limits<double>::infinity();
    } else if (lower == "nan" || lower == "nanf") {
      value = std::numeric_limits<double>::quiet_NaN();
    } else if (absl::StartsWith(lower, "0x")) {
      if (!absl::SimpleHexAtoi(digits, &whole)) return false;
      value = static_cast<double>(whole);
    } else if (lower.size() > 1 && lower.find_first_not_of("01234567") == std::string::npos &&
               lower[0] == '0') {
      if (lower.size() > 20) return false;
      for (const char c : lower) whole = whole * 8 + static_cast<uint64_t>(c - '0');
      value = static_cast<double>(whole);
    } else {
      if (!absl::ascii_isdigit(static_cast<unsigned char>(lower[0])) && lower[0] != '.') {
        return false;
      }
      if (lower.back() == 'f') digits.remove_suffix(1);
      if (!absl::SimpleAtod(digits, &value)) return false;
    }
    *number = is_negative ? -value : value;
    return true;
  }

  const absl::string_view text_;
  size_t at_ = 0;
  int field_count_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Message>> ParseTextFormat(absl::string_view text) {
  if (text.size() > kMaxTextBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the text has ", text.size(), " bytes; allowed are ", kMaxTextBytes));
  }
  if (absl::StartsWith(text, "\xEF\xBB\xBF")) text.remove_prefix(3);
  return Parser(text).Parse();
}

}  // namespace npuc::caffe
