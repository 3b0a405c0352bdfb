#include "compiler_core/backends/integer/backend.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler_core/backends/addresses.h"
#include "compiler_core/backends/integer/integer_metrics.h"
#include "compiler_core/backends/integer/integer_model.h"
#include "compiler_core/backends/integer/layer_outputs.h"
#include "compiler_core/backends/integer/plan_buffers.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/integer/access.h"
#include "compiler_core/ir/integer/load.h"
#include "compiler_core/ir/integer/phases.h"
#include "compiler_core/lowering/integer/code_weights.h"
#include "compiler_core/lowering/integer/lower_integer.h"
#include "compiler_core/lowering/integer/share_cores.h"
#include "compiler_core/memplan/plan.h"
#include "compiler_core/quant/params.h"
#include "compiler_core/report/json_parts.h"
#include "compiler_core/target/core_spec.h"

namespace npuc {
namespace {

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

constexpr int kMostBits = 16;  // of activations and of weights

// Settings that are not in force yet and have been tried nowhere; else where to look.
std::string QualityFix(const CompileRequest& request, const IntegerModel& quantized) {
  if (!quantized.quantized_here) {
    return "in QUANT set force_float_ir: true, calibration_data, activation_bits: 16 and "
           "weight_bits: 16";
  }
  const QuantOptions options = request.options.quant.value_or(QuantOptions());
  const CoreSpec* core = FindCore(request.options.core);
  const bool is_fixed = core != nullptr && IsFixedPoint(*core);
  const bool is_wide =
      std::all_of(quantized.settings.begin(), quantized.settings.end(), [](const auto& layer) {
        return layer.activation_bits >= kMostBits && layer.weight_bits >= kMostBits;
      });
  std::vector<std::string> fixes;
  if (!is_fixed && !IsMeasured(options.activation_strategy)) fixes.emplace_back("preset: best");
  // A least_sqnr makes the compiler try them by itself.
  if (!is_wide && options.least_sqnr_db <= 0) {
    fixes.emplace_back("activation_bits and weight_bits: 16");
  }
  if (!fixes.empty()) return absl::StrCat("in QUANT set ", absl::StrJoin(fixes, ", or "));
  return "see in the report which layer is least like the float model, and limit its operand in "
         "the model; or give calibration_data of what the model gets in use";
}

void WarnAboutQuality(const ModelMetrics& metrics, const CompileRequest& request,
                      const IntegerModel& quantized, Diagnostics& diagnostics) {
  for (const MetricFigure& figure : metrics.figures) {
    if (figure.metric != "sqnr" || !(figure.quantized < kPoorSqnrDb)) continue;
    diagnostics.Add(
        {.kind = DiagnosticKind::kPoorlyQuantized,
         .message = absl::StrFormat("output '%s' is %.1f dB above its quantization noise; below "
                                    "%.0f dB results often differ",
                                    Printable(figure.output), figure.quantized, kPoorSqnrDb),
         .file = request.options.model_name,
         .fix = QualityFix(request, quantized)});
  }
}

// What the commands of one layer use.
struct LayerUse {
  CommandFigures figures;
  PhaseClock clock;
  integer::Sharing sharing;  // of the command with the most parts
  std::set<int32_t> data_buffers;
  std::map<int64_t, int64_t> weights;  // sizes by offset: what two commands read counts once

