#ifndef NPUC_COMPILER_CORE_TOOLS_INFO_COMMANDS_H_
#define NPUC_COMPILER_CORE_TOOLS_INFO_COMMANDS_H_

#include <string>

#include "absl/status/statusor.h"

namespace npuc {

// Text of `npuc --list`: the operators of every core and framework, or of those named, with their
// restrictions, from the cores' data files. INVALID_ARGUMENT for an unknown name.
absl::StatusOr<std::string> ListOperators(const std::string& core, const std::string& framework,
                                          bool json);

// Text of `npuc --cmpt`: which cores, chips, NPU units and frameworks go together.
std::string ListCompatibility(bool json);

// Text of `npuc --config-help`: every key of a config and of its QUANT mapping.
std::string ListConfigKeys(bool json);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TOOLS_INFO_COMMANDS_H_
