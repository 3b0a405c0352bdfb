#ifndef NPUC_COMPILER_CORE_CONFIG_CONFIG_RULES_H_
#define NPUC_COMPILER_CORE_CONFIG_CONFIG_RULES_H_

#include <map>
#include <optional>

#include "absl/strings/string_view.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/config/config_values.h"
#include "compiler_core/config/quant_config.h"
#include "compiler_core/target/core_spec.h"

namespace npuc {

// The settings of a config by key, with what the rules between them need.
struct ConfigSettings {
  // Settings whose value is well formed.
  std::map<absl::string_view, ConfigSetting> settings;
  // Keys that are there, well formed or not: they are not missing.
  std::map<absl::string_view, ConfigPlace> present;
  std::optional<QuantConfig> quant;    // QUANT, where it is well formed
  const CoreSpec* core = nullptr;      // null: absent, malformed, or without a description
  std::optional<Framework> framework;  // nullopt: malformed, or without a front end

  const ConfigSetting* Find(absl::string_view key) const {
    const auto it = settings.find(key);
    return it == settings.end() ? nullptr : &it->second;
  }
  // True where inputs and outputs have no names that users know, so that the config counts them.
  bool CountsPorts() const { return framework.has_value() && !InfoOf(*framework).has_port_names; }
};

// Reports every rule between settings that is broken: missing keys, keys of other cores or
// frameworks, contradictions, settings without effect.
void CheckConfigRules(const ConfigSettings& settings, ConfigReporter& reporter);

// The last part of a path, which must name a file: "" where it does not.
absl::string_view FileNameOf(absl::string_view path);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_CONFIG_CONFIG_RULES_H_
