#include "compiler_core/pipeline/quantized_forward.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/quant/kept/quantized_form.h"
#include "compiler_core/target/core_spec.h"

namespace npuc {

absl::StatusOr<QuantizedForward> MakeQuantizedForward(const CompileRequest& request, Graph imported,
                                                      Diagnostics& diagnostics) {
  const CoreSpec* core = FindCore(request.options.core);
  if (core == nullptr || core->integer == nullptr) {
    diagnostics.Add({.kind = DiagnosticKind::kConfigNotForTarget,
                     .message = absl::StrCat("core ", Printable(request.options.core),
                                             " does not quantize: there is no quantized pass"),
                     .file = request.options.model_name,
                     .fix = "set CORENAME: X2_1204, or another integer core"});
    return diagnostics.ToStatus();
  }
  ASSIGN_OR_RETURN(const Graph graph, IntegerGraph(request, std::move(imported), diagnostics));
  ASSIGN_OR_RETURN(IntegerModel model, MakeIntegerModel(request, graph, diagnostics));
  Graph form = QuantizedForm(model.graph, model.plan);
  return QuantizedForward{std::move(model), std::move(form)};
}

}  // namespace npuc
