#ifndef NPUC_COMPILER_CORE_PIPELINE_COMPILE_INTEGER_H_
#define NPUC_COMPILER_CORE_PIPELINE_COMPILE_INTEGER_H_

#include "absl/status/statusor.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/pipeline/compile.h"
#include "compiler_core/pipeline/stages.h"
#include "compiler_core/target/core_spec.h"

namespace npuc {

// The stages of Compile() behind the import, for a core of the integer command set.
absl::StatusOr<CompileResult> CompileInteger(const CompileRequest& request, const CoreSpec& core,
                                             const Graph& imported, Stages& stages,
                                             CompileObserver& observer, Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PIPELINE_COMPILE_INTEGER_H_
