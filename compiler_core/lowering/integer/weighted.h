#ifndef NPUC_COMPILER_CORE_LOWERING_INTEGER_WEIGHTED_H_
#define NPUC_COMPILER_CORE_LOWERING_INTEGER_WEIGHTED_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler_core/ir/graph/quantization.h"
#include "compiler_core/lowering/integer/context.h"

namespace npuc {

// The integers of a layer with a constant weight, before they are laid into memory.
// Folder-internal.

// A weight as the command has it: [out, kernel_h, kernel_w, in of a group].
struct LayerKernel {
  int64_t out = 0;
  int64_t taps = 0;   // of the window
  int64_t group = 0;  // inputs that one result reads at a tap
  DType dtype = DType::kInt8;
  std::vector<int64_t> values;
  std::vector<double> scales;  // one, or one a result channel
  bool is_widened = false;     // FitSums made the integers 16 bits wide
  int64_t At(int64_t o, int64_t tap, int64_t i) const {
    return values[static_cast<size_t>((o * taps + tap) * group + i)];
  }
  int64_t Sum(int64_t o) const;
};
absl::StatusOr<LayerKernel> TakeKernel(IntegerContext& context);

// Biases of the sums of (operand - zero point) * weight, one a result channel.
absl::StatusOr<std::vector<int64_t>> StoredBiases(IntegerContext& context, const QuantParams& input,
                                                  const LayerKernel& kernel);

// Gives 8-bit weights 16 bits, and so their sums 48, where a sum of 8-bit numbers or a bias can
// leave 32 bits. A layer that follows TFLite keeps TFLite's sums, which wrap, where its biases are
// such as TFLite has. UNIMPLEMENTED where a sum can leave 48 bits. biases: as StoredBiases.
absl::Status FitSums(const IntegerContext& context, const QuantParams& input,
                     absl::Span<const int64_t> biases, LayerKernel& kernel);

// One factor, or one a result channel. wide: the operand has 16 bits.
absl::StatusOr<std::vector<Factor>> TakeFactors(IntegerContext& context, const QuantParams& input,
                                                const LayerKernel& kernel,
                                                const QuantParams& output, bool wide,
                                                Rounding& rounding);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_LOWERING_INTEGER_WEIGHTED_H_
