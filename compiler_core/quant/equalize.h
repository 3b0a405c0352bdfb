#ifndef NPUC_COMPILER_CORE_QUANT_EQUALIZE_H_
#define NPUC_COMPILER_CORE_QUANT_EQUALIZE_H_

#include <vector>

#include "compiler_core/ir/graph/quantization.h"

namespace npuc {

// Cross-layer weight equalization: where a weighted layer (with a ReLU or without) feeds one other
// weighted layer alone, each channel between them is scaled by s = sqrt(r1 / r2), r1 and r2 the
// greatest magnitudes of the weights that make it and that read it, so that one scale fits all
// channels of each weight. The graph computes the same up to rounding; its values between those
// layers are others. Pairs are visited in order until the scales settle, at most 20 times. Source:
// Nagel et al., Data-free quantization through weight equalization and bias correction, 2019,
// section 4.1. Node and value ids stay. `pairs` gets how many were equalized.
Graph EqualizeWeights(const Graph& graph, const std::vector<Layer>& layers, int& pairs);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_EQUALIZE_H_
