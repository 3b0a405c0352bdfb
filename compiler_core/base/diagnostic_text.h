#ifndef NPUC_COMPILER_CORE_BASE_DIAGNOSTIC_TEXT_H_
#define NPUC_COMPILER_CORE_BASE_DIAGNOSTIC_TEXT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/base/diagnostic.h"

namespace npuc {

// A diagnostic as it is shown: one of this program, or one that came from another, whose id this
// build may not know. The views are those of what it was made from.
struct DiagnosticText {
  Severity severity;
  std::string id;
  absl::string_view message;
  absl::string_view file = {};
  int line = 0;
  int column = 0;
  absl::string_view node = {};
  absl::string_view op = {};
  absl::string_view limit_source = {};
  absl::string_view fix = {};
};

DiagnosticText TextOf(const Diagnostic& diagnostic);

// "file:line:column: node 'N' (Op): message; fix [NPUC1203]", as Diagnostic::ToString. One line:
// control characters and invalid UTF-8 are escaped, long parts cut.
std::string RenderDiagnostic(const DiagnosticText& diagnostic);

struct DiagnosticLine {
  Severity severity;
  std::string text;
};

// A list of diagnostics for a person, in its order. Those that differ in their node alone, notes
// also those that differ in its operator, are one line, where the first of them stands:
//   file: note: node 'a' (Op), and 3 more ('b', 'c', 'd'): message; fix [id]
// with at most kMaxAlikeNodes of the others' names, notes with at most kMaxNoteNameBytes of these.
inline constexpr int kMaxAlikeNodes = 16;
inline constexpr size_t kMaxNoteNameBytes = 120;
std::vector<DiagnosticLine> DiagnosticLines(absl::Span<const DiagnosticText> diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_DIAGNOSTIC_TEXT_H_
