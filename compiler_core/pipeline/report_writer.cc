#include "compiler_core/pipeline/report_writer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "compiler_core/config/config_options.h"
#include "compiler_core/pipeline/summary.h"
#include "compiler_core/report/json_parts.h"
#include "compiler_core/report/json_writer.h"
#include "compiler_core/target/mac_array.h"

namespace npuc {
namespace {

// Writes lists, and `omitted` before the first one that is too long.
class ListWriter {
 public:
  // `lists`: the name and length of each, in the report's order.
  ListWriter(JsonWriter& out, std::vector<std::pair<const char*, size_t>> lists)
      : out_(out), lists_(std::move(lists)) {}

  void Announce(size_t count) {
    if (count <= kMaxReportEntries || is_announced_) return;
    is_announced_ = true;
    out_.Key("omitted");
    out_.BeginObject();
    for (const auto& [name, size] : lists_) {
      if (size > kMaxReportEntries) out_.Member(name, size - kMaxReportEntries);
    }
    out_.EndObject();
  }
  // entry(item) writes the members of one entry.
  template <typename Item, typename Entry>
  void Write(const char* name, const std::vector<Item>& items, const Entry& entry) {
    Announce(items.size());
    out_.Key(name);
    out_.BeginArray();
    for (size_t i = 0; i < std::min(items.size(), kMaxReportEntries); ++i) {
      out_.BeginObject();
      entry(items[i]);
      out_.EndObject();
    }
    out_.EndArray();
  }

