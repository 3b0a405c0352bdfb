#ifndef NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_IMPORT_TEST_UTIL_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_IMPORT_TEST_UTIL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc::pt {

// The result of importing hand-written code.
struct ImportResult {
  absl::StatusOr<Graph> graph;
  Diagnostics diagnostics;
  std::string Text() const;  // every diagnostic, a line each
  bool Has(DiagnosticKind kind) const;
  // The values of output `index`, by the reference kernels, where input i holds 0, 1, 2 ... times
  // 0.25, minus 1. Empty where the import failed.
  std::vector<float> Run(size_t index = 0) const;
};

// Imports a module whose class is __torch__.Net with this source, of the attributes w (f32 [2,3],
// 0 to 5 column by column), n (the int 3), sizes (the list [2, 3]) and training (False).
// shapes[i] is that of input i; `plugins` the text of a file of declarations.
ImportResult ImportCode(const std::string& source, const std::vector<std::vector<int64_t>>& shapes,
                        const CompileOptions& base = {}, absl::string_view plugins = "");
// The same with a forward(self, PARAMETERS) of this body; each line of it gets its indentation.
ImportResult ImportForward(const std::string& parameters, const std::string& body,
                           const std::vector<std::vector<int64_t>>& shapes,
                           const CompileOptions& base = {}, absl::string_view plugins = "");

}  // namespace npuc::pt

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TORCHSCRIPT_IMPORT_TEST_UTIL_H_
