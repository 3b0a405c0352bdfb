#ifndef NPUC_COMPILER_CORE_LOWERING_INTEGER_LOWER_INTEGER_H_
#define NPUC_COMPILER_CORE_LOWERING_INTEGER_LOWER_INTEGER_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/ir/graph/quantization.h"
#include "compiler_core/ir/integer/command.h"

namespace npuc {

// Commands of the integer cores for a float graph and the plan of its integers. Each layer is
// computed as one; the commands carry its name. Refusals (an operator without commands, a value
// without parameters, a layer left in float) all go to `diagnostics`; the status is the first.
// Buffers of slot kData are not placed yet (memplan does that).
// A layer with multiplier_bits 31 follows TFLite's published arithmetic to the bit.
absl::StatusOr<integer::Program> LowerInteger(const Graph& graph, const QuantPlan& plan,
                                              const std::string& model_name,
                                              Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_LOWERING_INTEGER_LOWER_INTEGER_H_
