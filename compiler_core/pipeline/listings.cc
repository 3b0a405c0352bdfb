#include "compiler_core/pipeline/listings.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler_core/ir/cmd/access.h"
#include "compiler_core/ir/cmd/raw_forms.h"
#include "compiler_core/passes/remaining_transposes.h"
#include "nlohmann/json.hpp"

namespace npuc {
namespace {

// What the commands of one source node use.
struct NodeUse {
  explicit NodeUse(std::string node) : name(std::move(node)) {}
  std::string name;
  int64_t commands = 0;
  int64_t work = 0;  // element operations and multiply-adds
  std::set<int32_t> data_buffers;
  std::set<int32_t> weight_buffers;
};

// In order of first command.
std::vector<NodeUse> UseByNode(const Program& program) {
  std::vector<NodeUse> uses;
  std::map<std::string, size_t> index;
  for (const Command& command : program.commands) {
    const auto [it, inserted] = index.try_emplace(command.node, uses.size());
    if (inserted) uses.emplace_back(command.node);
    NodeUse& use = uses[it->second];
    ++use.commands;
    use.work += WorkOf(command);
    for (const Access& access : AccessesOf(command)) {
      const int32_t id = access.operand.buffer.value();
      if (program.buffers[id].slot == Slot::kData) use.data_buffers.insert(id);
      if (program.buffers[id].slot == Slot::kWeight) use.weight_buffers.insert(id);
    }
  }
  return uses;
}

int64_t BytesOf(const Program& program, const std::set<int32_t>& buffers) {
  int64_t bytes = 0;
  for (const int32_t id : buffers) bytes += program.buffers[id].size_bytes;
  return bytes;
}

std::string ShapeText(const PortTensor& port) { return TypeToString({port.dtype, port.shape}); }

}  // namespace

WeightCacheUse PlanWeightCache(const Program& program, int64_t size_bytes) {
  WeightCacheUse result;
  std::set<int32_t> cached;
  for (const NodeUse& use : UseByNode(program)) {
    if (use.weight_buffers.empty()) continue;
    std::set<int32_t> added;
    std::set_difference(use.weight_buffers.begin(), use.weight_buffers.end(), cached.begin(),
                        cached.end(), std::inserter(added, added.end()));
    const int64_t bytes = BytesOf(program, added);
    if (result.bytes + bytes > size_bytes) continue;
    result.bytes += bytes;
    result.nodes.push_back(use.name);
    cached.insert(added.begin(), added.end());
  }
  return result;
}

std::string ListOps(const CompileFacts& facts) {
  std::map<std::string, int64_t> commands;
  for (const Command& command : facts.program.commands) ++commands[command.node];
  std::string out =
      absl::StrFormat("%-40s %-18s %-20s %s\n", "node", "operator", "output", "commands");
  for (const Node& node : facts.graph.nodes()) {
    if (node.op == "Const") continue;
    const std::string type =
        node.outputs.empty() ? "" : ShapeToString(facts.graph.type(node.outputs[0]).shape);
    const auto it = commands.find(node.source.name);
    absl::StrAppendFormat(&out, "%-40s %-18s %-20s %d\n", Printable(node.source.name), node.op,
                          type, it == commands.end() ? 0 : it->second);
  }
  return out;
}

std::string ListMemory(const CompileFacts& facts) {
  std::string out =
      absl::StrFormat("%-40s %10s %10s %10s\n", "node", "data", "weights", "commands");
  for (const NodeUse& use : UseByNode(facts.program)) {
    absl::StrAppendFormat(&out, "%-40s %10d %10d %10d\n", Printable(use.name),
                          BytesOf(facts.program, use.data_buffers),
                          BytesOf(facts.program, use.weight_buffers), use.commands);
  }
  const CompiledModel& model = facts.model;
  absl::StrAppendFormat(&out,
                        "cmd_content %d, weight_content %d, ops_content %d, data_content %d bytes "
                        "(liveness bound %d, %s); npu_size %d, total_size %d\n",
                        model.cmd_content.size(), model.weight_content.size(),
                        model.ops_content.size(), model.data_bytes, facts.memory.lower_bound_bytes,
                        NameOf(facts.memory.method), model.npu_size(), model.total_size());
  return out;
}

std::string ListWeights(const CompileFacts& facts) {
  std::string out =
      absl::StrFormat("%-40s %-14s %5s %11s %11s %11s %9s %11s %9s\n", "weight", "shape", "bits",
                      "min", "max", "step", "sparsity", "max error", "bytes");
  for (const WeightRecord& weight : facts.weights) {
    absl::StrAppendFormat(&out, "%-40s %-14s %5d %11.5g %11.5g %11.5g %8.2f%% %11.5g %9d\n",
                          Printable(weight.name), ShapeToString(weight.shape),
                          weight.compressed ? 8 : 16, weight.min, weight.max, weight.step,
                          100 * weight.sparsity, weight.max_abs_error,
                          weight.mask_bytes + weight.code_bytes);
  }
  return out;
}

namespace {

nlohmann::ordered_json WeightCacheJson(const CompileFacts& facts) {
  using Json = nlohmann::ordered_json;
  const WeightCacheUse use = PlanWeightCache(facts.program, facts.weight_cache_bytes);
  Json cached = Json::array();
  for (const std::string& node : use.nodes) cached.push_back(Printable(node));
  return Json{{"size_bytes", facts.weight_cache_bytes},
              {"used_bytes", use.bytes},
              {"nodes", std::move(cached)},
              {"verified_on_silicon", false}};
}

}  // namespace

namespace {

// What the graph still transposes, and what commands transpose on behalf of other operators.
nlohmann::ordered_json TransposesJson(const CompileFacts& facts) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const TransposeRecord& record : TransposesOf(facts)) {
    list.push_back(Json{{"node", Printable(record.node)},
                        {"shape", record.shape},
                        {"permutation", record.perm},
                        {"reason", record.reason}});
  }
  return list;
}

