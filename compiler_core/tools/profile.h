#ifndef NPUC_COMPILER_CORE_TOOLS_PROFILE_H_
#define NPUC_COMPILER_CORE_TOOLS_PROFILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/emit/artifact.h"
#include "compiler_core/sim/simulator.h"
#include "nlohmann/json.hpp"

namespace npuc {

// A header or model file, read and decoded. Problems go to `diagnostics`.
absl::StatusOr<CompiledModel> LoadArtifact(const std::string& path, Diagnostics& diagnostics);

// Counts for each command of one frame, their sum, and their sums by kind.
nlohmann::ordered_json ProfileJson(const Simulator& simulator, int64_t items);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TOOLS_PROFILE_H_
