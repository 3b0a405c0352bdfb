#ifndef NPUC_COMPILER_CORE_REPORT_PROFILE_DATA_H_
#define NPUC_COMPILER_CORE_REPORT_PROFILE_DATA_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/report/profile_buffer.h"
#include "compiler_core/report/xlsx.h"
#include "nlohmann/json.hpp"

namespace npuc {

// The figures of Compass's profiler, made of graph.json (pipeline/profile_graph.h) and the counters
// of a run. Source: shared/guides/compass-guide.txt, chapter 6. Pure.

struct ProfileProblem {
  bool in_graph = false;  // of graph.json; else of the buffer
  std::string message;    // goes on from the file's name
};

inline constexpr int64_t kMaxFrequencyMhz = 1000000;

// A dictionary as the guide's get_profiler_data gives it: graph_name, frequency (MHz), graph, and
// profile_data, a list of {name, runtime_information} in the order of the run; beside these
// summary. The members of runtime_information and summary are named as the guide's report names its
// columns; utilizations are shares of the cycles, Algorithm Ops counts each multiply-add as two.
// frequency_mhz: in place of graph.json's.
std::optional<nlohmann::ordered_json> MakeProfileData(absl::string_view graph_json,
                                                      const ProfileBuffer& buffer,
                                                      std::optional<int64_t> frequency_mhz,
                                                      ProfileProblem& problem);

// The two tables of the guide's report: DETAILED DATA and SUMMARY.
std::vector<Table> ProfileTables(const nlohmann::ordered_json& data);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_REPORT_PROFILE_DATA_H_
