#include "compiler_core/quant/settings.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "compiler_core/base/table_bits.h"

namespace npuc {

LayerSettings FixedPointSettings(LayerSettings settings) {
  settings.activation_method = QuantMethod::kPerTensorSymmetricFull;
  settings.weight_method = QuantMethod::kPerTensorSymmetricFull;
  settings.activation_bits = settings.weight_bits = 16;
  settings.bias_bits = 48;
  settings.activation_strategy = settings.weight_strategy = {QuantStrategy::Kind::kExtrema, 0};
  settings.force_dtype_int = true;
  if (settings.lut_bits != kChosenLutBits) {
    settings.lut_bits = std::max(settings.lut_bits, kLeastFixedPointTableBits);
  }
  // What is no power of two, the share of a mean's window: 15 bits would be off by half a step.
  settings.multiplier_bits = 30;
  return settings;
}

std::string FixedPointProblem(const LayerSettings& settings) {
  const LayerSettings wanted = FixedPointSettings(settings);
  if (settings.activation_bits != 16 || settings.weight_bits != 16) {
    return "a fixed-point core has 16 bits in q_bits_activation and q_bits_weight";
  }
  if (settings.activation_method != wanted.activation_method ||
      settings.weight_method != wanted.weight_method) {
    return "a fixed-point core has per_tensor_symmetric_full_range in q_mode_activation and "
           "q_mode_weight";
  }
  if (!(settings.activation_strategy == wanted.activation_strategy) ||
      !(settings.weight_strategy == wanted.weight_strategy)) {
    return "a fixed-point core has extrema in q_strategy_activation and q_strategy_weight";
  }
  if (!settings.force_dtype_int) return "a fixed-point core's values are signed: force_dtype_int";
  return settings.in_float ? "a fixed-point core computes nothing in float" : "";
}

LayerSettings DefaultSettings(const QuantOptions& options, const Layer& layer, int64_t id) {
  LayerSettings settings;
  settings.activation_method = options.activation_method;
  settings.weight_method = options.weight_method;
  settings.activation_bits = options.activation_bits;
  settings.weight_bits = options.weight_bits;
  settings.bias_bits = options.bias_bits;
  settings.activation_strategy = options.activation_strategy;
  settings.weight_strategy = options.weight_strategy;
  settings.momentum = options.running_statistic_momentum;
  settings.histc_bins = options.histc_bins;
  settings.lut_bits = options.lut_items_in_bits;
  settings.bias_effective_bits = std::min(options.bias_effective_bits, options.bias_bits);
  settings.trim = options.trim_infinity;
  const auto is_type = [&](const std::string& type) {
    return absl::EqualsIgnoreCase(type, layer.type);
  };
  const auto rule = std::find_if(
      options.trim_rules.begin(), options.trim_rules.end(), [&](const TrimRule& candidate) {
        return candidate.type.empty() ? candidate.ids.Holds(id) : is_type(candidate.type);
      });
  if (rule != options.trim_rules.end()) settings.trim = rule->trim;
  const std::vector<std::string>& names = options.fake_quant_scopes;
  const std::vector<std::string>& types = options.fake_quant_operators;
  settings.in_float = std::find(names.begin(), names.end(), layer.name) != names.end() ||
                      std::any_of(types.begin(), types.end(), is_type) ||
                      std::any_of(options.fake_quant_ids.begin(), options.fake_quant_ids.end(),
                                  [id](const LayerIds& ids) { return ids.Holds(id); });
  return settings;
}

}  // namespace npuc
