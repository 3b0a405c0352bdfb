#include "compiler_core/pipeline/compile.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/backends/compiled_unit.h"
#include "compiler_core/backends/grus/backend.h"
#include "compiler_core/backends/integer/backend.h"
#include "compiler_core/backends/report_data.h"
#include "compiler_core/backends/stages.h"
#include "compiler_core/base/status.h"
#include "compiler_core/pipeline/emission.h"
#include "compiler_core/pipeline/import.h"
#include "compiler_core/pipeline/listings.h"
#include "compiler_core/pipeline/profile_graph.h"
#include "compiler_core/pipeline/report_writer.h"
#include "compiler_core/pipeline/summary.h"
#include "compiler_core/report/page.h"
#include "compiler_core/target/core_spec.h"

namespace npuc {
namespace {

std::string FirstLogLine(const CompileRequest& request) {
  return absl::StrCat(std::string(CompilerVersion()), ", core ", request.options.core, ", model ",
                      Printable(request.options.model_name), ", ", request.model_bytes.size(),
                      " bytes");
}

absl::Status CheckRequest(const CompileRequest& request, const CoreSpec* core,
                          Diagnostics& diagnostics) {
  if (core == nullptr) {
    diagnostics.Add({.kind = DiagnosticKind::kNotLowerable,
                     .message = absl::StrCat("there is no core ", Printable(request.options.core)),
                     .fix = "set CORENAME: GRUS, or an integer core such as X2_1204"});
  }
  return diagnostics.ToStatus();
}

// Writes the files for people: report.json, report.html, the log, and the listings if wanted.
void Report(const CompileRequest& request, const CoreSpec& core, const CompiledUnit& unit,
            ReportData data, Stages& stages, CompileObserver& observer,
            const Diagnostics& diagnostics, CompileResult& result) {
  std::string report = ReportJson(unit, data, core, request.options, diagnostics);
  std::string page = ReportPage(report);
  observer.OnArtifact({"report.json", WriterOf(std::move(report))});
  observer.OnArtifact({"report.html", WriterOf(std::move(page))});
  if (request.wants_listings) {
    result.listings = {ListOps(data), ListMemory(unit, data), ListWeights(data),
                       ProfileGraphJson(unit.model, data, request.options.model_name)};
  }
  result.summary = SummaryOf(unit, data, core);
  result.histograms = std::move(data.weight_histograms);
  for (const std::string& line : LastLogLines(unit, data, diagnostics)) stages.Log(line);
  observer.OnArtifact({"compile.log", WriterOf(std::move(stages.log()))});
}

}  // namespace

absl::StatusOr<CompileResult> Compile(const CompileRequest& request, CompileObserver& observer,
                                      Diagnostics& diagnostics) {
  Stages stages(observer, diagnostics, request.options.model_name);
  stages.Log(FirstLogLine(request));
  const CoreSpec* core = FindCore(request.options.core);
  CHECK_STEP("check", 0.0, CheckRequest(request, core, diagnostics));
  std::optional<BoxSettings> boxes;
  STEP(Graph graph, "import", 0.05, ImportModel(request, diagnostics, &boxes));
  // From here: every shape is static, every value has a type, constants are folded.
  const auto backend = core->integer != nullptr ? CompileForInteger : CompileForGrus;
  ASSIGN_OR_RETURN(const std::shared_ptr<CompiledUnit> unit,
                   backend(request, *core, std::move(graph), stages, diagnostics));
  // From here: every command is encoded, and the memory plan is proven.
  CHECK_STEP("header", 0.90, Emit(request, unit, boxes, observer, diagnostics));
  // From here: the model's artifacts are out.
  ASSIGN_OR_RETURN(ReportData data, unit->Describe(request, stages, diagnostics));
  CompileResult result;
  Report(request, *core, *unit, std::move(data), stages, observer, diagnostics, result);
  observer.OnStage("done", 1.0);
  return result;
}

}  // namespace npuc
