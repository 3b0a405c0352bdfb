#ifndef NPUC_COMPILER_CORE_BACKENDS_GRUS_LAYER_ERRORS_H_
#define NPUC_COMPILER_CORE_BACKENDS_GRUS_LAYER_ERRORS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler_core/backends/report_data.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/lowering/lower.h"
#include "compiler_core/target/core_spec.h"

namespace npuc {

// By node of a graph; none for Const and Placeholder.
using LayerErrors = std::vector<std::optional<LayerError>>;

// Runs a legalised graph (after passes) on the simulator and in float32 over `frames` frames of
// noise, recurrent states fed back on either side, and compares what each node gives. What the core
// computes is the same as without the comparison: every result is made an output of the model,
// nothing else changes.
//
// The noise: number n (from 0; over frames, within a frame over the inputs that are no states in
// order, within an input row-major) is r / 2^23 - 1, r being the upper 24 bits of the output
// number n of SplitMix64 (Steele, Lea and Flood, 2014) with seed 1. So values are uniform in
// [-1, 1), and the same anywhere.
//
// `cancelled` is asked before each frame, and ends the comparison there. Errors: UNIMPLEMENTED,
// RESOURCE_EXHAUSTED (as FloatExecutor::Create says, or the simulator's limits).
absl::StatusOr<LayerErrors> MeasureLayerErrors(const Graph& graph, const CoreSpec& core,
                                               const LowerOptions& lower_options,
                                               const CompileOptions& options, int64_t frames,
                                               const std::function<bool()>& cancelled);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BACKENDS_GRUS_LAYER_ERRORS_H_
