#ifndef NPUC_COMPILER_CORE_CONFIG_QUANT_RULES_H_
#define NPUC_COMPILER_CORE_CONFIG_QUANT_RULES_H_

#include "compiler_core/config/config_rules.h"

namespace npuc {

// Notes for each key of QUANT that changes nothing on the config's core and beside the other keys.
// What depends on the model is noted where the model is known.
void CheckQuantEffect(const ConfigSettings& settings, ConfigReporter& reporter);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_CONFIG_QUANT_RULES_H_
