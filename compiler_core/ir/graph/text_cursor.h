#ifndef NPUC_COMPILER_CORE_IR_GRAPH_TEXT_CURSOR_H_
#define NPUC_COMPILER_CORE_IR_GRAPH_TEXT_CURSOR_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace npuc {

// What the parsers of the textual forms (graphs, command programs) share: the rest of a text and
// where it stands. A copy remembers a place, to go back to or to blame. The text must outlive it.
// White space separates; # starts a comment. Not thread-safe.
class TextCursor {
 public:
  static constexpr size_t kMaxNameBytes = size_t{1} << 16;

  explicit TextCursor(absl::string_view text) : text_(text) {}

  // INVALID_ARGUMENT with line and column.
  absl::Status Error(absl::string_view what) const;
  // "expected WHAT, found" what stands here.
  absl::Status Expected(absl::string_view what) const;

  // Passes white space and comments.
  void Skip();
  bool AtEnd();
  char Peek();  // the next character, or NUL
  bool Accept(char c);
  absl::Status Expect(char c);
  // The longest run of [A-Za-z0-9_.] and, where asked for, signs: names and numbers.
  absl::string_view Word(bool number);
  absl::Status ExpectWord(absl::string_view word);
  absl::StatusOr<absl::string_view> Name(absl::string_view what);
  // The raw text between quotes, escapes untouched.
  absl::StatusOr<absl::string_view> RawQuoted();
  // A string between quotes, as AppendQuoted writes it.
  absl::StatusOr<std::string> String(size_t max_bytes);

 private:
  absl::Status ExpectedHere(absl::string_view what) const;

  absl::string_view text_;
  size_t position_ = 0;
  size_t line_start_ = 0;
  int line_ = 1;
};

// Two lower-case digits a byte.
void AppendHex(absl::Span<const uint8_t> bytes, std::string& out);
// False where it is not pairs of hex digits.
bool ParseHex(absl::string_view hex, std::vector<uint8_t>& bytes);
// The text between quotes; ", \ and non-printable bytes are escaped as \", \\ and \xNN.
void AppendQuoted(absl::string_view text, std::string& out);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_IR_GRAPH_TEXT_CURSOR_H_
