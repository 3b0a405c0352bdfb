#include "compiler_core/pipeline/report_json.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/config/config_options.h"
#include "compiler_core/ir/cmd/access.h"
#include "compiler_core/pipeline/report_parts.h"
#include "compiler_core/report/json_parts.h"
#include "compiler_core/report/json_writer.h"
#include "nlohmann/json.hpp"

namespace npuc {
namespace {

using Json = nlohmann::ordered_json;

// The lists that grow with the model, in the report's order. Each ends at kMaxReportEntries.
struct Lists {
  size_t nodes = 0;
  size_t weights = 0;
  std::vector<TransposeRecord> transposes;
  std::vector<const Node*> graph;  // without constants
  std::vector<LiveRange> ranges;   // by buffer
  std::vector<size_t> buffers;     // of data_content, in use
};

Json WeightCacheJson(const CompileFacts& facts, int64_t size_bytes) {
  const WeightCacheUse use = PlanWeightCache(facts.program, facts.uses, size_bytes);
  Json cached = Json::array();
  for (const std::string& node : use.nodes) cached.push_back(Printable(node));
  return Json{{"size_bytes", size_bytes},
              {"used_bytes", use.bytes},
              {"nodes", std::move(cached)},
              {"verified_on_silicon", false}};
}

void WriteError(const LayerError& error, JsonWriter& out) {
  out.Members("max_abs_error", error.max_abs, "rms_error", error.rms, "max_abs_float",
              error.reference_max, "similarity", error.similarity);
  if (error.not_finite > 0) out.Member("not_finite", error.not_finite);
}

void WriteNodes(const CompileFacts& facts, JsonWriter& out, ListWriter& lists) {
  // Of the nodes of one source, the last.
  absl::flat_hash_map<absl::string_view, const Node*> roots;
  for (const Node& node : facts.graph.nodes()) roots[node.source.name] = &node;
  const absl::Span<const NodeUse> uses = facts.uses;
  CommandLoad load;
  int64_t cycles = 0;
  for (const NodeUse& use : uses) {
    load += use.load;
    cycles += use.cycles;
  }
  out.Key("per_frame");
  out.BeginObject();
  out.Member("commands", facts.program.commands.size());
  WriteLoad(load, cycles, out);
  out.EndObject();
  lists.Write("nodes", uses.size(), [&](size_t i) {
    const NodeUse& use = uses[i];
    out.Member("node", Printable(use.name));
    const LayerError* error = nullptr;
    if (const auto it = roots.find(use.name); it != roots.end()) {
      out.Member("operator", NameOf(it->second->op));
      const size_t at = static_cast<size_t>(it->second - facts.graph.nodes().data());
      if (at < facts.layer_errors.size() && facts.layer_errors[at].has_value()) {
        error = &*facts.layer_errors[at];
      }
      if (!it->second->outputs.empty()) {
        out.Member("shape", facts.graph.type(it->second->outputs[0]).shape);
      }
    }
    out.Member("commands", use.commands);
    WriteLoad(use.load, use.cycles, out);
    out.Members("data_bytes", BytesOf(facts.program, use.data_buffers), "weight_bytes",
                BytesOf(facts.program, use.weight_buffers));
    if (error != nullptr) WriteError(*error, out);
  });
}

void WriteWeights(const CompileFacts& facts, JsonWriter& out, ListWriter& lists) {
  lists.Write("weights", facts.weights.size(), [&](size_t i) {
    const WeightRecord& weight = facts.weights[i];
    out.Members("name", Printable(weight.name), "used_by", Printable(weight.used_by), "shape",
                weight.shape, "bits", weight.compressed ? 8 : 16, "min", weight.min, "max",
                weight.max, "step", weight.step, "sparsity", weight.sparsity, "max_abs_error",
                weight.max_abs_error, "rms_error", weight.rms_error, "bytes",
                weight.mask_bytes + weight.code_bytes);
    if (facts.graph.ConstantOf(weight.value) == nullptr) return;
    out.Key("histogram");
    WriteHistogram(facts.histograms[i], out);
  });
}

// What the graph still transposes, and what commands transpose on behalf of other operators.
void WriteTransposes(absl::Span<const TransposeRecord> records, JsonWriter& out,
                     ListWriter& lists) {
  lists.Write("transposes", records.size(), [&](size_t i) {
    const TransposeRecord& record = records[i];
    out.Members("node", Printable(record.node), "shape", record.shape, "permutation", record.perm,
                "reason", record.reason);
  });
}

Lists ListsOf(const CompileFacts& facts) {
  Lists lists;
  lists.nodes = facts.uses.size();
  lists.weights = facts.weights.size();
  lists.transposes = TransposesOf(facts);
  lists.graph = NodesOfReport(facts.graph);
  lists.ranges = LiveRangesOf(facts.program);
  lists.buffers = DataBuffers(facts.program.buffers, lists.ranges);
  return lists;
}

// What does not grow with the model.
void WriteHead(const CompileFacts& facts, JsonWriter& out) {
  const CompiledModel& model = facts.model;
  out.Members("compiler", model.version, "core", model.core, "npu_unit", model.npu_unit, "model",
              Printable(facts.graph.name()), "model_md5", model.model_md5, "config",
              ConfigJson(facts.options), "sizes_bytes", SizesJson(model, facts.memory));
  out.Member("memory_plan", MemoryPlanJson(facts.memory));
  out.Members("inputs", PortsJson(model.inputs, model.inputs), "outputs",
              PortsJson(model.inputs, model.outputs));
  if (facts.cycles != nullptr) out.Member("cycle_model", CycleModelJson(*facts.cycles));
  std::map<absl::string_view, int64_t> kinds;
  for (const Command& command : facts.program.commands) ++kinds[NameOf(command)];
  out.Key("commands");
  out.BeginObject();
  for (const auto& [kind, count] : kinds) out.Member(kind, count);
  out.EndObject();
}

}  // namespace

std::vector<Histogram> ReportHistograms(const Graph& graph,
                                        absl::Span<const WeightRecord> weights) {
  std::vector<Histogram> histograms(std::min(weights.size(), kMaxReportEntries));
  for (size_t i = 0; i < histograms.size(); ++i) {
    const Tensor* tensor = graph.ConstantOf(weights[i].value);
    if (tensor != nullptr) histograms[i] = ReportHistogram(*tensor);
  }
  return histograms;
}

std::string ReportJson(const CompileFacts& facts) {
  const Lists found = ListsOf(facts);
  JsonWriter out;
  ListWriter lists(out, {{"nodes", found.nodes},
                         {"weights", found.weights},
                         {"transposes", found.transposes.size()},
                         {"graph", found.graph.size()},
                         {"memory_map", found.buffers.size()}});
  out.BeginObject();
  WriteHead(facts, out);
  WriteNodes(facts, out, lists);
  WriteWeights(facts, out, lists);
  WriteTransposes(found.transposes, out, lists);
  const int64_t cache_bytes = facts.options.weight_cache_size_bytes.value_or(0);
  if (cache_bytes > 0) out.Member("weight_cache", WeightCacheJson(facts, cache_bytes));
  WriteGraph(facts.graph, found.graph, out, lists);
  WriteMemoryMap(facts.program.buffers, facts.program.commands.size(), found.ranges, found.buffers,
                 out, lists);
  WriteDiagnostics(facts.diagnostics, out);
  out.EndObject();
  return out.Take() + "\n";
}

}  // namespace npuc
