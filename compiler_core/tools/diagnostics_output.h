#ifndef NPUC_COMPILER_CORE_TOOLS_DIAGNOSTICS_OUTPUT_H_
#define NPUC_COMPILER_CORE_TOOLS_DIAGNOSTICS_OUTPUT_H_

#include <string>

#include "compiler_core/base/diagnostic.h"

namespace npuc {

// Prints every diagnostic to standard error, one a line, and how many errors there were.
void PrintDiagnostics(const Diagnostics& diagnostics);

// The diagnostics as a JSON array: id, severity, file, line, column, node, op, message,
// limit_source, fix.
std::string DiagnosticsJson(const Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TOOLS_DIAGNOSTICS_OUTPUT_H_
