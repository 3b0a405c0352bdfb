#include "compiler_core/quant/settings.h"

#include <algorithm>

namespace npuc {

LayerSettings DefaultSettings(const QuantOptions& options, const Layer& layer) {
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
  const auto holds = [](const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  settings.in_float = holds(options.fake_quant_scopes, layer.name) ||
                      holds(options.fake_quant_operators, layer.type);
  return settings;
}

}  // namespace npuc
