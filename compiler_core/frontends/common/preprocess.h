#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_PREPROCESS_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_PREPROCESS_H_

#include "absl/status/statusor.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc::frontend {

// The model behind options.preprocess: its only input keeps its name and gets the shape that the
// first step takes. Channels are the last axis, or axis 1 where that alone of the two has 3.
// Resizing is ONNX's Resize with its usual modes (half_pixel, round_prefer_floor); standardization
// is its MeanVarianceNormalization. Source of the steps: base/preprocess.h. Errors, with a
// diagnostic: a model of several inputs or of an input that is no float; shapes that do not fit.
absl::StatusOr<Graph> Preprocessed(const Graph& model, const CompileOptions& options,
                                   Diagnostics& diagnostics);

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_PREPROCESS_H_
