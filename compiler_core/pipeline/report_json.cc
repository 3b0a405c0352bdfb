#include "compiler_core/pipeline/report_json.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/ir/cmd/access.h"
#include "compiler_core/report/histogram.h"
#include "compiler_core/report/json_parts.h"
#include "nlohmann/json.hpp"

namespace npuc {
namespace {

using Json = nlohmann::ordered_json;

// Values of a weight that its histogram counts, evenly spaced ones: a picture needs no more.
constexpr int64_t kHistogramValues = 2048;
constexpr int kReportBins = 32;

// Lists that end at kMaxReportEntries, and what was left out.
class Sections {
 public:
  explicit Sections(Json& report) : report_(report) {}

  // entry(i) for each of `count` entries, as far as they are shown.
  template <typename Entry>
  void Add(const char* name, size_t count, const Entry& entry) {
    report_[name] = List(name, count, entry);
  }
  template <typename Entry>
  Json List(const char* name, size_t count, const Entry& entry) {
    Json list = Json::array();
    for (size_t i = 0; i < std::min(count, kMaxReportEntries); ++i) list.push_back(entry(i));
    if (count > kMaxReportEntries) report_["omitted"][name] = count - kMaxReportEntries;
    return list;
  }

 private:
  Json& report_;
};

Json SizesJson(const CompileFacts& facts) {
  const CompiledModel& model = facts.model;
  return Json{{"cmd_content", model.cmd_content.size()},
              {"weight_content", model.weight_content.size()},
              {"ops_content", model.ops_content.size()},
              {"data_content", model.data_bytes},
              {"data_liveness_bound", facts.memory.lower_bound_bytes},
              {"input", model.input_struct_bytes()},
              {"output", model.output_struct_bytes()},
              {"npu_size", model.npu_size()},
              {"total_size", model.total_size()}};
}

// The settings that differ from a config's defaults, and those that every config has.
Json ConfigJson(const CompileOptions& options) {
  Json config{{"CORENAME", options.core},
              {"NPU_UNIT", options.npu_unit},
              {"FRAMEWORK", FrameworkName(options.framework)},
              {"MODEL_FILE", Printable(options.model_name)},
              {"OUTPUT_FILE", Printable(options.output_file)}};
  for (const InputDecl& input : options.inputs) {
    config["INPUT_OPS"][Printable(input.name)] = input.shape;
  }
  const auto names = [&](const char* key, const std::vector<std::string>& values) {
    for (const std::string& value : values) config[key].push_back(Printable(value));
  };
  const auto flag = [&](const char* key, bool value) {
    if (value) config[key] = true;
  };
  names("OUTPUT_OPS", options.outputs);
  names("FP16_OUT_OPS", options.fp16_outputs);
  if (!options.input_ncx_to_nxc.empty()) config["INPUT_NCX_TO_NXC"] = options.input_ncx_to_nxc;
  flag("FUSE_BN", options.fuse_bn);
  flag("FUSE_BIASADD", options.fuse_biasadd);
  flag("COMPRESS", options.compress);
  flag("CONV2D_COMPRESS", options.conv2d_compress);
  names("EXCLUDE_COMPRESS_OPS", options.exclude_compress_ops);
  names("EXCLUDE_CONV2D_COMPRESS_OPS", options.exclude_conv2d_compress_ops);
  for (const auto& [name, range] : options.weight_min_max) {
    config["WEIGHT_MIN_MAX"][Printable(name)] = {range.first, range.second};
  }
  if (options.weight_cache_size_bytes) {
    config["WEIGHT_CACHE_SIZE"] = *options.weight_cache_size_bytes;
  }
  if (options.memory_plan == CompileOptions::MemoryPlan::kInPlace) {
    config["MEMORY_PLAN"] = "in_place";
  }
  if (options.layer_error_frames > 0) config["LAYER_ERROR_FRAMES"] = options.layer_error_frames;
  return config;
}

Json WeightCacheJson(const CompileFacts& facts, int64_t size_bytes) {
  const WeightCacheUse use = PlanWeightCache(facts.program, facts.uses, size_bytes);
  Json cached = Json::array();
  for (const std::string& node : use.nodes) cached.push_back(Printable(node));
  return Json{{"size_bytes", size_bytes},
              {"used_bytes", use.bytes},
              {"nodes", std::move(cached)},
              {"verified_on_silicon", false}};
}

void AddError(const LayerError& error, Json& entry) {
  entry["max_abs_error"] = error.max_abs;
  entry["rms_error"] = error.rms;
  entry["max_abs_float"] = error.reference_max;
  entry["similarity"] = error.similarity;
  if (error.not_finite > 0) entry["not_finite"] = error.not_finite;
}

void AddNodes(const CompileFacts& facts, Json& report, Sections& sections) {
  std::map<std::string, const Node*> roots;  // of the nodes of one source, the last
  for (const Node& node : facts.graph.nodes()) roots[node.source.name] = &node;
  const absl::Span<const NodeUse> uses = facts.uses;
  CommandLoad load;
  int64_t cycles = 0;
  for (const NodeUse& use : uses) {
    load += use.load;
    cycles += use.cycles;
  }
  report["per_frame"] = Json{{"commands", facts.program.commands.size()}};
  report["per_frame"].update(LoadJson(load, cycles));
  sections.Add("nodes", uses.size(), [&](size_t i) {
    const NodeUse& use = uses[i];
    Json entry{{"node", Printable(use.name)}};
    const LayerError* error = nullptr;
    if (const auto it = roots.find(use.name); it != roots.end()) {
      entry["operator"] = it->second->op;
      const size_t at = static_cast<size_t>(it->second - facts.graph.nodes().data());
      if (at < facts.layer_errors.size() && facts.layer_errors[at].has_value()) {
        error = &*facts.layer_errors[at];
      }
      if (!it->second->outputs.empty()) {
        entry["shape"] = facts.graph.type(it->second->outputs[0]).shape;
      }
    }
    entry["commands"] = use.commands;
    entry.update(LoadJson(use.load, use.cycles));
    entry["data_bytes"] = BytesOf(facts.program, use.data_buffers);
    entry["weight_bytes"] = BytesOf(facts.program, use.weight_buffers);
    if (error != nullptr) AddError(*error, entry);
    return entry;
  });
}

// The operators without the constants; `from` holds positions in this list.
void AddGraph(const Graph& graph, Sections& sections) {
  std::vector<const Node*> nodes;
  std::vector<int64_t> position(graph.value_count(), -1);
  for (const Node& node : graph.nodes()) {
    if (node.op == "Const") continue;
    for (const ValueId output : node.outputs) position[output.value()] = nodes.size();
    nodes.push_back(&node);
  }
  sections.Add("graph", nodes.size(), [&](size_t i) {
    const Node& node = *nodes[i];
    Json from = Json::array();
    for (const ValueId input : node.inputs) {
      if (position[input.value()] >= 0) from.push_back(position[input.value()]);
    }
    Json entry{{"name", Printable(node.source.name)}, {"operator", node.op}, {"from", from}};
    if (!node.outputs.empty()) entry["shape"] = graph.type(node.outputs[0]).shape;
    return entry;
  });
}

// Which bytes of data_content each buffer has, from its first command to its last.
void AddMemoryMap(const Program& program, Json& report, Sections& sections) {
  const std::vector<LiveRange> ranges = LiveRangesOf(program);
  std::vector<size_t> shown;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    if (program.buffers[i].slot == Slot::kData && !ranges[i].empty()) shown.push_back(i);
  }
  // Where not all are shown, the largest say most.
  std::stable_sort(shown.begin(), shown.end(), [&](size_t a, size_t b) {
    return program.buffers[a].size_bytes > program.buffers[b].size_bytes;
  });
  Json buffers = sections.List("memory_map", shown.size(), [&](size_t i) {
    const Buffer& buffer = program.buffers[shown[i]];
    return Json{{"node", Printable(buffer.name)},
                {"offset", buffer.offset_bytes},
                {"bytes", buffer.size_bytes},
                {"first", ranges[shown[i]].first},
                {"last", ranges[shown[i]].last}};
  });
  report["memory_map"] =
      Json{{"commands", program.commands.size()}, {"buffers", std::move(buffers)}};
}

Json HistogramJson(const Tensor& tensor) {
  const int64_t count = tensor.element_count();
  const int64_t step = std::max<int64_t>(1, (count + kHistogramValues - 1) / kHistogramValues);
  std::vector<float> values;
  for (int64_t i = 0; i < count; i += step) values.push_back(static_cast<float>(tensor.at(i)));
  const Histogram histogram = MakeHistogram(values, kReportBins);
  return Json{{"low", histogram.low},
              {"high", histogram.high},
              {"values", values.size()},
              {"counts", histogram.counts}};
}

void AddWeights(const CompileFacts& facts, Sections& sections) {
  sections.Add("weights", facts.weights.size(), [&](size_t i) {
    const WeightRecord& weight = facts.weights[i];
    Json entry{{"name", Printable(weight.name)},
               {"used_by", Printable(weight.used_by)},
               {"shape", weight.shape},
               {"bits", weight.compressed ? 8 : 16},
               {"min", weight.min},
               {"max", weight.max},
               {"step", weight.step},
               {"sparsity", weight.sparsity},
               {"max_abs_error", weight.max_abs_error},
               {"rms_error", weight.rms_error},
               {"bytes", weight.mask_bytes + weight.code_bytes}};
    const Tensor* tensor = facts.graph.ConstantOf(weight.value);
    if (tensor != nullptr) entry["histogram"] = HistogramJson(*tensor);
    return entry;
  });
}

// What the graph still transposes, and what commands transpose on behalf of other operators.
void AddTransposes(const CompileFacts& facts, Sections& sections) {
  const std::vector<TransposeRecord> records = TransposesOf(facts);
  sections.Add("transposes", records.size(), [&](size_t i) {
    const TransposeRecord& record = records[i];
    return Json{{"node", Printable(record.node)},
                {"shape", record.shape},
                {"permutation", record.perm},
                {"reason", record.reason}};
  });
}

}  // namespace

