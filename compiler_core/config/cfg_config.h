#ifndef NPUC_COMPILER_CORE_CONFIG_CFG_CONFIG_H_
#define NPUC_COMPILER_CORE_CONFIG_CFG_CONFIG_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/yaml_tree.h"
#include "compiler_core/config/config_values.h"

namespace npuc {

// Configs in the form of Compass's aipubuild: an INI file with the sections [Common], [Parser],
// [Optimizer] and [GBuilder]. Source: shared/spec/compass.md, section 3.

// Whether `text` has that form: its first line that is no comment is a section's. No YAML config
// begins so.
bool IsCfgConfig(absl::string_view text);

// The YAML config that means the same, as a tree whose places are those of `text`. Lines are
// KEY = VALUE or KEY: VALUE; '#' or ';' at a line's start begins a comment. Every problem goes to
// the reporter: unknown sections and keys with the nearest match, what is given twice or missing,
// and keys that this compiler cannot honour, each with the reason. nullopt where the bytes are no
// text. The tree holds what was understood, so that its values can be checked too.
std::optional<ConfigNode> ReadCfgConfig(absl::string_view text, absl::string_view name,
                                        ConfigReporter& reporter, Diagnostics& diagnostics);

// The keys and what each becomes, for a terminal.
std::string CfgConfigHelp();

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_CONFIG_CFG_CONFIG_H_