  // A command of phase `phase`, its load and its cycles.
  void Add(const integer::Command& command, int64_t phase, const CommandLoad& load, int64_t cycles,
           const integer::Program& program) {
    ++figures.commands;
    figures.load += load;
    clock.Add(phase, command.core, cycles);
    figures.cycles = clock.cycles();
    if (command.sharing.parts > sharing.parts) sharing = command.sharing;
    for (const Access& access : integer::AccessesOf(command.body)) {
      const int32_t id = access.operand.buffer.value();
      const Slot slot = program.buffers[static_cast<size_t>(id)].slot;
      if (slot == Slot::kData) data_buffers.insert(id);
      if (slot == Slot::kWeight) {
        int64_t& size = weights[access.operand.offset_bytes];
        size = std::max(size, access.size_bytes);
      }
    }
  }
  int64_t data_bytes(const integer::Program& program) const {
    int64_t sum = 0;
    for (const int32_t id : data_buffers) {
      sum += program.buffers[static_cast<size_t>(id)].size_bytes;
    }
    return sum;
  }
  int64_t weight_bytes() const {
    int64_t sum = 0;
    for (const auto& [offset, size] : weights) sum += size;
    return sum;
  }
};

struct IntegerUnit : CompiledUnit {
  IntegerUnit(const CoreSpec& core, IntegerModel quantized)
      : core(core), quantized(std::move(quantized)) {}
  absl::StatusOr<ReportData> Describe(const CompileRequest& request, Stages& stages,
                                      Diagnostics& diagnostics) override;

  // The layers, and behind them the outputs that are only copied to their place.
  std::vector<NodeFigures> NodesOf(const std::map<std::string, LayerUse>& uses) const;
  std::vector<OperatorLine> OperatorsOf(const std::vector<NodeFigures>& nodes) const;
  // Fills in which of data.nodes each command and each node of the graph belongs to.
  void NumberNodes(ReportData& data) const;
  std::vector<QuantParams> ResultsOf(const Layer& layer) const;
  std::vector<WeightFigures> WeightsOf() const;
  WeightFigures WeightOf(const Layer& layer) const;

