#ifndef NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_LEXER_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_LEXER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace npuc::pt {

enum class TokenKind : uint8_t {
  kName,
  kInt,
  kFloat,
  kString,
  kPunctuation,  // text says which
  kNewline,
  kIndent,
  kDedent,
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  absl::string_view text;  // in the source; of a string with its quotes
  int line = 0;            // 1-based
  int column = 0;          // 1-based, in bytes
};

// Where and why source text could not be read.
struct CodeError {
  int line = 0;
  int column = 0;
  std::string message;  // empty: no error
  bool is_limit = false;
};

// Limits on one source file; more is an error.
struct CodeLimits {
  int64_t tokens = int64_t{1} << 21;
  int indentation = 128;  // nested blocks
  int nesting = 200;      // nested expressions
};

// Cuts serialized TorchScript into tokens, with Python's rules for lines, brackets and indentation.
// `source` must outlive the tokens. The last token is kEnd. On an error `error` says where.
std::vector<Token> Tokenize(absl::string_view source, const CodeLimits& limits, CodeError& error);

// The characters that a string token stands for; false where an escape is malformed.
bool UnescapeString(absl::string_view token, std::string& value);

// Line `line` (1-based) of the source without its indentation and line end.
absl::string_view SourceLine(absl::string_view source, int line);

}  // namespace npuc::pt

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_LEXER_H_
