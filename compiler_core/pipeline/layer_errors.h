#ifndef NPUC_COMPILER_CORE_PIPELINE_LAYER_ERRORS_H_
#define NPUC_COMPILER_CORE_PIPELINE_LAYER_ERRORS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/lowering/lower.h"
#include "compiler_core/target/core_spec.h"

namespace npuc {

// How far the results of one node of a graph are from those in float32, over all frames.
struct LayerError {
  int64_t values = 0;      // compared; of these:
  int64_t not_finite = 0;  // infinite or NaN on the core or in float, and in no figure below
  double max_abs = 0;
  double rms = 0;            // root of the mean square of the differences
  double reference_max = 0;  // largest magnitude in float
  double similarity = 1;     // cosine between the two; 1 where both are zero throughout
};

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

#endif  // NPUC_COMPILER_CORE_PIPELINE_LAYER_ERRORS_H_