  const CoreSpec& core;
  IntegerModel quantized;  // of all channels: what metrics compare with
  IntegerModel live;       // without dead channels: what is compiled
  integer::Program program;
  int64_t cores = 1;               // that share the program
  int64_t cycles_on_one_core = 0;  // of the same plan; 0 where one core is used
};

LayerSharing SharingOf(const LayerUse& use) {
  LayerSharing sharing;
  for (const auto& [core, cycles] : use.clock.busy()) sharing.busy_cycles[core] = cycles;
  if (use.sharing.parts > 1) {
    sharing.by = use.sharing.axis == integer::Sharing::Axis::kRows ? "rows" : "channels";
    sharing.parts = use.sharing.parts;
  }
  return sharing;
}

std::vector<QuantParams> IntegerUnit::ResultsOf(const Layer& layer) const {
  std::vector<QuantParams> results;
  for (const ValueId output : layer.outputs) {
    const auto found = live.plan.values.find(output);
    if (found != live.plan.values.end()) results.push_back(found->second);
  }
  return results;
}

std::vector<NodeFigures> IntegerUnit::NodesOf(const std::map<std::string, LayerUse>& uses) const {
  const auto use_into = [&](const LayerUse& use, NodeFigures& node) {
    node.use = use.figures;
    if (CoresOf(core) > 1) node.sharing = SharingOf(use);
    node.data_bytes = use.data_bytes(program);
    node.weight_bytes = use.weight_bytes();
  };
  const std::vector<Layer>& layers = live.plan.layers;
  std::vector<NodeFigures> nodes(layers.size());
  std::set<absl::string_view> names;
  for (size_t i = 0; i < layers.size(); ++i) {
    const Layer& layer = layers[i];
    NodeFigures& node = nodes[i];
    names.insert(layer.name);
    node.name = layer.name;
    node.op = std::string(NameOf(live.graph.node(layer.root).op));
    node.layer_type = layer.type;
    if (!layer.outputs.empty()) node.shape = live.graph.type(layer.outputs[0]).shape;
    const auto use = uses.find(layer.name);
    if (use != uses.end()) use_into(use->second, node);
    node.results = ResultsOf(layer);
    if (i >= live.fidelity.size()) continue;
    const LayerFidelity& fidelity = live.fidelity[i];
    node.likeness = LayerLikeness{std::sqrt(fidelity.mse), fidelity.cosine};
  }
  for (const auto& [name, use] : uses) {
    if (names.contains(name)) continue;
    NodeFigures& copy = nodes.emplace_back();
    copy.name = name;
    copy.op = "Copy";
    use_into(use, copy);
  }
  return nodes;
}

std::vector<OperatorLine> IntegerUnit::OperatorsOf(const std::vector<NodeFigures>& nodes) const {
  std::vector<OperatorLine> lines;
  for (const NodeFigures& node : nodes) {
    lines.push_back({node.name, node.layer_type.value_or(node.op), node.shape, node.use.commands});
  }
  return lines;
}

void IntegerUnit::NumberNodes(ReportData& data) const {
  data.node_of_command = PositionsByName(data.nodes, program.commands, &integer::Command::layer);
  data.node_of_graph_node.assign(static_cast<size_t>(live.graph.node_count()), kOfNoNode);
  for (size_t i = 0; i < live.plan.layers.size(); ++i) {
    for (const NodeId node : live.plan.layers[i].nodes) {
      data.node_of_graph_node[static_cast<size_t>(node.value())] = static_cast<int32_t>(i);
    }
  }
}

std::vector<WeightFigures> IntegerUnit::WeightsOf() const {
  std::vector<WeightFigures> weights;
  for (const Layer& layer : live.plan.layers) {
    if (!layer.weight.valid() || live.graph.ConstantOf(layer.weight) == nullptr ||
        !live.plan.values.contains(layer.weight)) {
      continue;
    }
    WeightFigures weight = WeightOf(layer);
    if (weights.size() < kMaxReportEntries) {
      weight.histogram = ReportHistogram(*live.graph.ConstantOf(layer.weight));
    }
    weights.push_back(std::move(weight));
  }
  return weights;
}

WeightFigures IntegerUnit::WeightOf(const Layer& layer) const {
  const QuantPlan& plan = live.plan;
  const QuantParams& params = plan.values.at(layer.weight);
  const Tensor& real = *live.graph.ConstantOf(layer.weight);
  const std::vector<float> values = real.ToFloats();
  const auto given = plan.constants.find(layer.weight);
  const Tensor integers =
      given != plan.constants.end() ? given->second : QuantizeTensor(params, values, real.shape());
  const std::vector<float> kept = DequantizeTensor(params, integers).ToFloats();
  WeightFigures weight;
  double sum = 0;
  int64_t zeros = 0;
  for (size_t k = 0; k < values.size(); ++k) {
    const double error = std::fabs(static_cast<double>(kept[k]) - values[k]);
    weight.max_abs_error = std::max(weight.max_abs_error, error);
    sum += error * error;
    zeros += kept[k] == 0 ? 1 : 0;
  }
  const auto count = static_cast<double>(std::max<size_t>(values.size(), 1));
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  weight.name = live.graph.def(layer.weight).source.name;
  weight.used_by = layer.name;
  weight.shape = real.shape();
  weight.bits = BitsOf(params);
  weight.min = values.empty() ? 0.0 : static_cast<double>(*low);
  weight.max = values.empty() ? 0.0 : static_cast<double>(*high);
  weight.step = *std::max_element(params.scale.begin(), params.scale.end());
  weight.sparsity = static_cast<double>(zeros) / count;
  weight.rms_error = std::sqrt(sum / count);
  weight.bytes = static_cast<int64_t>(values.size()) * SizeOf(params.dtype);
  return weight;
}

absl::StatusOr<ReportData> IntegerUnit::Describe(const CompileRequest& request, Stages& stages,
                                                 Diagnostics& diagnostics) {
  ReportData data;
  STEP(data.metrics, "measure", 0.95,
       MeasureMetrics(
           request, quantized, model, [&] { return stages.IsCancelled(); }, diagnostics));
  WarnAboutQuality(data.metrics, request, quantized, diagnostics);
  LayerUse all;
  std::map<std::string, LayerUse> uses;
  StreamClock stream(*core.cycles, CoresOf(core));
  int64_t phase = 0;
  for (const integer::Command& command : program.commands) {
    if (command.barrier) ++phase;
    ++data.commands_by_kind[std::string(integer::NameOf(command.body))];
    const CommandLoad load = integer::LoadOf(command.body, MacArrayOf(core));
    const int64_t cycles = stream.Run(phase, command.core, load);
    all.Add(command, phase, load, cycles, program);
    uses[command.layer].Add(command, phase, load, cycles, program);
  }
  data.per_frame = all.figures;
  if (CoresOf(core) > 1) {
    data.cores = CoreFigures{all.clock.busy(), cores, phase + 1, cycles_on_one_core};
  }
  data.nodes = NodesOf(uses);
  NumberNodes(data);
  data.operators = OperatorsOf(data.nodes);
  data.weights = WeightsOf();
  data.memory_map = MemoryMapOf(program.buffers, LiveRangesOf(program));
  data.graph = std::move(live.graph);
  return data;
}

// The parts that featuremap_tiling_param and its kin of QUANT ask for.
ManualRows ManualRowsOf(const CompileOptions& options, const QuantPlan& plan) {
  ManualRows manual;
  if (!options.quant.has_value()) return manual;
  for (const LayerTiles& tiles : options.quant->featuremap_tiling) {
    for (size_t i = 0; i < plan.layers.size(); ++i) {
      if (tiles.ids.Holds(static_cast<int64_t>(i))) {
        manual.of_layers[plan.layers[i].name] = tiles.rows;
      }
    }
  }
  manual.of_others = options.quant->featuremap_rows;
  manual.max_overlap_percent = options.quant->featuremap_overlap_percent;
  return manual;
}

absl::Status ShareProgram(const CompileOptions& options, const CoreSharing& sharing, int64_t cores,
                          IntegerUnit& unit) {
  integer::Program on_one_core = unit.program;
  if (options.code_weights) RETURN_IF_ERROR(CodeWeights(on_one_core));
  unit.cycles_on_one_core = integer::FrameLoadOf(on_one_core, unit.core).cycles;
  unit.cores = cores;
  RETURN_IF_ERROR(sharing.Share(unit.program));
  return options.code_weights ? CodeWeights(unit.program) : absl::OkStatus();
}

// Where the config has a key about it.
void SayHowCoresShare(const CompileOptions& options, const ManualRows& manual,
                      const IntegerUnit& unit, Diagnostics& diagnostics) {
  if (manual.empty() && !options.cores.has_value()) return;
  std::map<std::string, int64_t> parts;  // by layer, the most of a command
  for (const integer::Command& command : unit.program.commands) {
    int64_t& most = parts[command.layer];
    most = std::max<int64_t>(most, command.sharing.parts);
  }
  int64_t shared = 0;
  int64_t as_asked = 0;
  std::vector<std::string> others;
  for (const auto& [layer, count] : parts) {
    shared += count > 1 ? 1 : 0;
    const int64_t asked = manual.Of(layer);
    as_asked += asked > 0 && asked == count ? 1 : 0;
    if (asked > 1 && asked != count) others.push_back(layer);
  }
  std::string message =
      absl::StrCat(unit.cores, " cores share ", shared, " of ", parts.size(),
                   " layers: ", integer::FrameLoadOf(unit.program, unit.core).cycles,
                   " estimated cycles a frame; on one core it takes ", unit.cycles_on_one_core);
  if (!manual.empty()) {
    absl::StrAppend(&message, "; ", as_asked,
                    " have as many parts as featuremap_tiling_param and featuremap_splits_item_y "
                    "ask for");
  }
  if (!others.empty()) {
    absl::StrAppend(&message, ", and not ", others.size(), ", '", Printable(others.front()),
                    "' among them, which have fewer rows, rows that too many parts would read "
                    "again, or a result that lies over rows of their operand");
  }
  const std::vector<LayerTiles> tiles =
      options.quant.has_value() ? options.quant->featuremap_tiling : std::vector<LayerTiles>();
  if (std::any_of(tiles.begin(), tiles.end(), [](const LayerTiles& t) { return t.columns > 1; })) {
    absl::StrAppend(&message,
                    "; parts by columns are not made, since their operands and results would be "
                    "in pieces");
  }
  diagnostics.Add({.kind = DiagnosticKind::kCoresShared,
                   .message = std::move(message),
                   .file = options.model_name});
}

absl::Status CheckPlan(const integer::Program& program, int64_t cores) {
  RETURN_IF_ERROR(CheckMemoryPlan(program));
  return integer::VerifyPhases(program, cores);
}

// Addresses of the user's, for a plan in which a buffer lies apart from all others in use.
absl::Status MoveBuffers(const CompileRequest& request, IntegerUnit& unit, const CoreSpec& core,
                         Diagnostics& diagnostics) {
  if (!request.side_inputs.contains(kAddressesRole)) return absl::OkStatus();
  if (request.options.memory_plan != CompileOptions::MemoryPlan::kCompatible) {
    diagnostics.Add({.kind = DiagnosticKind::kConfigConflict,
                     .message = "ADDRESSES moves buffers that lie apart, and without MEMORY_PLAN: "
                                "compatible results lie over rows of their operands",
                     .file = request.side_inputs.at(kAddressesRole).name,
                     .fix = "add a line MEMORY_PLAN: compatible, and write the file again"});
    return diagnostics.ToStatus();
  }
  integer::Program& program = unit.program;
  RETURN_IF_ERROR(TakeAddresses(request, LiveRangesOf(program),
                                core.integer->buffer_alignment_bytes,
                                absl::MakeSpan(program.buffers), program.data_bytes, diagnostics));
  unit.memory.arena_bytes = program.data_bytes;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<CompiledUnit>> CompileForInteger(const CompileRequest& request,
                                                                const CoreSpec& core,
                                                                Graph imported, Stages& stages,
                                                                Diagnostics& diagnostics) {
  const CompileOptions& options = request.options;
  STEP(Graph graph, "passes", 0.25, IntegerGraph(request, std::move(imported), diagnostics));
  STEP(IntegerModel quantized, "quantize", 0.30, MakeIntegerModel(request, graph, diagnostics));
  // From here: a float graph, and beside it the integers of every value between layers.
  auto unit = std::make_unique<IntegerUnit>(core, std::move(quantized));
  unit->live = unit->quantized;
  if (!options.keep_dead) {
    STEP(unit->live, "dead channels", 0.65, DropDeadChannels(unit->quantized));
  }
  for (const std::string& line : unit->live.log) stages.Log(line);
  const IntegerModel& model = unit->live;
  STEP(unit->program, "lower", 0.70,
       LowerInteger(model.graph, model.plan, options.model_name, diagnostics));
  // Weights are cut by channels before they are coded, and commands when their buffers have places.
  const int64_t cores = std::min(options.cores.value_or(CoresOf(core)), CoresOf(core));
  const ManualRows manual = ManualRowsOf(options, model.plan);
  const CoreSharing sharing(core, cores, manual);
  if (cores > 1) {
    sharing.Choose(unit->program);
  } else if (options.code_weights) {
    CHECK_STEP("code weights", 0.73, CodeWeights(unit->program));
  }
  MarkStates(model.state_inputs, unit->program);
  STEP(unit->memory, "plan", 0.75, PlanBuffers(options, core, unit->program, diagnostics));
  RETURN_IF_ERROR(stages.End(MoveBuffers(request, *unit, core, diagnostics)));
  if (cores > 1) {
    CHECK_STEP("share cores", 0.77, ShareProgram(options, sharing, cores, *unit));
    SayHowCoresShare(options, manual, *unit, diagnostics);
  }
  // From here: addresses are final.
  CHECK_STEP("check plan", 0.80, CheckPlan(unit->program, cores));
  STEP(unit->model, "emit", 0.85,
       AssembleModel(unit->program, options.model_name, core, diagnostics));
  if (model.quantized_here) unit->opt_template = model.opt_template;
  unit->statistics = model.statistics;
  return unit;
}

}  // namespace npuc
