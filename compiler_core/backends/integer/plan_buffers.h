#ifndef NPUC_COMPILER_CORE_BACKENDS_INTEGER_PLAN_BUFFERS_H_
#define NPUC_COMPILER_CORE_BACKENDS_INTEGER_PLAN_BUFFERS_H_

#include "absl/status/statusor.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ir/integer/command.h"
#include "compiler_core/memplan/plan.h"
#include "compiler_core/target/core_spec.h"

namespace npuc {

// Gives each buffer its place, by MEMORY_PLAN and OPTIMIZE; the program's commands may become
// others that compute the same. A diagnostic where the memory is beyond SRAM_LIMIT.
absl::StatusOr<MemoryPlanResult> PlanBuffers(const CompileOptions& options, const CoreSpec& core,
                                             integer::Program& program, Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BACKENDS_INTEGER_PLAN_BUFFERS_H_
