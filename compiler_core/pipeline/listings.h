#ifndef NPUC_COMPILER_CORE_PIPELINE_LISTINGS_H_
#define NPUC_COMPILER_CORE_PIPELINE_LISTINGS_H_

#include <string>
#include <vector>

#include "compiler_core/backends/compiled_unit.h"
#include "compiler_core/backends/report_data.h"
#include "compiler_core/base/diagnostic.h"

namespace npuc {

// What a compile tells people in lines of text.

// -v: one line per operator of the NPU model: source name, operator, output type, commands.
std::string ListOps(const ReportData& data);
// -m: bytes of data, weights and commands by operator, then the totals and the liveness bound.
std::string ListMemory(const CompiledUnit& unit, const ReportData& data);
// -w: per weight: shape, compression, range, step, sparsity, error.
std::string ListWeights(const ReportData& data);

// The last lines of the log: transposes that are left, as far as they are few; diagnostics; ports
// of an integer core; totals.
std::vector<std::string> LastLogLines(const CompiledUnit& unit, const ReportData& data,
                                      const Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PIPELINE_LISTINGS_H_
