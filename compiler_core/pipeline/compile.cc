#include "compiler_core/pipeline/compile.h"

#include <algorithm>
#include <cstddef>
#include <ctime>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/status.h"
#include "compiler_core/emit/grus_codec.h"
#include "compiler_core/emit/header_writer.h"
#include "compiler_core/emit/model_file.h"
#include "compiler_core/lowering/lower.h"
#include "compiler_core/lowering/support.h"
#include "compiler_core/memplan/plan.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/passes/passes.h"
#include "compiler_core/pipeline/compile_integer.h"
#include "compiler_core/pipeline/file_limits.h"
#include "compiler_core/pipeline/float_model.h"
#include "compiler_core/pipeline/import.h"
#include "compiler_core/pipeline/layer_errors.h"
#include "compiler_core/pipeline/listings.h"
#include "compiler_core/pipeline/report_json.h"
#include "compiler_core/pipeline/stages.h"
#include "compiler_core/pipeline/states.h"
#include "compiler_core/pipeline/weight_choices.h"
#include "compiler_core/pipeline/weight_histograms.h"
#include "compiler_core/quant/opt_template.h"
#include "compiler_core/report/page.h"
#include "compiler_core/target/core_spec.h"

namespace npuc {
namespace {

// One line for a model that keeps integers between its nodes, however many these are.
void ReportQuantized(const Node& first, int count, const CoreSpec& core,
                     const std::string& model_name, Diagnostics& diagnostics) {
  std::string integer_cores;
  for (const CoreSpec* other : AllCores()) {
    if (other->integer == nullptr || IsFixedPoint(*other)) continue;
    absl::StrAppend(&integer_cores, integer_cores.empty() ? "" : ", ", other->name);
  }
  diagnostics.Add({.kind = DiagnosticKind::kNotFp16Data,
                   .message = absl::StrCat(
                       "the model is quantized, ", count, count == 1 ? " value is" : " values are",
                       " integers at run time; ", core.name, " computes in fp16"),
                   .file = model_name,
                   .node = first.source.name,
                   .op = first.source.op.empty() ? std::string(NameOf(first.op)) : first.source.op,
                   .fix = absl::StrCat("set CORENAME to an integer core, which keeps its scales (",
                                       integer_cores, "), or give the float model")});
}

// The core computes in fp16: integer or boolean data may steer shapes, but not flow at run time.
absl::Status CheckDataTypes(const Graph& graph, const CoreSpec& core, const std::string& model_name,
                            Diagnostics& diagnostics) {
  const Node* first_quantized = nullptr;
  int quantized = 0;
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::kConst) continue;
    if (node.op == Op::kQuantize) {
      if (quantized++ == 0) first_quantized = &node;
      continue;
    }
    for (const ValueId output : node.outputs) {
      const DType dtype = graph.type(output).dtype;
      if (IsFloat(dtype)) continue;
      diagnostics.Add({.kind = DiagnosticKind::kNotFp16Data,
                       .message = absl::StrCat("computes ", std::string(NameOf(dtype)),
                                               " values at run time; the core computes in fp16"),
                       .file = model_name,
                       .node = node.source.name,
                       .op = node.source.op.empty() ? std::string(NameOf(node.op)) : node.source.op,
                       .fix = "feed the value as a float input, or make it a constant"});
    }
  }
  if (quantized > 0) ReportQuantized(*first_quantized, quantized, core, model_name, diagnostics);
  return diagnostics.ToStatus();
}

PassOptions PassOptionsOf(const CompileOptions& options) {
  PassOptions passes;
  passes.fuse_batch_norm = options.fuse_bn;
  passes.fuse_bias = options.fuse_biasadd;
  passes.verify = false;  // CheckSupportStage does
  return passes;
}

// What shares a range with the weights that CONV2D_COMPRESS compresses.
void WarnAboutFusedWeights(const CompileOptions& options, Diagnostics& diagnostics) {
  const auto warn = [&](std::string message) {
    diagnostics.Add({.kind = DiagnosticKind::kCompressesFusedWeights,
                     .message = std::move(message),
                     .file = options.model_name,
                     .fix = "compare the outputs, or set one of the two to false"});
  };
  if (!options.conv2d_compress) return;
  if (options.fuse_bn) {
    warn(
        "FUSE_BN folds batch normalisation into the weights that CONV2D_COMPRESS compresses; "
        "channels of unlike scales then share one range, which may cost accuracy");
  }
  if (options.fuse_biasadd) {
    warn(
        "FUSE_BIASADD gives biases the codes of the weights that CONV2D_COMPRESS compresses; one "
        "range then covers both, which may cost accuracy");
  }
}