 private:
  JsonWriter& out_;
  std::vector<std::pair<const char*, size_t>> lists_;
  bool is_announced_ = false;
};

void WriteSizes(const CompiledModel& model, const MemoryPlanResult& memory, JsonWriter& out) {
  out.Key("sizes_bytes");
  out.BeginObject();
  out.Members("cmd_content", model.cmd_content.size(), "weight_content",
              model.weight_content.size(), "ops_content", model.ops_content.size(), "data_content",
              model.data_bytes, "data_liveness_bound", memory.lower_bound_bytes, "input",
              model.own_input_bytes(), "output", model.own_output_bytes(), "npu_size",
              model.npu_size(), "total_size", model.total_size());
  out.EndObject();
}

void WriteStripes(const StripeReport& stripes, JsonWriter& out) {
  out.Key("stripes");
  out.BeginObject();
  out.Members("arena_before_bytes", stripes.arena_before_bytes, "cycles_before",
              stripes.cycles_before, "cycles", stripes.cycles, "macs_before", stripes.macs_before,
              "macs", stripes.macs, "search_nodes", stripes.nodes, "search_ended",
              stripes.budget_ended);
  out.Key("chains");
  out.BeginArray();
  for (const StripeReport::Chain& chain : stripes.chains) {
    out.BeginObject();
    out.Members("first", Printable(chain.first_layer), "last", Printable(chain.last_layer),
                "layers", chain.commands, "stripes", chain.stripes, "commands", chain.pieces,
                "copies", chain.copies);
    out.EndObject();
  }
  out.EndArray();
  out.EndObject();
}

void WriteMemoryPlan(const MemoryPlanResult& memory, JsonWriter& out) {
  out.Key("memory_plan");
  out.BeginObject();
  out.Members("arena_bytes", memory.arena_bytes, "liveness_bound_bytes", memory.lower_bound_bytes,
              "method", NameOf(memory.method), "search_nodes", memory.search_nodes, "order",
              memory.is_reordered ? "for less memory" : "as in the model");
  if (memory.order_bound_bytes > 0) out.Member("order_bound_bytes", memory.order_bound_bytes);
  if (memory.stripes.has_value()) WriteStripes(*memory.stripes, out);
  out.EndObject();
}

// What does not grow with the model.
void WriteHead(const CompiledUnit& unit, const ReportData& data, const CoreSpec& core,
               const CompileOptions& options, JsonWriter& out) {
  const CompiledModel& model = unit.model;
  out.Members("compiler", model.version, "core", model.core);
  if (model.command_set == CommandSet::kInteger) {
    out.Member("command_set", "integer");
  } else {
    out.Member("npu_unit", model.npu_unit);
  }
  out.Members("model", Printable(options.model_name), "model_md5", model.model_md5);
  out.Member("config", ConfigJson(options));
  WriteSizes(model, unit.memory, out);
  if (const int64_t sram_bytes = SramLimitOf(core); sram_bytes > 0) {
    out.Key("limits");
    out.BeginObject();
    out.Member("sram_bytes", sram_bytes);
    out.EndObject();
  }
  WriteMemoryPlan(unit.memory, out);
  out.Members("inputs", PortsJson(model.inputs, model.inputs), "outputs",
              PortsJson(model.inputs, model.outputs));
  if (core.cycles != nullptr) out.Member("cycle_model", CycleModelJson(core, model.npu_unit));
  out.Key("commands");
  out.BeginObject();
  for (const auto& [kind, count] : data.commands_by_kind) out.Member(kind, count);
  out.EndObject();
}

void WriteMetrics(const ModelMetrics& metrics, JsonWriter& out) {
  if (metrics.figures.empty()) return;
  out.Key("metrics");
  out.BeginObject();
  out.Members("source", metrics.source, "by", metrics.by, "items", metrics.items);
  out.Key("figures");
  out.BeginArray();
  for (const MetricFigure& figure : metrics.figures) {
    out.BeginObject();
    out.Members("metric", figure.metric, "output", Printable(figure.output), "float",
                figure.of_float, "quantized", figure.quantized);
    out.EndObject();
  }
  out.EndArray();
  out.EndObject();
}

void WriteUse(const CommandFigures& use, JsonWriter& out) {
  out.Member("commands", use.commands);
  WriteLoad(use.load, use.cycles, out);
}

void WriteCores(const CoreFigures& cores, int64_t cycles, JsonWriter& out) {
  out.Members("cores_used", cores.used, "phases", cores.phases);
  if (cores.cycles_on_one_core > 0) out.Member("cycles_on_one_core", cores.cycles_on_one_core);
  out.Member("cores", CoresJson(cores.busy_cycles, cycles));
}

void WriteResults(const std::vector<QuantParams>& results, JsonWriter& out) {
  out.Key("results");
  out.BeginArray();
  for (const QuantParams& params : results) {
    out.BeginObject();
    out.Members("type", std::string(NameOf(params.dtype)), "bits", BitsOf(params), "qmin",
                params.qmin, "qmax", params.qmax);
    out.Key("scale");
    out.BeginArray();
    for (const double scale : params.scale) out.Value(scale);
    out.EndArray();
    out.Member("zero_point", params.zero_point);
    out.EndObject();
  }
  out.EndArray();
}

void WriteError(const LayerError& error, JsonWriter& out) {
  out.Members("max_abs_error", error.max_abs, "rms_error", error.rms, "max_abs_float",
              error.reference_max, "similarity", error.similarity);
  if (error.not_finite > 0) out.Member("not_finite", error.not_finite);
}

void WriteNode(const NodeFigures& node, JsonWriter& out) {
  out.Member("node", Printable(node.name));
  if (!node.op.empty()) out.Member("operator", node.op);
  if (node.layer_type.has_value()) out.Member("layer_type", Printable(*node.layer_type));
  if (node.shape.has_value()) out.Member("shape", *node.shape);
  WriteUse(node.use, out);
  if (node.sharing.has_value()) {
    out.Members("shared_by", node.sharing->by.empty() ? "one core" : node.sharing->by, "parts",
                node.sharing->parts, "cores",
                CoresJson(node.sharing->busy_cycles, node.use.cycles));
  }
  out.Members("data_bytes", node.data_bytes, "weight_bytes", node.weight_bytes);
  if (node.results.has_value()) WriteResults(*node.results, out);
  if (node.error.has_value()) WriteError(*node.error, out);
  if (node.likeness.has_value()) {
    out.Members("rms_error", node.likeness->rms_error, "similarity", node.likeness->similarity);
  }
}

// The bins' edges, the least and the greatest value, and the bins.
void WriteHistogram(const Histogram& histogram, JsonWriter& out) {
  out.Key("histogram");
  out.BeginObject();
  out.Members("low", histogram.low, "high", histogram.high, "min", histogram.min, "max",
              histogram.max, "values", histogram.total + histogram.not_finite, "counts",
              histogram.counts);
  out.EndObject();
}

void WriteWeight(const WeightFigures& weight, JsonWriter& out) {
  out.Members("name", Printable(weight.name), "used_by", Printable(weight.used_by), "shape",
              weight.shape, "bits", weight.bits, "min", weight.min, "max", weight.max, "step",
              weight.step, "sparsity", weight.sparsity, "max_abs_error", weight.max_abs_error,
              "rms_error", weight.rms_error, "bytes", weight.bytes);
  if (weight.histogram.has_value()) WriteHistogram(*weight.histogram, out);
}

void WriteWeightCache(const WeightCacheUse& cache, JsonWriter& out) {
  out.Key("weight_cache");
  out.BeginObject();
  out.Members("size_bytes", cache.size_bytes, "used_bytes", cache.used_bytes);
  out.Key("nodes");
  out.BeginArray();
  for (const std::string& node : cache.nodes) out.Value(Printable(node));
  out.EndArray();
  out.Member("verified_on_silicon", false);
  out.EndObject();
}

// The nodes that the report lists: all but constants.
std::vector<const Node*> NodesOf(const Graph& graph) {
  std::vector<const Node*> nodes;
  for (const Node& node : graph.nodes()) {
    if (node.op != Op::kConst) nodes.push_back(&node);
  }
  return nodes;
}

// A longer text is cut; a longer list is reported by its length.
constexpr size_t kMaxAttributeBytes = 200;
constexpr size_t kMaxAttributeItems = 32;

// Makes an attribute readable: "same", "[1,2]", a tensor's type.
struct AttributeText {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return absl::StrCat(value); }
  std::string operator()(double value) const { return absl::StrCat(value); }
  std::string operator()(const std::string& value) const {
    return Printable(value, kMaxAttributeBytes);
  }
  std::string operator()(const Tensor& value) const { return TypeToString(value.type()); }
  template <typename Item>
  std::string operator()(const std::vector<Item>& list) const {
    if (list.size() > kMaxAttributeItems) return absl::StrCat(list.size(), " values");
    return absl::StrCat("[", absl::StrJoin(list, ","), "]");
  }
};

// `from` holds positions in the list.
void WriteGraph(const Graph& graph, const std::vector<const Node*>& nodes, JsonWriter& out,
                ListWriter& lists) {
  std::vector<int64_t> position(graph.value_count(), -1);
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const ValueId output : nodes[i]->outputs) {
      position[output.value()] = static_cast<int64_t>(i);
    }
  }
  lists.Write("graph", nodes, [&](const Node* node) {
    out.Members("name", Printable(node->source.name), "operator", NameOf(node->op));
    out.Key("from");
    out.BeginArray();
    for (const ValueId input : node->inputs) {
      if (position[input.value()] >= 0) out.Value(position[input.value()]);
    }
    out.EndArray();
    if (!node->outputs.empty()) out.Member("shape", graph.type(node->outputs[0]).shape);
    if (node->attrs.empty()) return;
    out.Key("attributes");
    out.BeginObject();
    for (const auto& [name, value] : node->attrs) {
      out.Member(name, std::visit(AttributeText(), value));
    }
    out.EndObject();
  });
}

