#ifndef NPUC_COMPILER_CORE_PIPELINE_EMISSION_H_
#define NPUC_COMPILER_CORE_PIPELINE_EMISSION_H_

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "compiler_core/backends/compiled_unit.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/boxes/box_settings.h"
#include "compiler_core/pipeline/compile.h"

namespace npuc {

// Hands the observer the files that firmware and tools read: the header, the quantization files
// that the unit has, the model file. Gives the unit's model its version, MD5 and model_info; from
// then on the model does not change, and the artifacts keep it alive. `boxes`: what the model
// states of the boxes that it finds. Problems go to `diagnostics`.
absl::Status Emit(const CompileRequest& request, const std::shared_ptr<CompiledUnit>& unit,
                  const std::optional<BoxSettings>& boxes, CompileObserver& observer,
                  Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PIPELINE_EMISSION_H_
