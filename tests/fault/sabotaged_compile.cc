// Linked into a copy of npuc (npuc_sabotaged), whose calls of Compile come here: --wrap of the
// linker turns them to __wrap_SYMBOL, and __real_SYMBOL to Compile itself.
#include "compiler_core/pipeline/compile.h"
#include "server/worker/sabotage.h"

namespace npuc {

#define NPUC_COMPILE_SYMBOL \
  "_ZN4npuc7CompileERKNS_14CompileRequestERNS_15CompileObserverERNS_11DiagnosticsE"

absl::StatusOr<CompileResult> RealCompile(
    const CompileRequest& request, CompileObserver& observer,
    Diagnostics& diagnostics) __asm__("__real_" NPUC_COMPILE_SYMBOL);

absl::StatusOr<CompileResult> SabotagedCompile(
    const CompileRequest& request, CompileObserver& observer,
    Diagnostics& diagnostics) __asm__("__wrap_" NPUC_COMPILE_SYMBOL);

absl::StatusOr<CompileResult> SabotagedCompile(const CompileRequest& request,
                                               CompileObserver& observer,
                                               Diagnostics& diagnostics) {
  worker::Saboteur saboteur(observer, request.options.output_file);
  return RealCompile(request, saboteur, diagnostics);
}

}  // namespace npuc
