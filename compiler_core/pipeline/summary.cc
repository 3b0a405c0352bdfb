#include "compiler_core/pipeline/summary.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler_core/backends/compiled_unit.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/target/core_spec.h"

namespace npuc {
namespace {

// "12,345"
std::string Grouped(int64_t number) {
  const std::string digits = absl::StrCat(number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

}  // namespace

int64_t SramLimitOf(const CoreSpec& core) {
  if (core.limits != nullptr) return core.limits->npu_sram_bytes;
  return core.integer != nullptr ? core.integer->sram_bytes : 0;
}

CompileSummary SummaryOf(const CompiledUnit& unit, const ReportData& data, const CoreSpec& core) {
  CompileSummary summary;
  const CompiledModel& model = unit.model;
  summary.core = model.core;
  summary.ram_bytes = model.data_bytes + model.own_input_bytes() + model.own_output_bytes();
  summary.flash_bytes = static_cast<int64_t>(
      model.cmd_content.size() + model.weight_content.size() + model.ops_content.size());
  summary.ram_limit_bytes = SramLimitOf(core);
  summary.cycles = data.per_frame.cycles;
  for (const NodeFigures& node : data.nodes) {
    if (node.use.cycles <= summary.slowest_cycles) continue;
    summary.slowest_cycles = node.use.cycles;
    summary.slowest = node.name;
  }
  for (const MetricFigure& figure : data.metrics.figures) {
    if (figure.metric != "sqnr" && figure.metric != "cosine") continue;
    if (!std::isfinite(figure.quantized)) continue;  // equal to float: no noise to measure
    summary.quality.push_back({figure.output, figure.metric, figure.quantized});
  }
  return summary;
}

std::string MemoryText(const CompileSummary& summary) {
  std::string text = absl::StrCat("RAM ", Grouped(summary.ram_bytes));
  if (summary.ram_limit_bytes > 0) {
    absl::StrAppend(&text, " of ", Grouped(summary.ram_limit_bytes), " bytes (",
                    100 * summary.ram_bytes / summary.ram_limit_bytes, "%)");
  } else {
    absl::StrAppend(&text, " bytes");
  }
  absl::StrAppend(&text, ", flash ", Grouped(summary.flash_bytes), " bytes");
  if (summary.cycles > 0) {
    absl::StrAppend(&text, ", about ", Grouped(summary.cycles), " cycles a frame");
  }
  return text;
}

std::string SummaryText(const CompileSummary& summary, const std::string& report_path) {
  std::string text = MemoryText(summary);
  for (const CompileSummary::Quality& quality : summary.quality) {
    absl::StrAppend(
        &text, quality.metric == "sqnr"
                   ? absl::StrFormat(", %s %.1f dB", Printable(quality.output, 40), quality.value)
                   : absl::StrFormat(" (cosine %.4f)", quality.value));
  }
  absl::StrAppend(&text, "\n");
  const auto poor = std::find_if(summary.quality.begin(), summary.quality.end(),
                                 [](const CompileSummary::Quality& quality) {
                                   return quality.metric == "sqnr" && quality.value < kPoorSqnrDb;
                                 });
  absl::StrAppend(&text, "next: ");
  if (summary.ram_limit_bytes > 0 && summary.ram_bytes > summary.ram_limit_bytes) {
    absl::StrAppend(&text, "data does not fit the core's SRAM; its largest buffers are in ");
  } else if (poor != summary.quality.end()) {
    absl::StrAppend(&text, "see which layers lose most, column similarity in ");
  } else if (!summary.slowest.empty() && summary.cycles > 0) {
    absl::StrAppend(&text, "'", Printable(summary.slowest, 60), "' takes ",
                    100 * summary.slowest_cycles / summary.cycles, "% of the cycles; see ");
  } else {
    absl::StrAppend(&text, "see ");
  }
  return absl::StrCat(text, Printable(report_path), "\n");
}

}  // namespace npuc
