#include "compiler_core/backends/grus/backend.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/backends/addresses.h"
#include "compiler_core/backends/dead_channels.h"
#include "compiler_core/backends/grus/dead_channels.h"
#include "compiler_core/backends/grus/float_model.h"
#include "compiler_core/backends/grus/layer_errors.h"
#include "compiler_core/backends/grus/node_uses.h"
#include "compiler_core/backends/grus/weight_choices.h"
#include "compiler_core/backends/grus/weight_histograms.h"
#include "compiler_core/backends/states.h"
#include "compiler_core/base/status.h"
#include "compiler_core/emit/grus_codec.h"
#include "compiler_core/ir/cmd/access.h"
#include "compiler_core/lowering/copies.h"
#include "compiler_core/lowering/lower.h"
#include "compiler_core/lowering/support.h"
#include "compiler_core/memplan/order.h"
#include "compiler_core/memplan/plan.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/passes/passes.h"
#include "compiler_core/report/json_parts.h"

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
                   .op = OpNameOf(first),
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
                       .op = OpNameOf(node),
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
  passes.log_of_squares = true;
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

// How much of the weights WEIGHT_CACHE_SIZE holds: an estimate, since the chip's way is not public.
void NoteWeightCache(const WeightCacheUse& use, const CompileOptions& options, const CoreSpec& core,
                     int64_t data_bytes, size_t weight_bytes, Diagnostics& diagnostics) {
  const int64_t size = use.size_bytes;
  std::string names;
  for (const std::string& node : use.nodes) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", Printable(node));
  }
  const int64_t left = core.limits->npu_sram_bytes - data_bytes;
  diagnostics.Add({.kind = DiagnosticKind::kWeightCacheUse,
                   .message = absl::StrCat(
                       "WEIGHT_CACHE_SIZE: ", size, " would hold ", use.used_bytes, " of ",
                       weight_bytes, " weight bytes, of ", names.empty() ? "no operator" : names,
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
absl::StatusOr<CompiledModel> Assemble(const CompileOptions& options, const CoreSpec& core,
                                       Program& program, Diagnostics& diagnostics) {
  CompiledModel model;
  model.npu_unit = options.npu_unit;
  model.core = std::string(core.name);
  model.inputs = program.inputs;
  model.outputs = program.outputs;
  model.weight_content = std::move(program.weights);
  model.data_bytes = program.data_bytes;
  RETURN_IF_ERROR(CheckArtifactLimits(model, options.model_name, diagnostics));
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

// LAYER_ERROR_FRAMES: what cannot be compared is no reason to fail.
LayerErrors CompareLayers(const Graph& graph, const CoreSpec& core,
                          const LowerOptions& lower_options, const CompileOptions& options,
                          Stages& stages) {
  if (options.layer_error_frames == 0) return {};
  absl::StatusOr<LayerErrors> errors =
      MeasureLayerErrors(graph, core, lower_options, options, options.layer_error_frames,
                         [&] { return stages.IsCancelled(); });
  if (errors.ok()) return *std::move(errors);
  stages.Log(absl::StrCat("layers are not compared: ", errors.status().message()));
  return {};
}

struct GrusUnit : CompiledUnit {
  absl::StatusOr<ReportData> Describe(const CompileRequest& request, Stages& stages,
                                      Diagnostics& diagnostics) override;

  std::vector<NodeFigures> NodesOf() const;
  std::vector<OperatorLine> OperatorsOf() const;
  std::vector<WeightFigures> WeightsOf() const;

  Graph graph;           // as it was lowered
  LoweredModel lowered;  // without the weights' bytes, which the model has
  std::vector<NodeUse> uses;
  std::optional<WeightCacheUse> weight_cache;
  LayerErrors layer_errors;
};

std::vector<NodeFigures> GrusUnit::NodesOf() const {
  // Several nodes may come from one node of the model; the last of them stands for it.
  absl::flat_hash_map<absl::string_view, size_t> roots;
  const auto& graph_nodes = graph.nodes();
  for (size_t i = 0; i < graph_nodes.size(); ++i) roots[graph_nodes[i].source.name] = i;
  std::vector<NodeFigures> nodes(uses.size());
  for (size_t i = 0; i < uses.size(); ++i) {
    const NodeUse& use = uses[i];
    NodeFigures& figures = nodes[i];
    figures.name = use.name;
    figures.use = use.figures;
    figures.data_bytes = BytesOf(lowered.program, use.data_buffers);
    figures.weight_bytes = BytesOf(lowered.program, use.weight_buffers);
    const auto root = roots.find(use.name);
    if (root == roots.end()) continue;
    const Node& node = graph_nodes[root->second];
    figures.op = std::string(NameOf(node.op));
    if (root->second < layer_errors.size()) figures.error = layer_errors[root->second];
    if (!node.outputs.empty()) figures.shape = graph.type(node.outputs[0]).shape;
  }
  return nodes;
}

std::vector<OperatorLine> GrusUnit::OperatorsOf() const {
  absl::flat_hash_map<absl::string_view, int64_t> commands;
  for (const NodeUse& use : uses) commands[use.name] = use.figures.commands;
  std::vector<OperatorLine> lines;
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::kConst) continue;
    OperatorLine& line = lines.emplace_back();
    line.name = node.source.name;
    line.op = std::string(NameOf(node.op));
    if (!node.outputs.empty()) line.shape = graph.type(node.outputs[0]).shape;
    const auto it = commands.find(node.source.name);
    if (it != commands.end()) line.commands = it->second;
  }
  return lines;
}

std::vector<WeightFigures> GrusUnit::WeightsOf() const {
  std::vector<WeightFigures> weights;
  weights.reserve(lowered.weights.size());
  for (const WeightRecord& record : lowered.weights) {
    WeightFigures& weight = weights.emplace_back();
    weight.name = record.name;
    weight.used_by = record.used_by;
    weight.shape = record.shape;
    weight.bits = record.bits;
    weight.min = record.min;
    weight.max = record.max;
    weight.step = record.step;
    weight.sparsity = record.sparsity;
    weight.max_abs_error = record.max_abs_error;
    weight.rms_error = record.rms_error;
    weight.bytes = record.mask_bytes + record.code_bytes;
    const Tensor* values = graph.ConstantOf(record.value);
    if (values != nullptr && weights.size() <= kMaxReportEntries) {
      weight.histogram = ReportHistogram(*values);
    }
  }
  return weights;
}

absl::StatusOr<ReportData> GrusUnit::Describe(const CompileRequest& request, Stages&,
                                              Diagnostics&) {
  const Program& program = lowered.program;
  ReportData data;
  for (const Command& command : program.commands) {
    ++data.commands_by_kind[std::string(NameOf(command))];
  }
  for (const NodeUse& use : uses) {
    data.per_frame.load += use.figures.load;
    data.per_frame.cycles += use.figures.cycles;
  }
  data.per_frame.commands = static_cast<int64_t>(program.commands.size());
  data.nodes = NodesOf();
  data.node_of_command = PositionsByName(data.nodes, program.commands, &Command::node);
  data.node_of_graph_node =
      PositionsByName(data.nodes, graph.nodes(),
                      [](const Node& node) -> absl::string_view { return node.source.name; });
  data.operators = OperatorsOf();
  data.weights = WeightsOf();
  data.transposes = TransposesOf(graph, program);
  data.weight_cache = weight_cache;
  data.memory_map = MemoryMapOf(program.buffers, LiveRangesOf(program));
  if (request.options.save_histograms) {
    data.weight_histograms = WeightHistograms(graph, lowered.weights);
  }
  data.graph = std::move(graph);
  return data;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CompiledUnit>> CompileForGrus(const CompileRequest& request,
                                                             const CoreSpec& core, Graph imported,
                                                             Stages& stages,
                                                             Diagnostics& diagnostics) {
  const CompileOptions& options = request.options;
  STEP(Graph floats, "floats", 0.22, FloatModel(std::move(imported), core, options, diagnostics));
  // From here: no integers of a quantized model.
  STEP(Graph graph, "passes", 0.25, RunPasses(std::move(floats), PassOptionsOf(options)));
  LiveGraph live;
  if (!options.keep_dead) {
    live = DropDeadChannels(graph);
    if (live.kept.removed > 0) stages.Log(DeadChannelsNote(live.kept, graph, live.graph));
    graph = live.graph;
  }
  // From here: only operators that lowering knows or refuses by name.
  CHECK_STEP("types", 0.40, CheckDataTypes(graph, core, options.model_name, diagnostics));
  CHECK_STEP("support", 0.42, CheckSupportStage(graph, core, options, diagnostics));
  STEP(LowerOptions lower_options, "weights", 0.45,
       ChooseWeights(request, core, WeightNames(graph), diagnostics));
  KeepRanges(live, lower_options);
  STEP(LoweredModel lowered, "lower", 0.50, Lower(graph, core, lower_options, diagnostics));
  Program& program = lowered.program;
  auto unit = std::make_unique<GrusUnit>();
  AssignStates(program, options.output_file, options.framework, diagnostics);
  if (!lower_options.plain_commands) DropCopies(program);
  const int64_t alignment_bytes = core.limits->buffer_alignment_bytes;
  STEP(unit->memory, "plan", 0.75,
       lower_options.plain_commands ? PlanMemory(program, alignment_bytes)
                                    : PlanInBestOrder(program, alignment_bytes));
  RETURN_IF_ERROR(
      stages.End(TakeAddresses(request, LiveRangesOf(program), alignment_bytes,
                               absl::MakeSpan(program.buffers), program.data_bytes, diagnostics)));
  unit->memory.arena_bytes = program.data_bytes;
  // From here: addresses are final.
  CHECK_STEP("check plan", 0.80, CheckMemoryPlan(program));
  STEP(unit->model, "emit", 0.85, Assemble(options, core, program, diagnostics));
  unit->opt_template = WriteTemplate(lowered.weights);
  unit->uses = UseByNode(program, CyclesOf(core, options.npu_unit));
  WarnAboutMemory(unit->model, core, options.model_name, diagnostics);
  WarnAboutFusedWeights(options, diagnostics);
  if (const int64_t cache_bytes = options.weight_cache_size_bytes.value_or(0); cache_bytes > 0) {
    unit->weight_cache = PlanWeightCache(program, unit->uses, cache_bytes);
    NoteWeightCache(*unit->weight_cache, options, core, program.data_bytes,
                    unit->model.weight_content.size(), diagnostics);
  }
  unit->layer_errors = CompareLayers(graph, core, lower_options, options, stages);
  unit->graph = std::move(graph);
  unit->lowered = std::move(lowered);
  return unit;
}

}  // namespace npuc
