#ifndef NPUC_COMPILER_CORE_BACKENDS_GRUS_BACKEND_H_
#define NPUC_COMPILER_CORE_BACKENDS_GRUS_BACKEND_H_

#include <memory>

#include "absl/status/statusor.h"
#include "compiler_core/backends/compiled_unit.h"
#include "compiler_core/backends/stages.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/pipeline/compile.h"
#include "compiler_core/target/core_spec.h"

namespace npuc {

// The stages behind the import, for a core of the GRUS command set, which computes in fp16.
absl::StatusOr<std::unique_ptr<CompiledUnit>> CompileForGrus(const CompileRequest& request,
                                                             const CoreSpec& core, Graph imported,
                                                             Stages& stages,
                                                             Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BACKENDS_GRUS_BACKEND_H_
