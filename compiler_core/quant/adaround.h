#ifndef NPUC_COMPILER_CORE_QUANT_ADAROUND_H_
#define NPUC_COMPILER_CORE_QUANT_ADAROUND_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler_core/quant/state.h"

namespace npuc {

// Rounding of a weight for the least error of the layer's sums, not of the weight: AdaRound (Nagel
// et al., Up or down? Adaptive rounding for post-training quantization, 2020), its objective
// (equation 13) E[(d x)^2] = d' G d with G = E[x x'] over the layer's operands, d the rounding
// error of a result channel's weights. Here each weight goes up or down, one after the other,
// wherever that lowers the objective, until none does: deterministic, and never worse than rounding
// to nearest.

// The moments G of the operands that each weight of a layer multiplies.
struct OperandMoments {
  int64_t inner = 0;           // weights of a result channel
  int64_t groups = 1;          // matrices: 1, or one a channel (depthwise)
  std::vector<double> matrix;  // [groups][inner][inner]
};

// Layers with a form that AdaRound knows: Conv2D of one group, DepthwiseConv2D of multiplier 1,
// MatMul of a constant matrix; at most kMaxInner weights a channel.
inline constexpr int64_t kMaxInner = 2048;
bool HasMoments(const QuantState& state, int layer);
// Over at most 32 samples and 4096 operand rows.
absl::StatusOr<OperandMoments> MeasureMoments(const QuantState& state, int layer,
                                              const SampleSet& samples);
// The integers of `weight`, rounded so.
Tensor RoundAdaptively(const QuantState& state, int layer, const QuantParams& params,
                       const Tensor& weight, const OperandMoments& moments);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_ADAROUND_H_
