#ifndef NPUC_COMPILER_CORE_BACKENDS_GRUS_FLOAT_MODEL_H_
#define NPUC_COMPILER_CORE_BACKENDS_GRUS_FLOAT_MODEL_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/target/core_spec.h"

namespace npuc {

// The model as a core of the fp16 command set computes it. A quantized model computes in float: its
// scales are folded, and each value keeps the saturation of its integers
// (quant/kept/float_form.h). One note says so. A float model is returned unchanged. What cannot be
// folded is reported in `diagnostics`.
absl::StatusOr<Graph> FloatModel(Graph imported, const CoreSpec& core,
                                 const CompileOptions& options, Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BACKENDS_GRUS_FLOAT_MODEL_H_
