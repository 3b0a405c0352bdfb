#ifndef NPUC_COMPILER_CORE_TOOLS_EXPLAIN_COMMAND_H_
#define NPUC_COMPILER_CORE_TOOLS_EXPLAIN_COMMAND_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace npuc {

// Explains a diagnostic's id: its name, whether it ends a compile, its meaning, and an example
// from compiler_core/DIAGNOSTICS.md, of which this build holds a copy. `id` is "NPUC1404", "1404",
// or the name, in any case. NOT_FOUND naming the nearest ones.
absl::StatusOr<std::string> ExplainDiagnostic(absl::string_view id, bool json);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TOOLS_EXPLAIN_COMMAND_H_
