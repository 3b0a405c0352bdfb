#ifndef NPUC_COMPILER_CORE_PIPELINE_REPORT_JSON_H_
#define NPUC_COMPILER_CORE_PIPELINE_REPORT_JSON_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "compiler_core/pipeline/listings.h"

namespace npuc {

// Of the weights that report.json shows, in their order.
std::vector<Histogram> ReportHistograms(const Graph& graph, absl::Span<const WeightRecord> weights);

// report.json: every figure of the listings and of report.html as data; UTF-8, indented by one
// space, deterministic. README.md lists the sections. Sections that grow with the model without
// bound (graph, memory_map, nodes, weights, transposes) end at kMaxReportEntries entries
// (report/json_parts.h); then `omitted` says how many are left out of which.
std::string ReportJson(const CompileFacts& facts);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PIPELINE_REPORT_JSON_H_
