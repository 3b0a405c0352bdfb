#include "compiler_core/pipeline/summary.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/target/core_spec.h"
#include "nlohmann/json.hpp"

namespace npuc {
namespace {

using Json = nlohmann::json;

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

int64_t LimitOf(const std::string& core_name) {
  const CoreSpec* core = FindCore(core_name);
  if (core == nullptr) return 0;
  if (core->limits != nullptr) return core->limits->npu_sram_bytes;
  return core->integer != nullptr ? core->integer->sram_bytes : 0;
}

void ReadNodes(const Json& report, CompileSummary& summary) {
  for (const Json& node : report.value("nodes", Json::array())) {
    const int64_t cycles = node.value("cycles", int64_t{0});
    if (cycles <= summary.slowest_cycles) continue;
    summary.slowest_cycles = cycles;
    summary.slowest = node.value("node", "");
  }
}

void ReadQuality(const Json& report, CompileSummary& summary) {
  const Json metrics = report.value("metrics", Json::object());
  for (const Json& figure : metrics.value("figures", Json::array())) {
    const std::string metric = figure.value("metric", "");
    if ((metric != "sqnr" && metric != "cosine") || !figure.contains("quantized")) continue;
    if (!figure["quantized"].is_number()) continue;  // equal to float: no noise to measure
    summary.quality.push_back(
        {figure.value("output", ""), metric, figure["quantized"].get<double>()});
  }
}

}  // namespace

CompileSummary SummaryOf(const CompileResult& result) {
  CompileSummary summary;
  const auto found =
      std::find_if(result.artifacts.begin(), result.artifacts.end(),
                   [](const Artifact& artifact) { return artifact.name == "report.json"; });
  if (found == result.artifacts.end()) return summary;
  const Json report = Json::parse(found->bytes, nullptr, /*allow_exceptions=*/false);
  if (!report.is_object()) return summary;
  const Json sizes = report.value("sizes_bytes", Json::object());
  const auto size = [&](const char* name) { return sizes.value(name, int64_t{0}); };
  summary.ram_bytes = size("data_content") + size("input") + size("output");
  summary.flash_bytes = size("cmd_content") + size("weight_content") + size("ops_content");
  summary.core = report.value("config", Json::object()).value("CORENAME", "");
  summary.ram_limit_bytes = LimitOf(summary.core);
  summary.cycles = report.value("per_frame", Json::object()).value("cycles", int64_t{0});
  ReadNodes(report, summary);
  ReadQuality(report, summary);
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
