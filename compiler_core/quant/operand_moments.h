#ifndef NPUC_COMPILER_CORE_QUANT_OPERAND_MOMENTS_H_
#define NPUC_COMPILER_CORE_QUANT_OPERAND_MOMENTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler_core/quant/state.h"

namespace npuc {

// What AdaRound (adaround.h) knows of the operands that each weight of a layer multiplies: y those
// that the layers before give with their integers, x those of the float model.
struct OperandMoments {
  int64_t inner = 0;          // weights of a result channel
  int64_t groups = 1;         // matrices: 1, or one a channel (depthwise)
  std::vector<double> own;    // G [groups][inner][inner], sums of y y'
  std::vector<double> cross;  // C, of y x'
  // Where the layer has a bias, both are of the distances from these means: the bias takes the
  // rest. Else the means are not used.
  bool centred = false;
  std::vector<double> own_mean;    // [groups][inner]
  std::vector<double> float_mean;  // [groups][inner]
};

// Where the weights of a result channel lie: weight k of channel o is at k * step + o * stride.
struct ChannelLayout {
  int64_t channels = 0;
  int64_t inner = 0;
  int64_t step = 0;
  int64_t stride = 0;
};

// Layers with a form that AdaRound knows: Conv2D of one group, DepthwiseConv2D of multiplier 1,
// MatMul of a constant matrix; at most kMaxInner weights a channel.
inline constexpr int64_t kMaxInner = 2048;
bool HasMoments(const QuantState& state, int layer);
// Of a layer that HasMoments.
ChannelLayout LayoutOf(const QuantState& state, int layer);
// Over at most 1024 samples and 16384 operand rows, fewer where a channel has many weights.
absl::StatusOr<OperandMoments> MeasureMoments(const QuantState& state, int layer,
                                              const SampleSet& samples);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_OPERAND_MOMENTS_H_
