#include "compiler_core/frontends/common/run_import.h"

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"

namespace npuc::frontend {

absl::StatusOr<Graph> RunImport(absl::string_view kind, const CompileOptions& options,
                                Diagnostics& diagnostics,
                                absl::FunctionRef<void(Graph* graph, Diagnostics* found)> import) {
  Graph graph;
  graph.set_name(options.model_name);
  Diagnostics found;
  import(&graph, &found);
  if (!found.has_errors()) {
    // Types are what GraphBuilder inferred of each node as it was added.
    const absl::Status verified = VerifyStructure(graph);
    if (!verified.ok()) {
      found.Add({.kind = DiagnosticKind::kInternalError,
                 .message = absl::StrCat(kind, " import made a wrong graph: ", verified.message()),
                 .file = graph.name(),
                 .fix = "report it with the model"});
    }
  }
  diagnostics.Append(found);
  RETURN_IF_ERROR(found.ToStatus());
  return graph;
}

}  // namespace npuc::frontend