// The transposes that are left, a line each as far as they are few.
void LogTransposes(const CompileFacts& facts, Stages& stages) {
  constexpr size_t kMaxLines = 20;
  const std::vector<TransposeRecord> transposes = TransposesOf(facts);
  stages.Log(absl::StrCat("transposes: ", transposes.size(), " left",
                          transposes.size() > kMaxLines ? "; the first ones:" : ""));
  for (size_t i = 0; i < std::min(transposes.size(), kMaxLines); ++i) {
    stages.Log(absl::StrCat("transpose '", Printable(transposes[i].node), "', ",
                            ShapeToString(transposes[i].shape), " by ",
                            ShapeToString(transposes[i].perm), ": ", transposes[i].reason));
  }
}

// The log's last lines.
void LogEnd(const CompileFacts& facts, Stages& stages) {
  LogTransposes(facts, stages);
  for (const Diagnostic& diagnostic : facts.diagnostics.list()) stages.Log(diagnostic.ToString());
  const CompiledModel& model = facts.model;
  stages.Log(absl::StrCat("done: ", facts.program.commands.size(), " commands, npu_size ",
                          model.npu_size(), ", total_size ", model.total_size(), ", data_content ",
                          model.data_bytes, " (liveness bound ", facts.memory.lower_bound_bytes,
                          ", ", std::string(NameOf(facts.memory.method)), ")"));
}

// How much of the weights WEIGHT_CACHE_SIZE holds: an estimate, since the chip's way is not public.
void NoteWeightCache(const CompileOptions& options, const CoreSpec& core, const Program& program,
                     size_t weight_bytes, absl::Span<const NodeUse> uses,
                     Diagnostics& diagnostics) {
  const int64_t size = options.weight_cache_size_bytes.value_or(0);
  if (size == 0) return;
  const WeightCacheUse use = PlanWeightCache(program, uses, size);
  std::string names;
  for (const std::string& node : use.nodes) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", Printable(node));
  }
  const int64_t left = core.limits->npu_sram_bytes - program.data_bytes;
  diagnostics.Add({.kind = DiagnosticKind::kWeightCacheUse,
                   .message = absl::StrCat(
                       "WEIGHT_CACHE_SIZE: ", size, " would hold ", use.bytes, " of ", weight_bytes,
                       " weight bytes, of ", names.empty() ? "no operator" : names,
                       "; beside data_content ", left, " bytes of the NPU's SRAM are free",
                       left < size ? ", which is less than the cache" : ""),
                   .file = options.model_name,
                   .limit_source = absl::StrCat(std::string(core.name), " npu_sram_bytes")});
}

absl::Status CheckSupportStage(const Graph& graph, const CoreSpec& core,
                               const CompileOptions& options, Diagnostics& diagnostics) {
  RETURN_IF_ERROR(VerifyGraph(graph));
  CheckSupport(graph, core, options, diagnostics);
  return diagnostics.ToStatus();
}

// Takes the program's weights, which may be most of its bytes.
absl::StatusOr<CompiledModel> Assemble(const CompileRequest& request, const CoreSpec& core,
                                       Program& program, Diagnostics& diagnostics) {
  CompiledModel model;
  model.version = std::string(CompilerVersion());
  model.model_md5 = ModelMd5(request);
  model.npu_unit = request.options.npu_unit;
  model.model_info = ModelInfo(request);
  model.core = std::string(core.name);
  model.inputs = program.inputs;
  model.outputs = program.outputs;
  model.weight_content = std::move(program.weights);
  model.data_bytes = program.data_bytes;
  RETURN_IF_ERROR(CheckArtifactLimits(model, request.options.model_name, diagnostics));
  ASSIGN_OR_RETURN(model.cmd_content, EncodeCommands(program));
  return model;
}

void WarnAboutMemory(const CompiledModel& model, const CoreSpec& core, const std::string& name,
                     Diagnostics& diagnostics) {
  if (model.npu_size() <= core.limits->npu_sram_bytes) return;
  diagnostics.Add({.kind = DiagnosticKind::kMemoryBeyondNpuSram,
                   .message = absl::StrCat("npu_size ", model.npu_size(), " exceeds the ",
                                           core.limits->npu_sram_bytes,
                                           " bytes of SRAM that the NPU has by default"),
                   .file = name,
                   .limit_source = absl::StrCat(std::string(core.name), " npu_sram_bytes"),
                   .fix =
                       "set COMPRESS: true, execute commands and weights in place from flash, or "
                       "give the NPU more SRAM"});
}

absl::Status CheckRequest(const CompileRequest& request, const CoreSpec* core,
                          Diagnostics& diagnostics) {
  if (core == nullptr || (core->limits == nullptr && core->integer == nullptr)) {
    diagnostics.Add({.kind = DiagnosticKind::kNotLowerable,
                     .message = absl::StrCat("no command encoding is known for core ",
                                             Printable(request.options.core)),
                     .fix = "set CORENAME: GRUS, or an integer core such as X2_1204"});
  }
  return diagnostics.ToStatus();
}

