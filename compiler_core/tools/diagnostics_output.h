#ifndef NPUC_COMPILER_CORE_TOOLS_DIAGNOSTICS_OUTPUT_H_
#define NPUC_COMPILER_CORE_TOOLS_DIAGNOSTICS_OUTPUT_H_

#include <string>

#include "compiler_core/base/diagnostic.h"
#include "nlohmann/json_fwd.hpp"

namespace npuc {

// The exit code of a wrong command line.
inline constexpr int kWrongUsage = 2;

// Prints the diagnostics of at least this severity to standard error, one a line, alike notes and
// warnings together (DiagnosticLines), and how many errors there were.
void PrintDiagnostics(const Diagnostics& diagnostics, Severity least = Severity::kNote);

// One line; what is no UTF-8 as U+FFFD.
std::string DumpJson(const nlohmann::ordered_json& json);

// Prints a command's --json report with `ok` and the diagnostics: id, severity, file, line, column,
// node, op, message, limit_source, fix.
void PrintReport(nlohmann::ordered_json report, bool ok, const Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TOOLS_DIAGNOSTICS_OUTPUT_H_
