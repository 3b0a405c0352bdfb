#ifndef NPUC_COMPILER_CORE_PIPELINE_IR_FILES_H_
#define NPUC_COMPILER_CORE_PIPELINE_IR_FILES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/pipeline/compile.h"
#include "compiler_core/quant/compass_ir/ir_writer.h"

namespace npuc {

enum class IrForm : uint8_t {
  kQuantized,  // on an integer core as its compile would quantize it, else in float
  kFloat,
  kAsModel,  // in float, unless the model brings its own integers and the config keeps them
};

struct ModelIr {
  IrFiles files;
  std::string opt_template;  // of a model that is quantized here
  std::string statistics;    // where the options ask for them
  std::string numpy_statistics;
};

// A request's model as Compass's IR files, which pass the checker of ir/compass. `name`: their
// model_name.
absl::StatusOr<ModelIr> MakeIrFiles(const CompileRequest& request, IrForm form,
                                    const std::string& name, Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PIPELINE_IR_FILES_H_
