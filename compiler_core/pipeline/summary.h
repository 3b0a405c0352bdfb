#ifndef NPUC_COMPILER_CORE_PIPELINE_SUMMARY_H_
#define NPUC_COMPILER_CORE_PIPELINE_SUMMARY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace npuc {

struct CompiledUnit;
struct CoreSpec;
struct ReportData;

// Bytes that the core has for data, inputs and outputs; 0: not known.
int64_t SramLimitOf(const CoreSpec& core);

// The figures of a finished compile that firmware needs first.
struct CompileSummary {
  std::string core;
  int64_t ram_bytes = 0;        // data, input and output
  int64_t flash_bytes = 0;      // commands and weights
  int64_t ram_limit_bytes = 0;  // what the core has for ram_bytes; 0: not known
  int64_t cycles = 0;           // of one frame, estimated; 0: no estimate
  std::string slowest;          // the node with the most cycles; empty: no estimate
  int64_t slowest_cycles = 0;
  struct Quality {  // of an output, where the model was quantized
    std::string output;
    std::string metric;  // "sqnr", "cosine"
    double value = 0;
  };
  std::vector<Quality> quality;
};
CompileSummary SummaryOf(const CompiledUnit& unit, const ReportData& data, const CoreSpec& core);

// "RAM 1,024 of 131,072 bytes (0%), flash 2,048 bytes, about 4,096 cycles a frame".
std::string MemoryText(const CompileSummary& summary);

// The lines for a terminal: memory and time against the core's limits, likeness to float, and what
// to look at next; report_path: of report.html.
std::string SummaryText(const CompileSummary& summary, const std::string& report_path);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PIPELINE_SUMMARY_H_
