#ifndef NPUC_COMPILER_CORE_TOOLS_COMPASS_TOOLS_H_
#define NPUC_COMPILER_CORE_TOOLS_COMPASS_TOOLS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace npuc {

// npuc under the names of Compass's tools, with their options: aipubuild, aipuparse, aipuopt,
// aipugb, aipurun, aipudumper, aipu_profiler. Source: shared/guides/compass-guide.txt,
// sections 4.2, 6.2 and A.1. Those that take no .cfg make the one that means the same, so that
// every option is known, honoured or said to change nothing, once.

// The tools' names, each a link to npuc.
std::vector<absl::string_view> CompassTools();

// The process's exit code where argv[0] is one of the names: 0 done, 1 refused, 2 wrong usage.
std::optional<int> RunCompassTool(int argc, char** argv, int64_t timestamp_seconds);

// An option of aipugb or aipurun that was given: the key of [GBuilder] and its value.
struct BuilderOption {
  std::string key;
  std::string value;
};
// The .cfg that means an IR and options. Values are quoted.
std::string CfgOfIr(const std::string& ir, const std::string& weights, bool runs,
                    const std::vector<BuilderOption>& options);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TOOLS_COMPASS_TOOLS_H_
