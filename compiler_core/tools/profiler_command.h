#ifndef NPUC_COMPILER_CORE_TOOLS_PROFILER_COMMAND_H_
#define NPUC_COMPILER_CORE_TOOLS_PROFILER_COMMAND_H_

#include <cstdint>
#include <optional>
#include <string>

namespace npuc {

// aipu_profiler: a report of a profiled run. Source: shared/guides/compass-guide.txt, section 6.2.
struct ProfilerArgs {
  std::string graph_path;   // graph.json
  std::string buffer_path;  // profile_data.bin
  std::string output_path;  // empty: the graph's name with the method as its ending
  std::string method = "html";
  std::optional<int64_t> frequency_mhz;
};

// Writes the report, prints its path. The process's exit code: 0 done, 1 refused.
int RunProfilerCommand(const ProfilerArgs& args);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TOOLS_PROFILER_COMMAND_H_
