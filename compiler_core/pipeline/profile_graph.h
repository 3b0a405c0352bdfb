#ifndef NPUC_COMPILER_CORE_PIPELINE_PROFILE_GRAPH_H_
#define NPUC_COMPILER_CORE_PIPELINE_PROFILE_GRAPH_H_

#include <string>

#include "absl/strings/string_view.h"
#include "compiler_core/backends/report_data.h"
#include "compiler_core/emit/artifact.h"

namespace npuc {

// The clock of a core in MHz where nobody gives another: the guide's default of Zhouyi X1 (section
// 6.3). No clock of any core is published.
inline constexpr int64_t kDefaultFrequencyMhz = 1000;

// graph.json of Compass's profiler, which turns the counters of a run (report/profile_buffer.h)
// into figures of layers: graph_name, frequency in MHz, target, commands_md5, which a buffer of the
// same build repeats, node_of_command (positions in graph.nodes, -1: of no node) and graph: nodes
// (name, op_type, level, core_id, commands, input, output) and tensors (name, shape, dtype). Nodes
// of one level need no result of one another. Source: shared/guides/compass-guide.txt, chapter 6,
// which names the keys graph_name, frequency and graph; the others are this project's. Pure.
std::string ProfileGraphJson(const CompiledModel& model, const ReportData& data,
                             absl::string_view graph_name);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PIPELINE_PROFILE_GRAPH_H_
