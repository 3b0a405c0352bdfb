#ifndef NPUC_COMPILER_CORE_OPS_LAYER_FUNCTION_H_
#define NPUC_COMPILER_CORE_OPS_LAYER_FUNCTION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/ir/graph/quantization.h"

namespace npuc {

// The results of a layer that is a function of one value (layers.h), at each of `points`, by the
// reference kernels of its nodes. UNIMPLEMENTED where one of them has a constant that is not one
// number. The layer has one input and one output (CHECKed).
absl::StatusOr<std::vector<double>> EvaluateFunction(const Graph& graph, const Layer& layer,
                                                     absl::Span<const float> points);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_OPS_LAYER_FUNCTION_H_
