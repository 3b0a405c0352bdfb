#ifndef NPUC_COMPILER_CORE_QUANT_SETTINGS_H_
#define NPUC_COMPILER_CORE_QUANT_SETTINGS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "compiler_core/base/quant_options.h"
#include "compiler_core/ir/graph/quantization.h"

namespace npuc {

// The settings in force for one layer: what opt_template.json holds, in Compass's names.
struct LayerSettings {
  QuantMethod activation_method = QuantMethod::kPerTensorSymmetricFull;  // q_mode_activation
  QuantMethod weight_method = QuantMethod::kPerTensorSymmetricRestricted;
  int activation_bits = 8;  // q_bits_activation
  int weight_bits = 8;
  int bias_bits = 32;
  QuantStrategy activation_strategy;  // q_strategy_activation; after a run never auto
  QuantStrategy weight_strategy = {QuantStrategy::Kind::kExtrema, 0};
  double momentum = 0.9;  // running_statistic_momentum
  int64_t histc_bins = 2048;
  int lut_bits = kChosenLutBits;
  bool force_dtype_int = false;  // results that are nowhere negative are signed too
  bool in_float = false;         // trigger_float_op: float32_preferred
  int multiplier_bits = 15;
  int bias_effective_bits = 32;
  std::optional<TrimInfinity> trim;  // trim_infinity_before_statistic
  bool operator==(const LayerSettings&) const = default;
};

// Those of a fixed-point core, which only the options of statistics can change: 16 bits, symmetric,
// ranges by extrema, biases as wide as sums, tables of at least 2^12 entries.
LayerSettings FixedPointSettings(LayerSettings settings);
// What a template asked for that a fixed-point core cannot do; empty: nothing.
std::string FixedPointProblem(const LayerSettings& settings);

// `id`: the layer's number, as opt_template.json counts.
LayerSettings DefaultSettings(const QuantOptions& options, const Layer& layer, int64_t id);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_SETTINGS_H_