void WriteMemoryMap(const ReportData& data, JsonWriter& out, ListWriter& lists) {
  lists.Announce(data.memory_map.size());
  out.Key("memory_map");
  out.BeginObject();
  out.Member("commands", data.per_frame.commands);
  lists.Write("buffers", data.memory_map, [&](const BufferFigures& buffer) {
    out.Members("node", Printable(buffer.node), "offset", buffer.offset_bytes, "bytes",
                buffer.size_bytes, "first", buffer.range.first, "last", buffer.range.last);
  });
  out.EndObject();
}

void WriteDiagnostics(const Diagnostics& diagnostics, JsonWriter& out) {
  out.Key("diagnostics");
  out.BeginArray();
  for (const Diagnostic& diagnostic : diagnostics.list()) {
    out.BeginObject();
    out.Members("id", IdOf(diagnostic.kind), "text", diagnostic.ToString());
    out.EndObject();
  }
  out.EndArray();
}

}  // namespace

std::string ReportJson(const CompiledUnit& unit, const ReportData& data, const CoreSpec& core,
                       const CompileOptions& options, const Diagnostics& diagnostics) {
  const std::vector<const Node*> nodes = NodesOf(data.graph);
  JsonWriter out;
  ListWriter lists(out, {{"nodes", data.nodes.size()},
                         {"weights", data.weights.size()},
                         {"transposes", data.transposes.has_value() ? data.transposes->size() : 0},
                         {"graph", nodes.size()},
                         {"memory_map", data.memory_map.size()}});
  out.BeginObject();
  WriteHead(unit, data, core, options, out);
  WriteMetrics(data.metrics, out);
  out.Key("per_frame");
  out.BeginObject();
  WriteUse(data.per_frame, out);
  if (MacArrayOf(core) != nullptr) {
    out.Member("utilisation", UtilisationOf(core, data.per_frame.load, data.per_frame.cycles));
  }
  if (data.cores.has_value()) WriteCores(*data.cores, data.per_frame.cycles, out);
  out.EndObject();
  lists.Write("nodes", data.nodes, [&](const NodeFigures& node) { WriteNode(node, out); });
  lists.Write("weights", data.weights,
              [&](const WeightFigures& weight) { WriteWeight(weight, out); });
  if (data.transposes.has_value()) {
    lists.Write("transposes", *data.transposes, [&](const TransposeRecord& record) {
      out.Members("node", Printable(record.node), "shape", record.shape, "permutation", record.perm,
                  "reason", record.reason);
    });
  }
  if (data.weight_cache.has_value()) WriteWeightCache(*data.weight_cache, out);
  WriteGraph(data.graph, nodes, out, lists);
  WriteMemoryMap(data, out, lists);
  WriteDiagnostics(diagnostics, out);
  out.EndObject();
  return out.Take() + "\n";
}

}  // namespace npuc
