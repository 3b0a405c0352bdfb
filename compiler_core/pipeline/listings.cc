#include "compiler_core/pipeline/listings.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler_core/ir/cmd/access.h"
#include "compiler_core/ir/cmd/raw_forms.h"
#include "compiler_core/passes/remaining_transposes.h"

namespace npuc {
namespace {

void KeepEachOnce(std::vector<int32_t>& ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

}  // namespace

std::vector<NodeUse> UseByNode(const Program& program, const CycleModel* cycles) {
  std::vector<NodeUse> uses;
  absl::flat_hash_map<absl::string_view, size_t> index;
  size_t current = 0;
  for (const Command& command : program.commands) {
    // Nearly always the node of the command before.
    if (uses.empty() || uses[current].name != command.node) {
      const auto [it, inserted] = index.try_emplace(command.node, uses.size());
      if (inserted) uses.emplace_back(command.node);
      current = it->second;
    }
    NodeUse& use = uses[current];
    ++use.commands;
    const CommandLoad load = LoadOf(program, command);
    use.load += load;
    if (cycles != nullptr) use.cycles += EstimateCycles(*cycles, load);
    for (const Access& access : AccessesOf(command)) {
      const int32_t id = access.operand.buffer.value();
      if (program.buffers[id].slot == Slot::kData) use.data_buffers.push_back(id);
      if (program.buffers[id].slot == Slot::kWeight) use.weight_buffers.push_back(id);
    }
  }
  for (NodeUse& use : uses) {
    KeepEachOnce(use.data_buffers);
    KeepEachOnce(use.weight_buffers);
  }
  return uses;
}

int64_t BytesOf(const Program& program, absl::Span<const int32_t> buffers) {
  int64_t bytes = 0;
  for (const int32_t id : buffers) bytes += program.buffers[id].size_bytes;
  return bytes;
}

WeightCacheUse PlanWeightCache(const Program& program, absl::Span<const NodeUse> uses,
                               int64_t size_bytes) {
  WeightCacheUse result;
  std::set<int32_t> cached;
  for (const NodeUse& use : uses) {
    if (use.weight_buffers.empty()) continue;
    std::vector<int32_t> added;
    std::set_difference(use.weight_buffers.begin(), use.weight_buffers.end(), cached.begin(),
                        cached.end(), std::back_inserter(added));
    const int64_t bytes = BytesOf(program, added);
    if (result.bytes + bytes > size_bytes) continue;
    result.bytes += bytes;
    result.nodes.push_back(use.name);
    cached.insert(added.begin(), added.end());
  }
  return result;
}

std::string ListOps(const CompileFacts& facts) {
  absl::flat_hash_map<absl::string_view, int64_t> commands;
  for (const NodeUse& use : facts.uses) commands[use.name] = use.commands;
  std::string out =
      absl::StrFormat("%-40s %-18s %-20s %s\n", "node", "operator", "output", "commands");
  for (const Node& node : facts.graph.nodes()) {
    if (node.op == Op::kConst) continue;
    const std::string type =
        node.outputs.empty() ? "" : ShapeToString(facts.graph.type(node.outputs[0]).shape);
    const auto it = commands.find(node.source.name);
    absl::StrAppendFormat(&out, "%-40s %-18s %-20s %d\n", Printable(node.source.name),
                          NameOf(node.op), type, it == commands.end() ? 0 : it->second);
  }
  return out;
}

std::string ListMemory(const CompileFacts& facts) {
  std::string out =
      absl::StrFormat("%-40s %10s %10s %10s\n", "node", "data", "weights", "commands");
  for (const NodeUse& use : facts.uses) {
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

std::vector<TransposeRecord> TransposesOf(const CompileFacts& facts) {
  std::vector<TransposeRecord> records;
  absl::flat_hash_map<absl::string_view, absl::string_view> operators;  // nodes but transposes
  operators.reserve(facts.graph.node_count());
  std::set<std::string> told;
  for (RemainingTranspose& remaining : RemainingTransposes(facts.graph)) {
    told.insert(remaining.node);
    records.push_back({std::move(remaining.node), std::move(remaining.shape),
                       std::move(remaining.perm), std::move(remaining.reason)});
  }
  for (const Node& node : facts.graph.nodes()) {
    if (!told.contains(node.source.name)) operators[node.source.name] = NameOf(node.op);
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

}  // namespace npuc
