#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_FINISH_IMPORT_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_FINISH_IMPORT_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc::frontend {

// The end of every import: the graph where nothing of `found` is an error, verified (a wrong one is
// an internal error of the front end, which `kind` names: "ONNX"). What was found goes to
// `diagnostics`. The graph's name is the model's file.
absl::StatusOr<Graph> FinishImport(Graph graph, absl::string_view kind, Diagnostics found,
                                   Diagnostics& diagnostics);

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_FINISH_IMPORT_H_
