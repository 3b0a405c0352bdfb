#ifndef NPUC_COMPILER_CORE_CONFIG_CFG_CONFIG_H_
#define NPUC_COMPILER_CORE_CONFIG_CFG_CONFIG_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/yaml_tree.h"
#include "compiler_core/config/cfg_task.h"
#include "compiler_core/config/config_values.h"

namespace npuc {

// Configs in the form of Compass's tools: INI files with the sections [Common], [Parser],
// [Optimizer] and [GBuilder] of aipubuild, or with [Common] alone, of aipuparse and aipuopt.
// Source: shared/guides/compass-guide.txt, section 4.2. The keys are cfg_keys.h's, the lines
// cfg_text.h's.

// True where `text` has that form: its first line that is no comment is a section's. No YAML config
// begins so.
bool IsCfgConfig(absl::string_view text);

// The YAML config that means the same, as a tree whose places are those of `text`; `task` gets what
// no YAML config says. A key without a value is as good as none. Every problem goes to the
// reporter: unknown sections and keys with the nearest match, what is given twice or missing, keys
// that change nothing and keys that this compiler cannot honour, each with the reason. nullopt
// where the bytes are no text. The tree holds what was understood, so that its values can be
// checked too.
std::optional<ConfigNode> ReadCfgConfig(absl::string_view text, absl::string_view name,
                                        CfgTask& task, ConfigReporter& reporter,
                                        Diagnostics& diagnostics);

// The keys and what each becomes, for a terminal.
std::string CfgConfigHelp();

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_CONFIG_CFG_CONFIG_H_
