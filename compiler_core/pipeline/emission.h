#ifndef NPUC_COMPILER_CORE_PIPELINE_EMISSION_H_
#define NPUC_COMPILER_CORE_PIPELINE_EMISSION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler_core/backends/compiled_unit.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/pipeline/compile.h"

namespace npuc {

// The files that firmware and tools read, the header first: the header, the quantization files that
// the unit has, the model file. Gives the unit's model its version, MD5 and model_info. The
// observer hears of the header. Problems go to `diagnostics`.
absl::StatusOr<std::vector<Artifact>> Emit(const CompileRequest& request, CompiledUnit& unit,
                                           CompileObserver& observer, Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PIPELINE_EMISSION_H_
