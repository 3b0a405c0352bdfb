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
#include "compiler_core/backends/addresses.h"
#include "compiler_core/backends/integer/integer_metrics.h"
#include "compiler_core/backends/integer/integer_model.h"
#include "compiler_core/backends/integer/layer_outputs.h"
#include "compiler_core/backends/integer/plan_buffers.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/integer/access.h"
#include "compiler_core/ir/integer/load.h"
#include "compiler_core/lowering/integer/code_weights.h"
#include "compiler_core/lowering/integer/lower_integer.h"
#include "compiler_core/memplan/plan.h"
#include "compiler_core/quant/params.h"
#include "compiler_core/report/json_parts.h"

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
         .fix = "in QUANT set preset: best, or activation_bits and weight_bits: 16"});
  }
}

// What the commands of one layer use.
struct LayerUse {
  CommandFigures figures;
  std::set<int32_t> data_buffers;
  std::map<int64_t, int64_t> weights;  // sizes by offset: what two commands read counts once

  void Add(const integer::Command& command, const integer::Program& program, const CoreSpec& core) {
    const CommandLoad one = integer::LoadOf(command.body, MacArrayOf(core));
    ++figures.commands;
    figures.load += one;
    figures.cycles += EstimateCycles(*core.cycles, one);
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
};

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
  WarnAboutQuality(data.metrics, request.options.model_name, diagnostics);
  LayerUse all;
  std::map<std::string, LayerUse> uses;
  for (const integer::Command& command : program.commands) {
    ++data.commands_by_kind[std::string(integer::NameOf(command.body))];
    all.Add(command, program, core);
    uses[command.layer].Add(command, program, core);
  }
  data.per_frame = all.figures;
  data.nodes = NodesOf(uses);
  NumberNodes(data);
  data.operators = OperatorsOf(data.nodes);
  data.weights = WeightsOf();
  data.memory_map = MemoryMapOf(program.buffers, LiveRangesOf(program));
  data.graph = std::move(live.graph);
  return data;
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
  if (options.code_weights) {
    CHECK_STEP("code weights", 0.73, CodeWeights(unit->program));
  }
  MarkStates(model.state_inputs, unit->program);
  STEP(unit->memory, "plan", 0.75, PlanBuffers(options, core, unit->program, diagnostics));
  RETURN_IF_ERROR(stages.End(MoveBuffers(request, *unit, core, diagnostics)));
  // From here: addresses are final.
  CHECK_STEP("check plan", 0.80, CheckMemoryPlan(unit->program));
  STEP(unit->model, "emit", 0.85,
       AssembleModel(unit->program, options.model_name, core, diagnostics));
  if (model.quantized_here) unit->opt_template = model.opt_template;
  unit->statistics = model.statistics;
  return unit;
}

}  // namespace npuc
