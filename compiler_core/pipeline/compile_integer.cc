#include "compiler_core/pipeline/compile_integer.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler_core/emit/header_writer.h"
#include "compiler_core/emit/integer_codec.h"
#include "compiler_core/emit/model_file.h"
#include "compiler_core/lowering/integer/lower_integer.h"
#include "compiler_core/memplan/plan.h"
#include "compiler_core/passes/passes.h"
#include "compiler_core/pipeline/file_limits.h"
#include "compiler_core/pipeline/integer_metrics.h"
#include "compiler_core/pipeline/integer_model.h"
#include "compiler_core/pipeline/integer_report.h"
#include "compiler_core/pipeline/summary.h"
#include "compiler_core/quant/opt_template.h"
#include "compiler_core/quant/statistics.h"
#include "compiler_core/report/page.h"

namespace npuc {
namespace {

std::string PortsText(const std::vector<PortTensor>& ports) {
  return absl::StrJoin(ports, ", ", [](std::string* out, const PortTensor& port) {
    absl::StrAppend(out, Printable(port.name), " ", TypeToString({port.dtype, port.shape}));
  });
}

std::string LayerListing(const QuantPlan& plan) {
  std::string out;
  for (const Layer& layer : plan.layers) {
    absl::StrAppend(&out, Printable(layer.name), " ", layer.type, "\n");
  }
  return out;
}

std::string MemoryListing(const integer::Program& program) {
  std::string out;
  for (const Buffer& buffer : program.buffers) {
    if (buffer.slot != Slot::kData) continue;
    absl::StrAppend(&out, Printable(buffer.name), " ", buffer.size_bytes, " bytes at ",
                    buffer.offset_bytes, "\n");
  }
  return out;
}

// Marks the outputs that are states, as far as their bytes can be the next frame's input.
void MarkStates(const std::vector<int>& state_inputs, integer::Program& program) {
  for (size_t i = 0; i < state_inputs.size(); ++i) {
    if (state_inputs[i] < 0) continue;
    const PortTensor& input = program.inputs[static_cast<size_t>(state_inputs[i])];
    PortTensor& output = program.outputs[i];
    if (output.dtype != input.dtype || output.scale != input.scale ||
        output.zero_point != input.zero_point) {
      continue;
    }
    output.state_input = state_inputs[i];
  }
}

absl::StatusOr<CompiledModel> AssembleInteger(const CompileRequest& request, const CoreSpec& core,
                                              const integer::Program& program,
                                              Diagnostics& diagnostics) {
  CompiledModel model;
  model.version = std::string(CompilerVersion());
  model.model_md5 = ModelMd5(request);
  model.model_info = ModelInfo(request);
  model.core = std::string(core.name);
  model.command_set = CommandSet::kInteger;
  model.inputs = program.inputs;
  model.outputs = program.outputs;
  model.weight_content = program.weights;
  model.data_bytes = program.data_bytes;
  RETURN_IF_ERROR(CheckArtifactLimits(model, request.options.model_name, diagnostics));
  ASSIGN_OR_RETURN(model.cmd_content, integer::EncodeCommands(program));
  return model;
}

void WarnAboutQuality(const ModelMetrics& metrics, const std::string& model_name,
                      Diagnostics& diagnostics) {
  for (const MetricFigure& figure : metrics.figures) {
    if (figure.metric != "sqnr" || !(figure.quantized < kPoorSqnrDb)) continue;
    diagnostics.Add(
        {.kind = DiagnosticKind::kPoorlyQuantized,
         .message = absl::StrFormat("output '%s' is %.1f dB above its quantization noise; below "
                                    "%.0f dB results often differ",
                                    Printable(figure.output), figure.quantized, kPoorSqnrDb),
         .file = model_name,
         .fix = "in QUANT set quantize_method_for_weight: per_channel_symmetric_restricted_range, "
                "quantize_method_for_activation: per_tensor_asymmetric and "
                "calibration_strategy_for_activation: extrema, or activation_bits: 16"});
  }
}

}  // namespace

absl::StatusOr<CompileResult> CompileInteger(const CompileRequest& request, const CoreSpec& core,
                                             const Graph& imported, Stages& stages,
                                             CompileObserver& observer, Diagnostics& diagnostics) {
  const CompileOptions& options = request.options;
  STEP(Graph graph, "passes", 0.25, RunPasses(imported, IntegerPassOptions()));
  STEP(const IntegerModel quantized, "quantize", 0.30,
       MakeIntegerModel(request, graph, diagnostics));
  // From here: a float graph, and beside it the integers of every value between layers.
  for (const std::string& line : quantized.log) stages.Log(line);
  STEP(integer::Program program, "lower", 0.70,
       LowerInteger(quantized.graph, quantized.plan, options.model_name, diagnostics));
  MarkStates(quantized.state_inputs, program);
  STEP(const MemoryPlanResult memory, "plan", 0.75,
       PlanMemory(program, core.integer->buffer_alignment_bytes));
  // From here: addresses are final.
  CHECK_STEP("check plan", 0.80, CheckMemoryPlan(program));
  STEP(const CompiledModel model, "emit", 0.85,
       AssembleInteger(request, core, program, diagnostics));

  CompileResult result;
  STEP(std::string header, "header", 0.90, WriteCHeader(model, diagnostics));
  result.artifacts.push_back({options.output_file, std::move(header)});
  observer.OnHeader(result.artifacts.back());
  RETURN_IF_ERROR(CheckFileSize("opt_template.json", quantized.opt_template.size(),
                                kMaxTemplateBytes, options.model_name, diagnostics));
  RETURN_IF_ERROR(CheckFileSize("statistics.json", quantized.statistics.size(), kMaxStatisticsBytes,
                                options.model_name, diagnostics));
  if (quantized.quantized_here) {
    result.artifacts.push_back({"opt_template.json", quantized.opt_template});
  }
  if (!quantized.statistics.empty()) {
    result.artifacts.push_back({"statistics.json", quantized.statistics});
  }
  result.artifacts.push_back({ModelFileName(options), WriteModelFile(model)});
  STEP(const ModelMetrics metrics, "measure", 0.95,
       MeasureMetrics(
           request, quantized, model, [&] { return observer.IsCancelled(); }, diagnostics));
  WarnAboutQuality(metrics, options.model_name, diagnostics);
  std::string report =
      IntegerReportJson({core, quantized, program, model, memory, diagnostics, options, metrics});
  std::string page = ReportPage(report);
  result.artifacts.push_back({"report.json", std::move(report)});
  result.artifacts.push_back({"report.html", std::move(page)});
  if (request.wants_listings) {
    result.listings = {LayerListing(quantized.plan), MemoryListing(program), ""};
  }
  for (const Diagnostic& diagnostic : diagnostics.list()) stages.Log(diagnostic.ToString());
  stages.Log(absl::StrCat("inputs: ", PortsText(model.inputs)));
  stages.Log(absl::StrCat("outputs: ", PortsText(model.outputs)));
  stages.Log(absl::StrCat("done: ", program.commands.size(), " commands, npu_size ",
                          model.npu_size(), ", total_size ", model.total_size(), ", data_content ",
                          model.data_bytes, " (liveness bound ", memory.lower_bound_bytes, ")"));
  result.artifacts.push_back({"compile.log", std::move(stages.log())});
  observer.OnStage("done", 1.0);
  return result;
}

}  // namespace npuc
