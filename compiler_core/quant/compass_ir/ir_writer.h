#ifndef NPUC_COMPILER_CORE_QUANT_COMPASS_IR_IR_WRITER_H_
#define NPUC_COMPILER_CORE_QUANT_COMPASS_IR_IR_WRITER_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ir/compass/document.h"
#include "compiler_core/ir/graph/quantization.h"

namespace npuc {

struct IrFiles {
  compass::Document document;  // NAME.txt
  std::string bin;             // NAME.bin
};

// `plan`: layers, and values where it quantizes (a value without parameters is written in float).
// Layers that Compass's form cannot hold all go to `diagnostics`. Deterministic.
absl::StatusOr<IrFiles> WriteIr(const Graph& graph, const QuantPlan& plan,
                                const std::string& model_name, Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_COMPASS_IR_IR_WRITER_H_
