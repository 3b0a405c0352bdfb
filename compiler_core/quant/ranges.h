#ifndef NPUC_COMPILER_CORE_QUANT_RANGES_H_
#define NPUC_COMPILER_CORE_QUANT_RANGES_H_

#include <optional>

#include "compiler_core/base/quant_options.h"
#include "compiler_core/quant/statistics.h"

namespace npuc {

// The real numbers that a tensor's integers stand for. Holds 0.
struct ValueRange {
  double min = 0;
  double max = 0;
  bool operator==(const ValueRange&) const = default;
};

// The range that a strategy takes from a tensor's statistics, never beyond its extrema:
//   extrema        [extrema_min, extrema_max]
//   mean           [running_min, running_max]
//   Nstd           running_mean -+ N * running_std
//   KLD            the symmetric threshold whose 2^bits-level histogram diverges least from the
//                  clipped one (Kullback-Leibler), at 128 thresholds from 2^bits bins on. Source:
//                  S. Migacz, 8-bit inference with TensorRT, 2017, as NVIDIA's
//                  pytorch-quantization computes it (tests/e2e/kld_oracle.py is it in NumPy)
//   Npercentile    leaves (1 - N) of the values outside, half of them at each end; a tensor that
//                  is nowhere negative loses them at its upper end alone
//   aciq_laplace, aciq_gauss
//                  running_mean -+ the half width of least mean square error for a distribution of
//                  that kind. Source: Banner et al., Post training 4-bit quantization, 2019,
//                  section 3, solved for any number of bits
//   in_ir          `in_ir`; nullopt where the model gives none
// KLD, Npercentile and aciq_laplace read the histogram.
// bits: 2..16. Auto has no range of its own (CHECKed).
std::optional<ValueRange> RangeOf(const QuantStrategy& strategy, const TensorStatistics& statistics,
                                  int bits, const std::optional<ValueRange>& in_ir);

// Whether RangeOf may need the histogram for it; auto tries every strategy.
bool ReadsHistogram(const QuantStrategy& strategy);
// Names the part of `statistics` that the strategy reads and their file lacks; "": none.
absl::string_view MissingFor(const QuantStrategy& strategy, const TensorStatistics& statistics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_RANGES_H_
