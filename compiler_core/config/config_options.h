#ifndef NPUC_COMPILER_CORE_CONFIG_CONFIG_OPTIONS_H_
#define NPUC_COMPILER_CORE_CONFIG_CONFIG_OPTIONS_H_

#include "compiler_core/base/compile_options.h"
#include "compiler_core/config/config_rules.h"
#include "nlohmann/json_fwd.hpp"

namespace npuc {

// Sets each option whose key is in the config, which has no errors, and gives the others their
// keys' defaults. Options of a mapping (QUANT) are left alone.
void SetOptions(const ConfigSettings& settings, CompileOptions& options);

// The echo of the options in report.json: those that every config has, and those that differ from
// the defaults.
nlohmann::ordered_json ConfigJson(const CompileOptions& options);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_CONFIG_CONFIG_OPTIONS_H_
