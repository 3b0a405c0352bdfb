#ifndef NPUC_COMPILER_CORE_PIPELINE_IR_FILES_H_
#define NPUC_COMPILER_CORE_PIPELINE_IR_FILES_H_

#include "absl/status/statusor.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/pipeline/compile.h"
#include "compiler_core/quant/compass_ir/ir_writer.h"

namespace npuc {

// A request's model as Compass's IR files: on an integer core as its compile would quantize it,
// else or with `as_float` in float. The files pass the checker of ir/compass.
absl::StatusOr<IrFiles> MakeIrFiles(const CompileRequest& request, bool as_float,
                                    Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PIPELINE_IR_FILES_H_
