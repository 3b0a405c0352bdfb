#include "server/base/job_diagnostic.h"

namespace npuc::base {
namespace {

JobDiagnostic::Severity ToJobSeverity(Severity severity) {
  switch (severity) {
    case Severity::kNote:
      return JobDiagnostic::Severity::kNote;
    case Severity::kWarning:
      return JobDiagnostic::Severity::kWarning;
    case Severity::kError:
      return JobDiagnostic::Severity::kError;
  }
  return JobDiagnostic::Severity::kError;
}

}  // namespace

JobDiagnostic ToJobDiagnostic(const Diagnostic& diagnostic) {
  return {.id = IdOf(diagnostic.kind),
          .severity = ToJobSeverity(diagnostic.severity()),
          .file = diagnostic.file,
          .line = diagnostic.line,
          .column = diagnostic.column,
          .node = diagnostic.node,
          .op = diagnostic.op,
          .message = diagnostic.message,
          .limit_source = diagnostic.limit_source,
          .fix = diagnostic.fix};
}

std::vector<JobDiagnostic> ToJobDiagnostics(const std::vector<Diagnostic>& diagnostics) {
  std::vector<JobDiagnostic> converted;
  converted.reserve(diagnostics.size());
  for (const Diagnostic& one : diagnostics) converted.push_back(ToJobDiagnostic(one));
  return converted;
}

}  // namespace npuc::base
