#ifndef NPUC_COMPILER_CORE_BACKENDS_GRUS_WEIGHT_HISTOGRAMS_H_
#define NPUC_COMPILER_CORE_BACKENDS_GRUS_WEIGHT_HISTOGRAMS_H_

#include <vector>

#include "absl/types/span.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/lowering/lower.h"
#include "compiler_core/report/histogram.h"

namespace npuc {

inline constexpr int kHistogramBins = 100;

// How the values of each weight are spread, in the order of the records. `graph` is the one that
// was lowered into them: with FUSE_BN its weights are the fused ones, which are compressed.
std::vector<WeightHistogram> WeightHistograms(const Graph& graph,
                                              absl::Span<const WeightRecord> weights);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BACKENDS_GRUS_WEIGHT_HISTOGRAMS_H_
