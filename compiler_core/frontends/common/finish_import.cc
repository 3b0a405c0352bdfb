#include "compiler_core/frontends/common/finish_import.h"

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/op.h"

namespace npuc::frontend {

absl::StatusOr<Graph> FinishImport(Graph graph, absl::string_view kind, Diagnostics found,
                                   Diagnostics& diagnostics) {
  if (!found.has_errors()) {
    const absl::Status verified = VerifyGraph(graph);
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