std::string ReportJson(const CompileFacts& facts) {
  const CompiledModel& model = facts.model;
  Json report;
  report["compiler"] = model.version;
  report["core"] = model.core;
  report["npu_unit"] = model.npu_unit;
  report["model"] = Printable(facts.graph.name());
  report["model_md5"] = model.model_md5;
  report["config"] = ConfigJson(facts.options);
  report["sizes_bytes"] = SizesJson(facts);
  report["memory_plan"] = Json{{"arena_bytes", facts.memory.arena_bytes},
                               {"liveness_bound_bytes", facts.memory.lower_bound_bytes},
                               {"method", NameOf(facts.memory.method)},
                               {"search_nodes", facts.memory.search_nodes}};
  report["inputs"] = PortsJson(model.inputs, model.inputs);
  report["outputs"] = PortsJson(model.inputs, model.outputs);
  if (facts.cycles != nullptr) report["cycle_model"] = CycleModelJson(*facts.cycles);
  std::map<std::string, int64_t> kinds;
  for (const Command& command : facts.program.commands) ++kinds[std::string(NameOf(command))];
  report["commands"] = kinds;
  Sections sections(report);
  AddNodes(facts, report, sections);
  AddWeights(facts, sections);
  AddTransposes(facts, sections);
  const int64_t cache_bytes = facts.options.weight_cache_size_bytes.value_or(0);
  if (cache_bytes > 0) report["weight_cache"] = WeightCacheJson(facts, cache_bytes);
  AddGraph(facts.graph, sections);
  AddMemoryMap(facts.program, report, sections);
  Json notes = Json::array();
  for (const Diagnostic& diagnostic : facts.diagnostics.list()) {
    notes.push_back(Json{{"id", IdOf(diagnostic.kind)}, {"text", diagnostic.ToString()}});
  }
  report["diagnostics"] = std::move(notes);
  return report.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace npuc
