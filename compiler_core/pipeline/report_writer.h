#ifndef NPUC_COMPILER_CORE_PIPELINE_REPORT_WRITER_H_
#define NPUC_COMPILER_CORE_PIPELINE_REPORT_WRITER_H_

#include <string>

#include "compiler_core/backends/compiled_unit.h"
#include "compiler_core/backends/report_data.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/target/core_spec.h"

namespace npuc {

// report.json of every core: every figure of the listings and of report.html as data; UTF-8,
// indented by one space, deterministic. README.md lists the sections. Sections that grow with the
// model without bound (graph, memory_map, nodes, weights, transposes) end at kMaxReportEntries
// entries (report/json_parts.h); then `omitted` says how many are left out of which.
std::string ReportJson(const CompiledUnit& unit, const ReportData& data, const CoreSpec& core,
                       const CompileOptions& options, const Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PIPELINE_REPORT_WRITER_H_
