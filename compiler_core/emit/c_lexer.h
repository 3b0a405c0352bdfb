#ifndef NPUC_COMPILER_CORE_EMIT_C_LEXER_H_
#define NPUC_COMPILER_CORE_EMIT_C_LEXER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace npuc {

// Splits C declarations into tokens, without the preprocessor: comments and # lines are skipped,
// but what #define lines say is kept. Tokens between `#if 0` and its #else or #endif are given, and
// marked; of other conditions all branches count.
// Never fails: a byte that starts no token is a punctuator of its own.
class CLexer {
 public:
  struct Token {
    enum class Kind : uint8_t { kEnd, kWord, kNumber, kString, kPunctuator };
    Kind kind = Kind::kEnd;
    absl::string_view text;  // a string's without its quotes, escapes as written
    int line = 1;            // 1-based
    bool is_off = false;     // within `#if 0`
    bool is(char c) const { return kind == Kind::kPunctuator && text.size() == 1 && text[0] == c; }
    bool is(absl::string_view word) const { return kind == Kind::kWord && text == word; }
  };

  // `text` must outlive the lexer and its tokens.
  explicit CLexer(absl::string_view text) : text_(text) {}

  // `#define NAME VALUE`: VALUE without the space around it, to the line's end. Macros with
  // parameters have none.
  struct Macro {
    absl::string_view name;
    absl::string_view value;
    int line = 1;
  };

  Token Next();
  int line() const { return line_; }
  // Those met so far, the first kMaxMacros of them.
  static constexpr size_t kMaxMacros = 1 << 16;
  const std::vector<Macro>& macros() const { return macros_; }

  // Reads numbers 0..255 parted by commas up to a closing brace, which it takes too. Returns false
  // at the first thing that is neither; `bytes` then holds what came before.
  bool ReadByteList(std::vector<uint8_t>& bytes);

  // The value of a decimal, hexadecimal or octal integer literal with optional u/l suffixes; -1
  // where `text` is none or is above 2^40.
  static int64_t NumberValue(absl::string_view text);
  // A string token's contents with its escapes resolved; unknown escapes stay as written.
  static std::string StringValue(absl::string_view text);

 private:
  // False: a byte is none.
  bool ReadUsualBytes(std::vector<uint8_t>& bytes);
  void SkipSpace();
  void TakeDirective(absl::string_view directive, int line);
  void TakeMacro(absl::string_view directive, int line);
  absl::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  std::vector<Macro> macros_;
  std::vector<bool> conditions_;  // the open ones; true: within a branch that `#if 0` turns off
  int64_t off_count_ = 0;         // of those
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_EMIT_C_LEXER_H_
