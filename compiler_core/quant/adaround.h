#ifndef NPUC_COMPILER_CORE_QUANT_ADAROUND_H_
#define NPUC_COMPILER_CORE_QUANT_ADAROUND_H_

#include <vector>

#include "compiler_core/quant/operand_moments.h"
#include "compiler_core/quant/state.h"

namespace npuc {

// Rounding of a weight for the least error of the layer's sums, not of the weight: AdaRound (Nagel
// et al., Up or down? Adaptive rounding for post-training quantization, 2020), its asymmetric
// objective (equation 25, without the activation) E[(w x - v y)^2]: w and v the weights of a result
// channel and what their integers give, x the operands in the float model, y those that the layers
// before give with their integers. In moments: v' G v - 2 v' C w + const, G = E[y y'], C = E[y x'].
// Where the layer has a bias, the moments are about the means, and the bias takes the mean error.
//
// The least over integers is the closest point of a lattice, which nobody finds fast; two starts
// are tried: the nearest integers, and integers rounded in turn, each making up for the errors of
// those before (GPTQ, Frantar et al., 2022). From each, integers go up or down by one wherever that
// lowers the objective, until none does: deterministic, and never worse than rounding to nearest.
//
// The scale too is the one of least objective: the strategy's, or a part of it down to
// kLeastScalePart, so that few large weights need not make all others coarse.
inline constexpr double kLeastScalePart = 0.5;

struct AdaptiveRounding {
  Tensor integers;
  std::vector<double> bias_shift;  // to add to the bias, by channel; empty where there is none
};
// `params` gets the scales. `moments` of a layer that HasMoments.
AdaptiveRounding RoundAdaptively(const QuantState& state, int layer, const Tensor& weight,
                                 const OperandMoments& moments, QuantParams& params);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_ADAROUND_H_
