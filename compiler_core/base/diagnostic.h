#ifndef NPUC_COMPILER_CORE_BASE_DIAGNOSTIC_H_
#define NPUC_COMPILER_CORE_BASE_DIAGNOSTIC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace npuc {

enum class Severity : uint8_t { kNote, kWarning, kError };
// "note", "warning" or "error".
absl::string_view NameOf(Severity severity);

// One enumerator per line of diagnostic_kinds.inc; the value is the stable number.
enum class DiagnosticKind : uint16_t {
#define NPUC_DIAGNOSTIC(number, name, severity, code, summary) k##name = number,
#define NPUC_DIAGNOSTIC_RETIRED(number, summary)
#include "compiler_core/base/diagnostic_kinds.inc"
#undef NPUC_DIAGNOSTIC
#undef NPUC_DIAGNOSTIC_RETIRED
};

struct DiagnosticKindInfo {
  DiagnosticKind kind;
  absl::string_view name;  // "UnknownConfigKey"
  Severity severity;
  absl::StatusCode code;
  absl::string_view summary;
};

// All kinds, in ascending order of number.
absl::Span<const DiagnosticKindInfo> AllDiagnosticKinds();
const DiagnosticKindInfo& InfoOf(DiagnosticKind kind);

// "NPUC1203"
std::string IdOf(DiagnosticKind kind);

// One problem, for a person to read and a program to act on. Only `kind` and `message` are
// required. Rendered by ToString as
//   file:line:column: node 'N' (Op): message; fix [NPUC1203]
// message states what was found against what is allowed, in lower case, no full stop.
struct Diagnostic {
  DiagnosticKind kind;
  std::string message;
  std::string file = {};          // model, config, template ... as the user named it; may be empty
  int line = 0;                   // 1-based; 0: unknown
  int column = 0;                 // 1-based; 0: unknown
  std::string node = {};          // source node name
  std::string op = {};            // source operator type
  std::string limit_source = {};  // where the limit comes from, e.g. "GRUS/TF Conv2D (ops.yaml)"
  std::string fix = {};           // what to do, imperative

  Severity severity() const { return InfoOf(kind).severity; }
  std::string ToString() const;
};

// Collects every problem of a compile, in order of discovery. Not thread-safe. Bounded: after
// kMaxDiagnostics further ones are counted, not kept.
class Diagnostics {
 public:
  static constexpr size_t kMaxDiagnostics = 1000;

  void Add(Diagnostic diagnostic);
  const std::vector<Diagnostic>& list() const { return list_; }
  bool has_errors() const { return error_count_ > 0; }
  size_t error_count() const { return error_count_; }
  size_t dropped_count() const { return dropped_count_; }
  void Append(const Diagnostics& other);

  // OK where there is no error; else the first error's status code and rendered text, with the
  // count of the others. Stages that found errors return this.
  absl::Status ToStatus() const;

 private:
  std::vector<Diagnostic> list_;
  size_t error_count_ = 0;
  size_t dropped_count_ = 0;
};

// The candidate nearest to `word` by edit distance, or "" where none is near enough to suggest
// (distance over a third of the longer length). Case does not count.
std::string NearestMatch(absl::string_view word, absl::Span<const absl::string_view> candidates);

// The longest name of a node or tensor that a front end reads. Names are printed whole up to here:
// users copy them into their configs.
inline constexpr size_t kMaxNodeNameBytes = 4096;

// `text` made safe to print: control characters and invalid UTF-8 escaped as \xNN, cut with "..."
// after max_bytes. Every name from a model file goes through this before it reaches a message.
std::string Printable(absl::string_view text, size_t max_bytes = kMaxNodeNameBytes);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_DIAGNOSTIC_H_
