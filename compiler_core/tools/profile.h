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

// Counts for each command of one frame, their sum, and their sums by kind. has_cores: with the core
// and the phase of each command, and what each core is busy.
nlohmann::ordered_json ProfileJson(const Simulator& simulator, int64_t items, bool has_cores);

// The names that Compass's guide gives the files of a profile.
inline constexpr char kProfileGraphFile[] = "graph.json";
inline constexpr char kProfileDataFile[] = "profile_data.bin";

// The counters of one item's run, as a file for aipu_profiler (report/profile_buffer.h).
std::string ProfileBytes(const CompiledModel& model, const Simulator& simulator);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TOOLS_PROFILE_H_
