#ifndef NPUC_COMPILER_CORE_TOOLS_REPORT_COMMAND_H_
#define NPUC_COMPILER_CORE_TOOLS_REPORT_COMMAND_H_

#include <string>

namespace npuc {

// `npuc report ARTIFACT -o DIR`: the page of an artifact whose compile is not at hand, one
// made elsewhere for example. It shows what the commands tell: sizes, ports, and each command's
// counts and estimated cycles. The report.html of a compile also knows layers, weights and memory.
struct ReportCommandArgs {
  std::string artifact;    // C header or model file
  std::string output_dir;  // for STEM.html of an artifact STEM.h
  bool json = false;
};

// The process's exit code: 0 done, 1 refused.
int RunReportCommand(const ReportCommandArgs& args);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TOOLS_REPORT_COMMAND_H_