nlohmann::ordered_json DiagnosticsJson(const Diagnostics& diagnostics) {
  using Json = nlohmann::ordered_json;
  Json notes = Json::array();
  for (const Diagnostic& diagnostic : diagnostics.list()) {
    notes.push_back(Json{{"id", IdOf(diagnostic.kind)}, {"text", diagnostic.ToString()}});
  }
  return notes;
}

}  // namespace

std::vector<TransposeRecord> TransposesOf(const CompileFacts& facts) {
  std::vector<TransposeRecord> records;
  std::map<std::string, std::string> operators;  // of the nodes that are no transposes
  std::set<std::string> told;
  for (RemainingTranspose& remaining : RemainingTransposes(facts.graph)) {
    told.insert(remaining.node);
    records.push_back({std::move(remaining.node), std::move(remaining.shape),
                       std::move(remaining.perm), std::move(remaining.reason)});
  }
  for (const Node& node : facts.graph.nodes()) {
    if (!told.contains(node.source.name)) operators[node.source.name] = node.op;
  }
  for (const Command& command : facts.program.commands) {
    const auto* raw = std::get_if<RawCommand>(&command.body);
    const auto it = operators.find(command.node);
    if (raw == nullptr || raw->opcode != 0x43 || it == operators.end()) continue;
    const absl::StatusOr<TransposeForm> form = ParseTranspose(*raw);
    if (!form.ok()) continue;
    records.push_back({command.node,
                       {form->rows, form->columns},
                       {1, 0},
                       absl::StrCat("the unit that computes ", it->second,
                                    " wants its data in another order than tensors have")});
  }
  return records;
}

std::string ReportJson(const CompileFacts& facts) {
  using Json = nlohmann::ordered_json;
  const CompiledModel& model = facts.model;
  Json report;
  report["compiler"] = model.version;
  report["core"] = model.core;
  report["npu_unit"] = model.npu_unit;
  report["model"] = Printable(facts.graph.name());
  report["model_md5"] = model.model_md5;
  report["sizes_bytes"] = Json{{"cmd_content", model.cmd_content.size()},
                               {"weight_content", model.weight_content.size()},
                               {"ops_content", model.ops_content.size()},
                               {"data_content", model.data_bytes},
                               {"data_liveness_bound", facts.memory.lower_bound_bytes},
                               {"input", model.input_struct_bytes()},
                               {"output", model.output_struct_bytes()},
                               {"npu_size", model.npu_size()},
                               {"total_size", model.total_size()}};
  report["memory_plan"] = Json{{"arena_bytes", facts.memory.arena_bytes},
                               {"liveness_bound_bytes", facts.memory.lower_bound_bytes},
                               {"method", NameOf(facts.memory.method)},
                               {"search_nodes", facts.memory.search_nodes}};
  const auto ports = [&](const std::vector<PortTensor>& list) {
    Json out = Json::array();
    for (const PortTensor& port : list) {
      Json entry{{"name", Printable(port.name)}, {"type", ShapeText(port)}};
      if (port.state_input >= 0) {
        entry["state_of"] = Printable(model.inputs[port.state_input].name);
      }
      out.push_back(std::move(entry));
    }
    return out;
  };
  report["inputs"] = ports(model.inputs);
  report["outputs"] = ports(model.outputs);
  std::map<std::string, int64_t> kinds;
  for (const Command& command : facts.program.commands) ++kinds[std::string(NameOf(command))];
  report["commands"] = kinds;
  Json nodes = Json::array();
  for (const NodeUse& use : UseByNode(facts.program)) {
    nodes.push_back(Json{{"node", Printable(use.name)},
                         {"commands", use.commands},
                         {"element_ops", use.work},
                         {"data_bytes", BytesOf(facts.program, use.data_buffers)},
                         {"weight_bytes", BytesOf(facts.program, use.weight_buffers)}});
  }
  report["nodes"] = std::move(nodes);
  Json weights = Json::array();
  for (const WeightRecord& weight : facts.weights) {
    weights.push_back(Json{{"name", Printable(weight.name)},
                           {"used_by", Printable(weight.used_by)},
                           {"shape", weight.shape},
                           {"bits", weight.compressed ? 8 : 16},
                           {"min", weight.min},
                           {"max", weight.max},
                           {"step", weight.step},
                           {"sparsity", weight.sparsity},
                           {"max_abs_error", weight.max_abs_error},
                           {"rms_error", weight.rms_error},
                           {"bytes", weight.mask_bytes + weight.code_bytes}});
  }
  report["weights"] = std::move(weights);
  report["transposes"] = TransposesJson(facts);
  if (facts.weight_cache_bytes > 0) report["weight_cache"] = WeightCacheJson(facts);
  report["diagnostics"] = DiagnosticsJson(facts.diagnostics);
  return report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace npuc