// LAYER_ERROR_FRAMES: what cannot be compared is no reason to fail.
LayerErrors CompareLayers(const Graph& graph, const CoreSpec& core,
                          const LowerOptions& lower_options, const CompileOptions& options,
                          CompileObserver& observer, Stages& stages) {
  if (options.layer_error_frames == 0) return {};
  absl::StatusOr<LayerErrors> errors =
      MeasureLayerErrors(graph, core, lower_options, options, options.layer_error_frames,
                         [&] { return observer.IsCancelled(); });
  if (errors.ok()) return *std::move(errors);
  stages.Log(absl::StrCat("layers are not compared: ", errors.status().message()));
  return {};
}

}  // namespace

absl::StatusOr<CompileResult> Compile(const CompileRequest& request, CompileObserver& observer,
                                      Diagnostics& diagnostics) {
  const CompileOptions& options = request.options;
  Stages stages(observer, diagnostics, options.model_name);
  const CoreSpec* core = FindCore(options.core);
  stages.Log(absl::StrCat(std::string(CompilerVersion()), ", core ", options.core, ", model ",
                          Printable(options.model_name), ", ", request.model_bytes.size(),
                          " bytes"));

  CHECK_STEP("check", 0.0, CheckRequest(request, core, diagnostics));
  STEP(Graph imported, "import", 0.05, ImportModel(request, diagnostics));
  // From here: every shape is static, every value has a type, constants are folded.
  if (core->integer != nullptr) {
    return CompileInteger(request, *core, imported, stages, observer, diagnostics);
  }
  STEP(Graph floats, "floats", 0.22, FloatModel(std::move(imported), *core, options, diagnostics));
  // From here: no integers of a quantized model.
  STEP(Graph graph, "passes", 0.25, RunPasses(std::move(floats), PassOptionsOf(options)));
  // From here: only operators that lowering knows or refuses by name.
  CHECK_STEP("types", 0.40, CheckDataTypes(graph, *core, options.model_name, diagnostics));
  CHECK_STEP("support", 0.42, CheckSupportStage(graph, *core, options, diagnostics));
  STEP(LowerOptions lower_options, "weights", 0.45,
       ChooseWeights(request, WeightNames(graph), diagnostics));
  STEP(LoweredModel lowered, "lower", 0.50, Lower(graph, *core, lower_options, diagnostics));
  Program& program = lowered.program;
  STEP(const MemoryPlanResult memory, "plan", 0.75,
       PlanMemory(program, core->limits->buffer_alignment_bytes));
  // From here: addresses are final.
  AssignStates(program, options.output_file, options.framework, diagnostics);
  CHECK_STEP("check plan", 0.80, CheckMemoryPlan(program));
  STEP(const CompiledModel model, "emit", 0.85, Assemble(request, *core, program, diagnostics));
  WarnAboutMemory(model, *core, options.model_name, diagnostics);
  WarnAboutFusedWeights(options, diagnostics);
  const std::vector<NodeUse> uses = UseByNode(program, core->cycles);
  NoteWeightCache(options, *core, program, model.weight_content.size(), uses, diagnostics);
  const LayerErrors layer_errors =
      CompareLayers(graph, *core, lower_options, options, observer, stages);

  CompileResult result;
  STEP(std::string header, "header", 0.90, WriteCHeader(model, diagnostics));
  result.artifacts.push_back({options.output_file, std::move(header)});
  observer.OnHeader(result.artifacts.back());
  const std::vector<Histogram> histograms = ReportHistograms(graph, lowered.weights);
  const CompileFacts facts{graph,       program, model,        memory, lowered.weights, histograms,
                           diagnostics, options, core->cycles, uses,   layer_errors};
  std::string weights = WriteTemplate(lowered.weights);
  RETURN_IF_ERROR(CheckFileSize("opt_template.json", weights.size(), kMaxTemplateBytes,
                                options.model_name, diagnostics));
  result.artifacts.push_back({"opt_template.json", std::move(weights)});
  result.artifacts.push_back({ModelFileName(options), WriteModelFile(model)});
  std::string report = ReportJson(facts);
  std::string page = ReportPage(report);
  result.artifacts.push_back({"report.json", std::move(report)});
  result.artifacts.push_back({"report.html", std::move(page)});
  if (request.wants_listings) {
    result.listings = {ListOps(facts), ListMemory(facts), ListWeights(facts)};
  }
  if (options.save_histograms) result.histograms = WeightHistograms(graph, lowered.weights);
  LogEnd(facts, stages);
  result.artifacts.push_back({"compile.log", std::move(stages.log())});
  observer.OnStage("done", 1.0);
  return result;
}

}  // namespace npuc
