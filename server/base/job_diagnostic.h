#ifndef NPUC_SERVER_BASE_JOB_DIAGNOSTIC_H_
#define NPUC_SERVER_BASE_JOB_DIAGNOSTIC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler_core/base/diagnostic.h"

namespace npuc::base {

// compiler_core's Diagnostic with its kind as text, so that old records stay readable when kinds
// are retired. Its numbers are stored: never change or reuse them.
struct JobDiagnostic {
  enum class Severity : uint8_t { kNote = 1, kWarning = 2, kError = 3 };
  std::string id = {};  // "NPUC1203"
  Severity severity = Severity::kError;
  std::string file = {};
  int32_t line = 0;
  int32_t column = 0;
  std::string node = {};
  std::string op = {};
  std::string message = {};
  std::string limit_source = {};
  std::string fix = {};

  friend bool operator==(const JobDiagnostic&, const JobDiagnostic&) = default;
};

JobDiagnostic ToJobDiagnostic(const Diagnostic& diagnostic);
std::vector<JobDiagnostic> ToJobDiagnostics(const std::vector<Diagnostic>& diagnostics);

}  // namespace npuc::base

#endif  // NPUC_SERVER_BASE_JOB_DIAGNOSTIC_H_
