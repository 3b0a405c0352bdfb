#ifndef NPUC_COMPILER_CORE_QUANT_ADAROUND_H_
#define NPUC_COMPILER_CORE_QUANT_ADAROUND_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler_core/quant/state.h"

namespace npuc {

// Rounding of a weight for the least error of the layer's sums, not of the weight: AdaRound (Nagel
// et al., Up or down? Adaptive rounding for post-training quantization, 2020), its asymmetric
// objective (equation 25, without the activation) E[(w x - v y)^2]: w and v the weights of a result
// channel and what their integers give, x the operands in the float model, y those that the layers
// before give with their integers. In moments: v' G v - 2 v' C w + const, G = E[y y'], C = E[y x'].
// Each integer goes up or down by one, one after the other, wherever that lowers the objective,
// until none does: deterministic, and never worse than rounding to nearest.
//
// The scale too is the one of least objective: the strategy's, or a part of it down to
// kLeastScalePart, so that few large weights need not make all others coarse.

// What is known of the operands that each weight of a layer multiplies.
struct OperandMoments {
  int64_t inner = 0;          // weights of a result channel
  int64_t groups = 1;         // matrices: 1, or one a channel (depthwise)
  std::vector<double> own;    // G [groups][inner][inner]
  std::vector<double> cross;  // C
};
inline constexpr double kLeastScalePart = 0.5;

// Layers with a form that AdaRound knows: Conv2D of one group, DepthwiseConv2D of multiplier 1,
// MatMul of a constant matrix; at most kMaxInner weights a channel.
inline constexpr int64_t kMaxInner = 2048;
bool HasMoments(const QuantState& state, int layer);
// Over at most 256 samples and 8192 operand rows, fewer where a channel has many weights.
absl::StatusOr<OperandMoments> MeasureMoments(const QuantState& state, int layer,
                                              const SampleSet& samples);
// The integers of `weight`, rounded so; `params` gets the scales.
Tensor RoundAdaptively(const QuantState& state, int layer, const Tensor& weight,
                       const OperandMoments& moments, QuantParams& params);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_ADAROUND_H_
