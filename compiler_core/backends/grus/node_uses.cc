#include "compiler_core/backends/grus/node_uses.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
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
  std::optional<StreamClock> clock;
  if (cycles != nullptr) clock.emplace(*cycles, 1);
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
    ++use.figures.commands;
    const CommandLoad load = LoadOf(program, command);
    use.figures.load += load;
    if (clock.has_value()) use.figures.cycles += clock->Run(0, 0, load);
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
  result.size_bytes = size_bytes;
  std::set<int32_t> cached;
  for (const NodeUse& use : uses) {
    if (use.weight_buffers.empty()) continue;
    std::vector<int32_t> added;
    std::set_difference(use.weight_buffers.begin(), use.weight_buffers.end(), cached.begin(),
                        cached.end(), std::back_inserter(added));
    const int64_t bytes = BytesOf(program, added);
    if (result.used_bytes + bytes > size_bytes) continue;
    result.used_bytes += bytes;
    result.nodes.push_back(use.name);
    cached.insert(added.begin(), added.end());
  }
  return result;
}

std::vector<TransposeRecord> TransposesOf(const Graph& graph, const Program& program) {
  std::vector<TransposeRecord> records;
  absl::flat_hash_map<absl::string_view, absl::string_view> operators;  // nodes but transposes
  operators.reserve(graph.node_count());
  std::set<std::string> told;
  for (RemainingTranspose& remaining : RemainingTransposes(graph)) {
    told.insert(remaining.node);
    records.push_back({std::move(remaining.node), std::move(remaining.shape),
                       std::move(remaining.perm), std::move(remaining.reason)});
  }
  for (const Node& node : graph.nodes()) {
    if (!told.contains(node.source.name)) operators[node.source.name] = NameOf(node.op);
  }
  for (const Command& command : program.commands) {
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
