#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_RUN_IMPORT_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_RUN_IMPORT_H_

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc::frontend {

// The frame of every import: `import` fills the graph, by GraphBuilder, and reports what it finds;
// the graph is the result where nothing of that is an error, its structure verified (a wrong one is
// an internal error of the front end, which `kind` names: "ONNX"). What was found goes to
// `diagnostics`. The graph's name is the model's file.
absl::StatusOr<Graph> RunImport(absl::string_view kind, const CompileOptions& options,
                                Diagnostics& diagnostics,
                                absl::FunctionRef<void(Graph* graph, Diagnostics* found)> import);

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_RUN_IMPORT_H_
